//! `labelSelector`: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.

use serde_json::Value;

use super::label_syntax;
use super::requirement::SelectorRequirement;
use crate::api_error::ApiError;
use crate::object;
use crate::store::json_text;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LabelSelector {
    requirements: Vec<SelectorRequirement>,
}

impl LabelSelector {
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let requirements = label_syntax::parse(text).map_err(ApiError::bad_request)?;
        Ok(Self { requirements })
    }

    /// The selector of a workload, in its `matchLabels` and `matchExpressions` form.
    pub(crate) fn of(selector: &Value) -> Self {
        let mut requirements = Vec::new();
        for (key, value) in
            object::value_at(selector, &["matchLabels"]).and_then(Value::as_object).into_iter().flatten()
        {
            requirements
                .push(SelectorRequirement::In(key.clone(), vec![value.as_str().unwrap_or("").to_owned()]));
        }
        for expression in object::list(selector, &["matchExpressions"]) {
            let key = expression["key"].as_str().unwrap_or("").to_owned();
            let values = object::list(expression, &["values"])
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            match expression["operator"].as_str() {
                Some("In") => requirements.push(SelectorRequirement::In(key, values)),
                Some("NotIn") => requirements.push(SelectorRequirement::NotIn(key, values)),
                Some("Exists") => requirements.push(SelectorRequirement::Exists(key)),
                _ => requirements.push(SelectorRequirement::Missing(key)),
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

    /// Labels that whatever matches carries with just these values.
    pub(crate) fn pairs(&self) -> Vec<(&str, &str)> {
        let requirements = self.requirements.iter();
        requirements
            .filter_map(|requirement| match requirement {
                SelectorRequirement::In(key, values) => match values.as_slice() {
                    [value] => Some((key.as_str(), value.as_str())),
                    _ => None,
                },
                _ => None,
            })
            .collect()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = object::value_at(object, &["metadata", "labels"]).unwrap_or(&Value::Null);
        self.matches_labels(labels)
    }

    /// Does it match an object, given as its text?
    pub(crate) fn matches_text(&self, object: &[u8]) -> bool {
        if self.is_empty() {
            return true;
        }
        let labels = json_text::value_at(object, &["metadata", "labels"]);
        let labels: Option<Value> = labels.and_then(|labels| serde_json::from_slice(labels).ok());
        self.matches_labels(&labels.unwrap_or_default())
    }

    pub(crate) fn matches_labels(&self, labels: &Value) -> bool {
        let label = |key: &str| labels.get(key).and_then(Value::as_str);
        self.requirements.iter().all(|requirement| match requirement {
            SelectorRequirement::In(key, values) => {
                label(key).is_some_and(|value| values.iter().any(|one| one == value))
            }
            SelectorRequirement::NotIn(key, values) => {
                label(key).is_none_or(|value| values.iter().all(|one| one != value))
            }
            SelectorRequirement::Exists(key) => label(key).is_some(),
            SelectorRequirement::Missing(key) => label(key).is_none(),
            SelectorRequirement::Above(key, bound) => number(label(key)).is_some_and(|value| value > *bound),
            SelectorRequirement::Below(key, bound) => number(label(key)).is_some_and(|value| value < *bound),
        })
    }
}

fn number(value: Option<&str>) -> Option<i64> {
    value?.parse().ok()
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
        for selector in ["app in web", "a b c", "=x", "app=(x", "app>b", ",", "a,"] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
    }
}
