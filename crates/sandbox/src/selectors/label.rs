//! `labelSelector`: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.

use serde_json::Value;

use crate::object;
use crate::status::ApiError;
use crate::store::text;

#[derive(Debug, Clone, PartialEq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

impl LabelSelector {
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let requirements = split(text)
            .into_iter()
            .map(|part| requirement(part.trim()))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| ApiError::bad_request(format!("unable to parse requirement: {text:?}")))?;
        Ok(Self { requirements })
    }

    /// The selector of a workload, in its `matchLabels` and `matchExpressions` form.
    pub(crate) fn of(selector: &Value) -> Self {
        let mut requirements = Vec::new();
        for (key, value) in
            object::at(selector, &["matchLabels"]).and_then(Value::as_object).into_iter().flatten()
        {
            requirements.push(Requirement::In(key.clone(), vec![value.as_str().unwrap_or("").to_owned()]));
        }
        for expression in object::list(selector, &["matchExpressions"]) {
            let key = expression["key"].as_str().unwrap_or("").to_owned();
            let values = object::list(expression, &["values"])
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            match expression["operator"].as_str() {
                Some("In") => requirements.push(Requirement::In(key, values)),
                Some("NotIn") => requirements.push(Requirement::NotIn(key, values)),
                Some("Exists") => requirements.push(Requirement::Exists(key)),
                _ => requirements.push(Requirement::Missing(key)),
            }
        }
        Self { requirements }
    }

    /// A Service's selector: a plain map.
    pub(crate) fn of_map(labels: &Value) -> Self {
        Self::of(&serde_json::json!({"matchLabels": labels}))
    }

    /// As [`of_map`](Self::of_map) would match, at once.
    pub(crate) fn map_matches(selector: &Value, labels: &Value) -> bool {
        selector.as_object().into_iter().flatten().all(|(key, value)| {
            let label = labels.get(key).and_then(Value::as_str);
            label.is_some_and(|label| label == value.as_str().unwrap_or(""))
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = object::at(object, &["metadata", "labels"]).unwrap_or(&Value::Null);
        self.matches_labels(labels)
    }

    /// Does it match an object, given as its text?
    pub(crate) fn matches_text(&self, object: &[u8]) -> bool {
        if self.is_empty() {
            return true;
        }
        let labels = text::at(object, &["metadata", "labels"]);
        let labels: Option<Value> = labels.and_then(|labels| serde_json::from_slice(labels).ok());
        self.matches_labels(&labels.unwrap_or_default())
    }

    pub(crate) fn matches_labels(&self, labels: &Value) -> bool {
        let label = |key: &str| labels.get(key).and_then(Value::as_str);
        self.requirements.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => {
                label(key).is_some_and(|value| values.iter().any(|one| one == value))
            }
            Requirement::NotIn(key, values) => {
                label(key).is_none_or(|value| values.iter().all(|one| one != value))
            }
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Missing(key) => label(key).is_none(),
        })
    }
}

/// Splits at commas outside parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        parts.push(&text[start..]);
    }
    parts
}

fn requirement(part: &str) -> Option<Requirement> {
    if let Some(key) = part.strip_prefix('!') {
        return key_of(key).map(Requirement::Missing);
    }
    if let Some((key, values)) = part.split_once(" notin ") {
        return Some(Requirement::NotIn(key_of(key)?, values_of(values)?));
    }
    if let Some((key, values)) = part.split_once(" in ") {
        return Some(Requirement::In(key_of(key)?, values_of(values)?));
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Some(Requirement::NotIn(key_of(key)?, vec![value_of(value)?]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(Requirement::In(key_of(key)?, vec![value_of(value)?]));
    }
    key_of(part).map(Requirement::Exists)
}

fn key_of(key: &str) -> Option<String> {
    let key = key.trim();
    let valid = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    (!key.is_empty() && key.chars().all(valid)).then(|| key.to_owned())
}

fn value_of(value: &str) -> Option<String> {
    let value = value.trim();
    let valid = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    value.chars().all(valid).then(|| value.to_owned())
}

fn values_of(list: &str) -> Option<Vec<String>> {
    let inner = list.trim().strip_prefix('(')?.strip_suffix(')')?;
    inner.split(',').map(value_of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(selector: &str, expected: bool) {
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
        assert_eq!(LabelSelector::parse(selector).unwrap().matches(&object), expected, "{selector}");
    }

    #[test]
    fn requirements() {
        check("", true);
        check("app=web", true);
        check("app==web,tier!=back", true);
        check("app!=web", false);
        check("app in (api, web),tier notin (back)", true);
        check("app in (api)", false);
        check("app,!gone", true);
        check("!app", false);
        check("gone notin (x)", true);
    }

    #[test]
    fn nonsense_is_refused() {
        for selector in ["app in web", "a b c", "=x", "app=(x"] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
    }
}
