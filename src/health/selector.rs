//! Label selectors of workloads: as parameters of a list request, and matched against labels.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::json_fields::{items, text};

/// Requirements of a label selector, at least one; a pod must meet all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSelector {
    requirements: Vec<PodLabelRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PodLabelRequirement {
    Is(String, String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl PodSelector {
    /// `None` for a selector without requirements, or with one that a list request cannot express: a partial selector
    /// would match foreign pods.
    pub fn of_label_selector(selector: &Value) -> Option<Self> {
        let mut requirements = pairs(selector.get("matchLabels").unwrap_or(&Value::Null));
        for expression in items(selector, "/matchExpressions") {
            let key = text(expression, "/key")?.to_owned();
            let values: Option<Vec<&str>> = items(expression, "/values").iter().map(Value::as_str).collect();
            let values = values?.into_iter().map(str::to_owned).collect();
            requirements.push(match text(expression, "/operator")? {
                "In" => PodLabelRequirement::In(key, values),
                "NotIn" => PodLabelRequirement::NotIn(key, values),
                "Exists" => PodLabelRequirement::Exists(key),
                "DoesNotExist" => PodLabelRequirement::Absent(key),
                _ => return None,
            });
        }
        Self::of(requirements)
    }

    /// From a plain map of labels.
    pub fn of_label_map(labels: &Value) -> Option<Self> {
        Self::of(pairs(labels))
    }

    pub fn of_label(key: &str, value: &str) -> Self {
        Self { requirements: vec![PodLabelRequirement::Is(key.to_owned(), value.to_owned())] }
    }

    fn of(requirements: Vec<PodLabelRequirement>) -> Option<Self> {
        (!requirements.is_empty()).then_some(Self { requirements })
    }

    pub fn matches(&self, pod: &Value) -> bool {
        let labels = pod.pointer("/metadata/labels");
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        self.requirements.iter().all(|requirement| match requirement {
            PodLabelRequirement::Is(key, value) => label(key) == Some(value),
            PodLabelRequirement::In(key, values) => {
                label(key).is_some_and(|own| values.iter().any(|value| value == own))
            }
            PodLabelRequirement::NotIn(key, values) => {
                label(key).is_none_or(|own| values.iter().all(|value| value != own))
            }
            PodLabelRequirement::Exists(key) => label(key).is_some(),
            PodLabelRequirement::Absent(key) => label(key).is_none(),
        })
    }

    /// The requirements with values of a label.
    pub(super) fn value_requirements(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.requirements.iter().filter_map(|requirement| match requirement {
            PodLabelRequirement::Is(key, value) => Some((key.as_str(), std::slice::from_ref(value))),
            PodLabelRequirement::In(key, values) => Some((key.as_str(), values.as_slice())),
            _ => None,
        })
    }
}

impl fmt::Display for PodSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, requirement) in self.requirements.iter().enumerate() {
            if number > 0 {
                f.write_str(",")?;
            }
            match requirement {
                PodLabelRequirement::Is(key, value) => write!(f, "{key}={value}")?,
                PodLabelRequirement::In(key, values) => write!(f, "{key} in ({})", values.join(","))?,
                PodLabelRequirement::NotIn(key, values) => write!(f, "{key} notin ({})", values.join(","))?,
                PodLabelRequirement::Exists(key) => f.write_str(key)?,
                PodLabelRequirement::Absent(key) => write!(f, "!{key}")?,
            }
        }
        Ok(())
    }
}

fn pairs(labels: &Value) -> Vec<PodLabelRequirement> {
    let labels = labels.as_object().into_iter().flatten();
    labels
        .filter_map(|(key, value)| Some(PodLabelRequirement::Is(key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// One selector that matches at least what several match: for each label the values of all. Only selectors with the
/// same labels can be combined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectorUnion {
    values: BTreeMap<String, BTreeSet<String>>,
    length: usize,
}

impl SelectorUnion {
    /// Longer texts may not pass every proxy: escaped in an address they take up to three times as much.
    const LONGEST: usize = 2_000;

    /// Returns whether it was added. The first one always is, if it has values of a label.
    pub fn add(&mut self, selector: &PodSelector) -> bool {
        let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (key, values) in selector.value_requirements() {
            named.entry(key).or_default().extend(values.iter().map(String::as_str));
        }
        let is_first = self.values.is_empty();
        if named.is_empty() || !is_first && !self.values.keys().map(String::as_str).eq(named.keys().copied())
        {
            return false;
        }
        let is_new =
            |key: &str, value: &str| !self.values.get(key).is_some_and(|known| known.contains(value));
        let new = named.iter().flat_map(|(key, values)| values.iter().map(|value| (*key, *value)));
        let new: Vec<(&str, &str)> = new.filter(|(key, value)| is_new(key, value)).collect();
        let length = self.length + new.iter().map(|(_, value)| value.len() + 1).sum::<usize>();
        if !is_first && length > Self::LONGEST {
            return false;
        }
        for (key, value) in new {
            self.values.entry(key.to_owned()).or_default().insert(value.to_owned());
        }
        self.length = length;
        true
    }

    /// `None` if nothing was added.
    pub fn selector(self) -> Option<PodSelector> {
        let requirement = |(key, values): (String, BTreeSet<String>)| {
            let mut values: Vec<String> = values.into_iter().collect();
            match values.len() {
                1 => PodLabelRequirement::Is(key, values.swap_remove(0)),
                _ => PodLabelRequirement::In(key, values),
            }
        };
        PodSelector::of(self.values.into_iter().map(requirement).collect())
    }
}
