//! Texts in the cells of several families: containers, labels, selectors.

use serde_json::{Value, json};

use crate::object;

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
