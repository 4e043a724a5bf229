//! Kind Analysis: what is measured after a wave.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNode;
use super::{expression, read_envelope, secret, spec_fields};
use crate::model::{
    Analysis, AnalysisSpec, CelExpression, Diagnostic, PayloadTemplate, Probe, ProbeCredential, ProbeMethod,
    short_line,
};

/// Write access to this folder decides which hosts are queried, and with which credentials.
pub const FOLDER: &str = "policies/";

const METHODS: &[(&str, ProbeMethod)] =
    &[("GET", ProbeMethod::Get), ("HEAD", ProbeMethod::Head), ("POST", ProbeMethod::Post)];
/// The success expression of a response without `expect`.
const DEFAULT_SUCCESS: &str = "status >= 200 && status < 300";
/// They carry credentials, or are set by the client.
const REFUSED_HEADERS: [&str; 6] =
    ["authorization", "proxy-authorization", "cookie", "host", "content-length", "transfer-encoding"];
const MOST_OF_A_NAME: usize = 63;
const MOST: u32 = 1000;

/// Of the fields of a probe.
struct ProbeFields {
    probe: Probe,
    success: CelExpression,
    failure: Option<CelExpression>,
}

/// An Analysis with a mistake is kept, so that waves that name it do not pass.
pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> Analysis {
    let name = root.find(&["metadata", "name"]).and_then(YamlNode::as_str).unwrap_or(reading.file);
    let (name, location) = (short_line(name, MOST_OF_A_NAME), reading.location(root));
    let spec = read_spec(root, reading);
    let is_wrong = reading.mistakes.iter().any(Diagnostic::is_error);
    Analysis { name, spec: spec.filter(|_| !is_wrong), location }
}

