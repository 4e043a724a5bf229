//! Computes one cell: columns that most kinds share, else the file of the kind's family.

use serde_json::{Value, json};

use super::columns::TableColumn;
use super::{age, cluster, custom, network, pod, policy, storage, workload};
use crate::clock::SandboxClock;
use crate::object;
use crate::registry::ResourceKind;

/// An object and the clock for its ages.
pub(super) struct RowObject<'v> {
    pub(super) clock: &'v SandboxClock,
    pub(super) object: &'v Value,
}

impl<'v> RowObject<'v> {
    pub(super) fn at(&self, path: &[&str]) -> Option<&'v Value> {
        object::value_at(self.object, path)
    }

    pub(super) fn text(&self, path: &[&str]) -> &'v str {
        object::text(self.object, path).unwrap_or("")
    }

    /// The text at a path, or what stands for its absence.
    pub(super) fn text_or(&self, path: &[&str], absent: &str) -> Value {
        match self.text(path) {
            "" => json!(absent),
            text => json!(text),
        }
    }

    pub(super) fn count(&self, path: &[&str]) -> Value {
        json!(object::integer(self.object, path))
    }

    pub(super) fn list(&self, path: &[&str]) -> &'v [Value] {
        object::list(self.object, path)
    }

    /// How many entries the map or list at a path has.
    pub(super) fn size(&self, path: &[&str]) -> i64 {
        match self.at(path) {
            Some(Value::Array(list)) => list.len() as i64,
            Some(Value::Object(map)) => map.len() as i64,
            _ => 0,
        }
    }

    pub(super) fn flag(&self, path: &[&str], absent: bool) -> Value {
        json!(self.at(path).and_then(Value::as_bool).unwrap_or(absent))
    }

    /// The age in human-readable form.
    pub(super) fn age_since(&self, timestamp: &str) -> String {
        self.clock.seconds_since(timestamp).map_or_else(|| "<unknown>".to_owned(), age::format_age)
    }
}

pub(super) fn cell_value(view: &RowObject<'_>, kind: &ResourceKind, column: &TableColumn) -> Value {
    if let Some(path) = &column.path {
        return custom::cell(view, path, &column.kind);
    }
    let name = column.name.as_str();
    let own = match kind.group.as_str() {
        "" if kind.plural == "pods" => pod::cell(view, name),
        "" => cluster::cell(view, &kind.plural, name)
            .or_else(|| network::cell(view, &kind.plural, name))
            .or_else(|| storage::cell(view, &kind.plural, name)),
        "apps" | "batch" | "autoscaling" => workload::cell(view, &kind.plural, name),
        "networking.k8s.io" | "discovery.k8s.io" => network::cell(view, &kind.plural, name),
        "storage.k8s.io" => storage::cell(view, &kind.plural, name),
        "events.k8s.io" => cluster::cell(view, "events", name),
        _ => policy::cell(view, &kind.plural, name),
    };
    own.unwrap_or_else(|| common_cell(view, name))
}

fn common_cell(view: &RowObject<'_>, column: &str) -> Value {
    match column {
        "Name" => json!(object::name(view.object)),
        "Age" => json!(view.age_since(view.text(&["metadata", "creationTimestamp"]))),
        "Created At" => view.at(&["metadata", "creationTimestamp"]).cloned().unwrap_or_default(),
        _ => json!("<unknown>"),
    }
}

/// Names or images of containers.
pub(super) fn containers(pod_spec: Option<&Value>, field: &str) -> Value {
    let list = pod_spec.map_or(&[][..], |spec| object::list(spec, &["containers"]));
    let words: Vec<&str> = list.iter().filter_map(|one| one[field].as_str()).collect();
    json!(words.join(","))
}

/// Labels as `a=b,c=d`.
pub(super) fn labels(map: Option<&Value>) -> String {
    let pairs: std::collections::BTreeMap<&String, &Value> =
        map.and_then(Value::as_object).into_iter().flatten().collect();
    let pairs: Vec<String> =
        pairs.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or(""))).collect();
    pairs.join(",")
}

/// Labels, or that there are none.
pub(super) fn labels_or_none(map: Option<&Value>) -> Value {
    match labels(map).as_str() {
        "" => json!("<none>"),
        text => json!(text),
    }
}

/// A label selector as text.
pub(super) fn selector(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return String::new() };
    let mut terms: Vec<(String, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        terms.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or(""))));
    }
    for term in object::list(selector, &["matchExpressions"]) {
        let key = term["key"].as_str().unwrap_or("");
        let mut values: Vec<&str> =
            object::list(term, &["values"]).iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match term["operator"].as_str().unwrap_or("") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        terms.push((key.to_owned(), text));
    }
    terms.sort();
    let terms: Vec<String> = terms.into_iter().map(|(_, text)| text).collect();
    terms.join(",")
}

/// A selector, or that there is none.
pub(super) fn selector_or_none(value: Option<&Value>) -> Value {
    match selector(value).as_str() {
        "" => json!("<none>"),
        text => json!(text),
    }
}

/// The first few, and how many more there are.
pub(super) fn first_few(all: &[String], most: usize) -> String {
    let shown: Vec<&str> = all.iter().take(most).map(String::as_str).collect();
    match all.len() {
        count if count > most => format!("{} + {} more...", shown.join(","), count - most),
        _ => shown.join(","),
    }
}
