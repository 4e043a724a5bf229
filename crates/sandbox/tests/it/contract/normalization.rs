//! Replaces values that differ between runs by stable names.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

static UID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b").unwrap()
});
static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)").unwrap());
/// A possible resource version in a text.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\d{3,}").unwrap());
/// The server's current resource version is random.
static CURRENT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"current: (RV#)?\d+").unwrap());
/// So is the oldest one that it has.
static OLDEST: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"too old resource version: (\d+) \(\d+\)").unwrap());
/// A resource version in a query or a quoted object.
static QUOTED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(resourceVersion(?:=|\\*":\\*"))(\d{3,8})\b"#).unwrap());
/// A quoted object; the order of its fields depends on the encoder.
static OBJECT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"Invalid value: "\{.*\}": "#).unwrap());
/// Service and pod addresses.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b10\.\d+\.\d+\.\d+\b").unwrap());

/// Numbers the variable values of one transcript in the order of their first occurrence.
#[derive(Debug, Default)]
pub struct Normalizer {
    seen: BTreeMap<&'static str, Vec<String>>,
    /// Longest first, so that a name inside another one does not break it.
    aliases: Vec<(String, String)>,
}

impl Normalizer {
    /// From now on `actual` is shown as `shown`.
    pub fn alias(&mut self, actual: &str, shown: &str) {
        self.aliases.push((actual.to_owned(), shown.to_owned()));
        self.aliases.sort_by_key(|(actual, _)| std::cmp::Reverse(actual.len()));
    }

    /// Records the resource version of an object that is not shown.
    pub fn record_revision(&mut self, object: &Value) {
        if object.get("items").is_none()
            && let Some(revision) = object.pointer("/metadata/resourceVersion").and_then(Value::as_str)
            && !revision.is_empty()
        {
            self.number_value("RV", revision);
        }
    }

    pub fn normalize_text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (actual, shown) in &self.aliases {
            text = text.replace(actual.as_str(), shown);
        }
        let text = OBJECT.replace_all(&text, "Invalid value: OBJECT: ").into_owned();
        let text = TIME.replace_all(&text, "TIME").into_owned();
        let text =
            UID.replace_all(&text, |found: &Captures<'_>| self.number_value("UID", &found[0])).into_owned();
        let text = ADDRESS
            .replace_all(&text, |found: &Captures<'_>| self.number_value("IP", &found[0]))
            .into_owned();
        self.replace_revisions(text)
    }

    /// The leaves of a response, one line each: `.metadata.name "x"`.
    pub fn leaf_lines(&mut self, value: &Value) -> Vec<String> {
        let mut lines = Vec::new();
        let mut value = value.clone();
        // a list's resource version is that of the whole server
        if value.get("items").is_some_and(Value::is_array)
            && let Some(revision) = value.pointer_mut("/metadata/resourceVersion")
            && revision.as_str().is_some_and(|text| !text.is_empty())
        {
            *revision = Value::from("NOW");
        }
        self.collect_leaves("", "", &value, &mut lines);
        lines
    }

    fn collect_leaves(&mut self, path: &str, field: &str, value: &Value, lines: &mut Vec<String>) {
        match value {
            Value::Object(fields) if !fields.is_empty() && field != "fieldsV1" => {
                let mut names: Vec<&String> = fields.keys().collect();
                names.sort();
                for name in names {
                    let shown = self.normalize_text(name);
                    let step = if shown.contains(['.', '/', ' ']) {
                        format!("[{shown:?}]")
                    } else {
                        format!(".{shown}")
                    };
                    self.collect_leaves(&format!("{path}{step}"), name, &fields[name], lines);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                let mut items: Vec<&Value> = items.iter().collect();
                if field == "managedFields" {
                    items.sort_by_key(|item| {
                        format!("{}{}{}", item["manager"], item["operation"], item["subresource"])
                    });
                }
                for (at, item) in items.into_iter().enumerate() {
                    self.collect_leaves(&format!("{path}[{at}]"), field, item, lines);
                }
            }
            leaf => {
                let shown = self.leaf_text(field, leaf);
                lines.push(format!("{} {shown}", if path.is_empty() { "." } else { path }));
            }
        }
    }

    fn leaf_text(&mut self, field: &str, value: &Value) -> String {
        match (field, value) {
            ("resourceVersion", Value::String(revision)) if !matches!(revision.as_str(), "" | "NOW") => {
                self.number_value("RV", revision)
            }
            ("continue", Value::String(token)) if !token.is_empty() => "CONTINUE".to_owned(),
            ("nodePort" | "healthCheckNodePort", Value::Number(port)) if *port != 0.into() => {
                self.number_value("PORT", &port.to_string())
            }
            ("fieldsV1", fields) => {
                let text = sort_fields(fields).to_string();
                self.normalize_text(&text)
            }
            (_, Value::String(text)) => format!("{:?}", self.normalize_text(text)),
            (_, other) => other.to_string(),
        }
    }

    /// Known resource versions are replaced in messages too.
    fn replace_revisions(&self, text: String) -> String {
        let seen = self.seen.get("RV").map_or(&[][..], Vec::as_slice);
        let known = |found: &Captures<'_>| match seen.iter().position(|revision| *revision == found[0]) {
            Some(at) => format!("RV#{}", at + 1),
            None => found[0].to_owned(),
        };
        let text = NUMBER.replace_all(&text, known).into_owned();
        let text = QUOTED.replace_all(&text, "${1}RV").into_owned();
        let text = OLDEST.replace_all(&text, "too old resource version: $1 (OLDEST)").into_owned();
        CURRENT.replace_all(&text, "current: RV").into_owned()
    }

    fn number_value(&mut self, what: &'static str, actual: &str) -> String {
        let seen = self.seen.entry(what).or_default();
        let place = seen.iter().position(|one| one == actual).unwrap_or_else(|| {
            seen.push(actual.to_owned());
            seen.len() - 1
        });
        format!("{what}#{}", place + 1)
    }
}

/// The fields of every object sorted by name.
pub fn sort_fields(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            fields.into_iter().map(|(name, field)| (name.clone(), sort_fields(field))).collect()
        }
        Value::Array(items) => items.iter().map(sort_fields).collect(),
        leaf => leaf.clone(),
    }
}