fn read_spec(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<AnalysisSpec> {
    let (metadata, spec) = read_envelope(root, NameRule::Label, false, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let given = ["prometheus", "http", "health"].map(|name| fields.optional(name, reading));
    let read = match given {
        [Some(prometheus), None, None] => read_prometheus(&prometheus, reading),
        [None, Some(http), None] => read_http(&http, reading),
        [None, None, Some(health)] => expression::read(&health, reading).map(|success| ProbeFields {
            probe: Probe::Health,
            success,
            failure: None,
        }),
        _ => {
            let (place, path) = (fields.location().clone(), fields.path_of("prometheus"));
            let message = "an analysis has exactly one of `prometheus`, `http` and `health`";
            reading
                .mistake(codes::NOT_EXACTLY_ONE, message, place, &path)
                .help("write one Analysis for each measurement; a wave can name several");
            None
        }
    };
    let mut time = |name: &'static str, usual: u64, most: u64, reading: &mut ReadContext<'_>| {
        let Some(value) = fields.optional(name, reading) else { return Some(Duration::from_secs(usual)) };
        let time = reading.duration(&value)?;
        let least = u64::from(name != "initialDelay");
        if !(least..=most).contains(&time.as_secs()) {
            let message = format!("`{name}` is from {least}s to {most}s");
            reading.bad_value(&value, message, "write it with a unit: 90s, 10m, 1h");
            return None;
        }
        Some(time)
    };
    let interval = time("interval", 60, 24 * 3600, reading);
    let timeout = time("timeout", 10, 60, reading);
    let initial_delay = time("initialDelay", 0, 24 * 3600, reading);
    let mut count = |name: &'static str, usual: u32, reading: &mut ReadContext<'_>| {
        let Some(value) = fields.optional(name, reading) else { return Some(usual) };
        reading.count(&value, usual..=MOST)
    };
    let (needed, failures) = (count("count", 1, reading), count("failureLimit", 0, reading));
    fields.finish(reading);
    metadata?;
    let ProbeFields { probe, success, failure } = read?;
    Some(AnalysisSpec {
        probe,
        success,
        failure,
        interval: interval?,
        count: needed?,
        failure_limit: failures?,
        timeout: timeout?,
        initial_delay: initial_delay?,
    })
}

fn read_prometheus(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ProbeFields> {
    let mut fields = ManifestFields::of(value, reading)?;
    let url = fields.required("url", reading).and_then(|url| read_url(&url, reading));
    let query = fields.required("query", reading).and_then(|query| template(&query, reading));
    let credential = credential(&mut fields, reading);
    let success = fields.required("success", reading).and_then(|it| expression::read(&it, reading));
    let failure = fields.optional("failure", reading).and_then(|it| expression::read(&it, reading));
    fields.finish(reading);
    let probe = Probe::Prometheus { url: url?, query: query?, credential };
    Some(ProbeFields { probe, success: success?, failure })
}

fn read_http(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ProbeFields> {
    let mut fields = ManifestFields::of(value, reading)?;
    let url = fields.required("url", reading).and_then(|url| read_url(&url, reading));
    let method = fields.optional("method", reading);
    let method = method.and_then(|method| reading.choice(&method, METHODS, &[], false));
    let headers = fields.optional("headers", reading).and_then(|it| read_headers(&it, reading));
    let credential = credential(&mut fields, reading);
    let success = match fields.optional("expect", reading) {
        Some(expect) => expression::read(&expect, reading),
        None => {
            let (location, path) = (reading.location(value.node), fields.path_of("expect"));
            Some(CelExpression { text: DEFAULT_SUCCESS.to_owned(), location, path })
        }
    };
    fields.finish(reading);
    let (method, headers) = (method.unwrap_or_default(), headers.unwrap_or_default());
    Some(ProbeFields {
        probe: Probe::Http { url: url?, method, headers, credential },
        success: success?,
        failure: None,
    })
}

fn read_headers(
    value: &ManifestValue<'_>,
    reading: &mut ReadContext<'_>,
) -> Option<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    for (name, value) in reading.entries(value)? {
        let is_token = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if REFUSED_HEADERS.contains(&&*name.to_ascii_lowercase()) {
            let message = format!("the header {name} cannot be set");
            refuse_literal_credential(&value, message, reading);
            continue;
        }
        let Some(text) = reading.text(&value) else { continue };
        if !is_token || text.bytes().any(|byte| !(b' '..=b'~').contains(&byte)) {
            let message = format!("{name:?} is not an HTTP header, or its value is not valid");
            reading.bad_value(&value, message, "letters, digits and `-`; the value in ASCII");
        }
        headers.insert(name.to_owned(), text);
    }
    Some(headers)
}

/// Reports a possible credential without repeating it.
fn refuse_literal_credential(value: &ManifestValue<'_>, message: String, reading: &mut ReadContext<'_>) {
    let place = reading.location(value.node);
    reading.mistake(codes::LITERAL_SECRET, message, place, &value.path).help(
        "write `token` or `basicAuth` with a reference, and change this credential: it is in the history now",
    );
}

fn credential(fields: &mut ManifestFields<'_>, reading: &mut ReadContext<'_>) -> Option<ProbeCredential> {
    let (token, basic) = (fields.optional("token", reading), fields.optional("basicAuth", reading));
    if let (Some(token), Some(_)) = (&token, &basic) {
        let place = token.name_location.clone().unwrap_or_else(|| reading.location(token.node));
        reading
            .mistake(codes::NOT_EXACTLY_ONE, "`token` cannot be used with `basicAuth`", place, &token.path)
            .help("keep the one that the server asks for");
    }
    let token = token.and_then(|token| secret::read(&token, reading)).map(ProbeCredential::Token);
    let basic = basic.and_then(|basic| {
        let mut fields = ManifestFields::of(&basic, reading)?;
        let username = fields.required("username", reading).and_then(|it| reading.word(&it));
        let password = fields.required("password", reading).and_then(|it| secret::read(&it, reading));
        fields.finish(reading);
        Some(ProbeCredential::Basic { username: username?, password: password? })
    });
    token.or(basic)
}

fn read_url(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<PayloadTemplate> {
    let text = reading.text(value)?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match host {
        Some(host) if host.contains('@') => {
            refuse_literal_credential(value, format!("`{}` has a login in it", value.name()), reading);
            None
        }
        // The host must not come from a template value, so that a reader of the manifest sees it.
        Some(host) if !host.is_empty() && !host.contains(['{', '}', ' ']) => template(value, reading),
        _ => {
            let help = "https://, or http:// on this machine or with --allow-http; the host as it is";
            reading.bad_value(value, format!("{text:?} is not the address of a server"), help);
            None
        }
    }
}

/// Reads a template whose values all exist.
fn template(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<PayloadTemplate> {
    let text = reading.text(value)?;
    let help = format!("`{{{{ … }}}}` can name {}", Probe::TEMPLATE_VALUE_NAMES);
    let read = PayloadTemplate::parse(&text).map_err(|mistake| mistake.message);
    let sample = Probe::template_values(("a", "a", "a"), "a", "a", "a");
    let read = read.and_then(|template| template.render(&sample).map(|_| template));
    match read {
        Ok(template) => Some(template),
        Err(message) => {
            let message = message.replace("the payload has no value at", "no value is called");
            reading.bad_value(value, format!("`{}`: {message}", value.name()), &help);
            None
        }
    }
}
