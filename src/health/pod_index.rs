//! Divides the pods of a namespace among workloads by selector.

use std::collections::HashMap;

use serde_json::Value;

use super::selector::PodSelector;

/// Pods by label, so a lookup for one workload does not scan those of all others.
#[derive(Debug)]
pub struct PodIndex<'p> {
    pods: &'p [Value],
    by_label: HashMap<&'p str, HashMap<&'p str, Vec<&'p Value>>>,
}

impl<'p> PodIndex<'p> {
    pub fn of(pods: &'p [Value]) -> Self {
        let mut by_label: HashMap<&str, HashMap<&str, Vec<&Value>>> = HashMap::new();
        for pod in pods {
            let labels = pod.pointer("/metadata/labels").and_then(Value::as_object);
            for (key, value) in labels.into_iter().flatten() {
                if let Some(value) = value.as_str() {
                    by_label.entry(key).or_default().entry(value).or_default().push(pod);
                }
            }
        }
        Self { pods, by_label }
    }

    /// The pods that match a selector.
    pub fn selected(&self, selector: &PodSelector) -> Vec<&'p Value> {
        // Start with the label that the fewest pods have.
        let fewest = selector.value_requirements().min_by_key(|(key, values)| {
            values.iter().map(|value| self.with(key, value).len()).sum::<usize>()
        });
        let matches = |pod: &&'p Value| selector.matches(pod);
        match fewest {
            Some((key, values)) => {
                let mut values: Vec<&String> = values.iter().collect();
                values.sort_unstable();
                values.dedup();
                values.into_iter().flat_map(|value| self.with(key, value)).copied().filter(matches).collect()
            }
            None => self.pods.iter().filter(matches).collect(),
        }
    }

    fn with(&self, key: &str, value: &str) -> &[&'p Value] {
        self.by_label.get(key).and_then(|values| values.get(value)).map_or(&[], Vec::as_slice)
    }
}
