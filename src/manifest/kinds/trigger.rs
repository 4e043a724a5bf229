//! Kind Trigger: which deliveries or calls of other programs change which value of an app.

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::{YamlNode, YamlNodeKind};
use super::{read_envelope, secret, spec_fields};
use crate::model::glob::{self, SeparatorMatching};
use crate::model::{
    Location, PayloadPath, PayloadTemplate, SecretRef, TextPosition, Trigger, TriggerField, TriggerMatchRule,
    TriggerTarget, TriggerValue, TriggerWrite,
};

/// The folder of triggers. Write access to it allows a change of every app.
pub const FOLDER: &str = "triggers/";

const WRITES: &[(&str, TriggerWrite)] = &[
    ("pull-request", TriggerWrite::PullRequest),
    ("commit", TriggerWrite::Commit),
    ("none", TriggerWrite::None),
];

pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<Trigger> {
    let (metadata, spec) = read_envelope(root, NameRule::Label, false, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let receiver = fields.optional("receiver", reading);
    let receiver_location = receiver.as_ref().map(|receiver| reading.location(receiver.node));
    let receiver = receiver.map(|receiver| reading.name(&receiver, NameRule::Label));
    let rules = fields.optional_selector("match", reading).map(|rules| read_rules(&rules, reading));
    let token = fields.optional("token", reading).map(|token| read_token(&token, reading));
    if receiver.is_none() && token.is_none() {
        let (place, path) = (fields.location().clone(), fields.path_of("receiver"));
        reading
            .mistake(codes::NOT_EXACTLY_ONE, "a trigger has a `receiver`, a `token` or both", place, &path)
            .help("name a receiver of tutti.yaml, or a token for POST /api/v1/triggers/NAME");
    }
    if let (Some(_), None, Some(place)) = (&receiver, &rules, &receiver_location) {
        reading
            .mistake(
                codes::MISSING_FIELD,
                "`match` is missing: without it, every delivery of the receiver would fit",
                place.clone(),
                &fields.path_of("match"),
            )
            .help("select the deliveries, such as {build.status: success}");
    }
    let set = fields.required("set", reading).and_then(|set| read_set(&set, reading));
    let write = fields.optional("action", reading).map(|action| read_action(&action, reading));
    fields.finish(reading);
    let metadata = metadata?;
    let (app, value, place) = set?;
    Some(Trigger {
        name: metadata.name,
        receiver: all_read(receiver)?,
        rules: all_read(rules)?.unwrap_or_default(),
        token: all_read(token)?,
        app,
        value,
        target: place,
        write: all_read(write)?.unwrap_or_default(),
        location: metadata.location,
        receiver_location,
    })
}

/// Given and wrong is not the same as not given.
#[expect(clippy::option_option, reason = "absent and wrong are not the same")]
fn all_read<T>(given: Option<Option<T>>) -> Option<Option<T>> {
    given.map_or(Some(None), |read| read.map(Some))
}

fn read_token(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<SecretRef> {
    // It may be the token itself, which no message repeats.
    if value.node.as_map().is_none() {
        return secret::read(value, reading);
    }
    let mut fields = ManifestFields::of(value, reading)?;
    let token = fields.required("secretRef", reading).and_then(|token| secret::read(&token, reading));
    fields.finish(reading);
    token
}

fn read_action(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<TriggerWrite> {
    let mut fields = ManifestFields::of(value, reading)?;
    let write = fields.required("write", reading);
    let write = write.and_then(|write| reading.choice(&write, WRITES, &[], false));
    fields.finish(reading);
    write
}

fn read_rules(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<TriggerMatchRule>> {
    let entries = reading.entries(value)?;
    if entries.is_empty() {
        reading.bad_value(
            value,
            "`match` fits every payload",
            "select the deliveries, such as {build.status: success}",
        );
        return None;
    }
    let rules: Vec<_> = entries.iter().map(|(key, value)| read_rule(key, value, reading)).collect();
    rules.into_iter().collect()
}

fn read_rule(
    key: &str,
    value: &ManifestValue<'_>,
    reading: &mut ReadContext<'_>,
) -> Option<TriggerMatchRule> {
    let path = PayloadPath::parse(key);
    if path.is_none() {
        let place = value.name_location.clone().unwrap_or_else(|| reading.location(value.node));
        reading
            .mistake(codes::BAD_VALUE, format!("{key:?} is not a path of a payload"), place, &value.path)
            .help("write keys with dots between, such as build.event; items of lists by number, from 0");
    }
    let any = match value.node.as_seq() {
        Some([]) => {
            reading.bad_value(value, format!("`{key}` fits nothing"), "write a value, or several in a list");
            None
        }
        Some(_) => reading.list(value).and_then(|items| {
            let texts: Vec<_> = items.iter().map(|item| read_pattern(item, reading)).collect();
            texts.into_iter().collect()
        }),
        None => read_pattern(value, reading).map(|one| vec![one]),
    };
    Some(TriggerMatchRule { path: path?, patterns: any? })
}

/// A scalar as the text that it is compared by.
fn read_pattern(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<String> {
    let text = match &value.node.kind {
        YamlNodeKind::String(text) => text.clone(),
        YamlNodeKind::Bool(boolean, _) => return Some(boolean.to_string()),
        YamlNodeKind::Int(number, _) => return Some(number.to_string()),
        YamlNodeKind::Null | YamlNodeKind::Float(..) | YamlNodeKind::Seq(_) | YamlNodeKind::Map(_) => {
            reading.wrong_type(value, "a text, a whole number or a boolean");
            return None;
        }
    };
    if let Err(error) = glob::parse(&text, SeparatorMatching::Literal) {
        let location = reading.location(value.node);
        reading
            .mistake(codes::BAD_PATTERN, format!("{text:?} is not a pattern: {error}"), location, &value.path)
            .help("write a value, or a shell pattern such as shop/*");
        return None;
    }
    Some(text)
}

fn read_set(
    value: &ManifestValue<'_>,
    reading: &mut ReadContext<'_>,
) -> Option<(TriggerField, TriggerValue, TriggerTarget)> {
    let mut fields = ManifestFields::of(value, reading)?;
    let mut one = |name: &'static str, reading: &mut ReadContext<'_>| {
        fields.optional(name, reading).map(|value| (read_template(&value, reading), value))
    };
    let (version, image) = (one("version", reading), one("image", reading));
    let (ring, file) = (one("ring", reading), one("file", reading));
    let field = fields.optional("field", reading).map(|field| read_field(&field, reading));
    let app = fields.required("app", reading).and_then(|app| read_template(&app, reading));
    let choice = |what: &str, reading: &mut ReadContext<'_>| {
        let (place, path) = (fields.location().clone(), fields.path_of("version"));
        reading
            .mistake(codes::NOT_EXACTLY_ONE, format!("`set` has {what}"), place, &path)
            .help("write {app, version, ring} for a pin, or {app, image, file, field} for a field of a file");
    };
    let value = match (version, image) {
        (Some((version, _)), None) => version.map(TriggerValue::Version),
        (None, Some((image, _))) => image.map(TriggerValue::Image),
        _ => {
            choice("exactly one of `version` and `image`", reading);
            None
        }
    };
    let place = match (ring, file, field) {
        (Some((ring, _)), None, None) => ring.map(|ring| TriggerTarget::Pin { ring }),
        (None, Some((file, _)), Some(field)) => {
            file.zip(field).map(|(file, field)| TriggerTarget::Field { file, field })
        }
        _ => {
            choice("either `ring`, or `file` and `field`", reading);
            None
        }
    };
    fields.finish(reading);
    Some((app?, value?, place?))
}

fn read_template(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<TriggerField> {
    let text = reading.text(value)?;
    let location = reading.location(value.node);
    if text.trim().is_empty() {
        reading.bad_value(
            value,
            format!("`{}` is empty", value.name()),
            "write a value, or {{ path }} of the payload",
        );
        return None;
    }
    match PayloadTemplate::parse(&text) {
        Ok(template) => Some(TriggerField { template, location }),
        Err(mistake) => {
            let place = location_within(&location, &text, mistake.offset);
            reading
                .mistake(
                    codes::BAD_VALUE,
                    format!("`{}`: {}", value.name(), mistake.message),
                    place,
                    &value.path,
                )
                .help("a template is text with {{ path }} in it, such as {{ build.ref | strip_ref }}");
            None
        }
    }
}

/// The location of a character of a text, when the text is on one line without escapes.
fn location_within(location: &Location, text: &str, at: usize) -> Location {
    let length = text.chars().count();
    let number = |count: usize| u32::try_from(count).unwrap_or_default();
    let Some(end) = location.end.filter(|end| end.line == location.start.line) else {
        return location.clone();
    };
    let quote = match end.column.saturating_sub(location.start.column) {
        width if width == number(length) => 0,
        width if width == number(length + 2) => 1,
        _ => return location.clone(),
    };
    let start = TextPosition { column: location.start.column + quote + number(at), ..location.start };
    Location { start, ..location.clone() }
}

/// Fields that identify a manifest, which no trigger may set.
const IDENTITY: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// A path of a scalar as the editor of files takes it: keys with dots between, and items of lists by what is in them.
fn read_field(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<String> {
    let text = reading.word(value)?;
    // A document may be chosen by what is in it.
    let chosen = text.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(_, rest)| rest);
    let path = chosen.map_or(&*text, |rest| rest.strip_prefix('.').unwrap_or(rest));
    let first = path.split(['.', '[']).next().unwrap_or_default();
    let is_letter = |it: char| it.is_ascii_alphanumeric() || "-_./=[]\"".contains(it);
    let mistake =
        if !text.chars().all(is_letter) || first.is_empty() || text.contains("..") || text.ends_with('.') {
            format!("{text:?} is not a path of a field")
        } else if IDENTITY.contains(&first) {
            format!("`{first}` identifies the object and is not a value of an app")
        } else {
            return Some(text);
        };
    reading.bad_value(
        value,
        mistake,
        "write keys with dots between, and items of lists by a field: spec.containers[name=app].image",
    );
    None
}
