//! Which services select a pod, and which pods a service selects, without comparing all with all.
//!
//! Kept only while the controllers work: made from the stored objects when it is first asked, and
//! dropped when they rest. What stands here is never too little, but may be outdated, so whoever asks
//! compares what is found.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::context::key_of;
use super::service;
use crate::cluster::State;
use crate::object;
use crate::selectors::LabelSelector;
use crate::store::{Key, Object, ObjectName};

/// Names of objects by a namespace and one pair of label and value.
type Names = HashMap<(String, String, String), BTreeSet<String>>;

#[derive(Debug, Default)]
pub(super) struct Labelled {
    known: Option<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// By each label.
    pods: Names,
    /// By the first label that they select.
    services: Names,
}

impl Labelled {
    /// Takes note of an object that was written, or removed.
    pub(super) fn note(&mut self, key: &Key, object: &Value, exists: bool) {
        let Some(known) = &mut self.known else { return };
        if exists {
            known.note(&key.resource, object);
        } else if key.resource == "pods" {
            known.forget_pod(object);
        }
    }

    /// Lets go of everything.
    pub(super) fn rest(&mut self) {
        self.known = None;
    }

    fn known(&mut self, state: &State) -> &Known {
        self.known.get_or_insert_with(|| {
            let mut known = Known::default();
            for resource in ["pods", "services"] {
                state.store.list(resource, None).for_each(|object| known.note(resource, object));
            }
            known
        })
    }

    /// The services whose selector finds a pod, in the order of lists.
    pub(super) fn services_of(&mut self, state: &State, pod: &Value) -> Vec<Key> {
        let known = self.known(state);
        let namespace = object::namespace(pod);
        let labels = object::at(pod, &["metadata", "labels"]).unwrap_or(&Value::Null);
        let names: BTreeSet<&String> =
            pairs_of(pod).filter_map(|pair| known.services.get(&pair)).flatten().collect();
        names
            .into_iter()
            .filter_map(|name| state.store.get("services", &ObjectName::new(namespace, name)))
            .filter(|service| {
                service::selector_of(service)
                    .is_some_and(|selector| LabelSelector::map_matches(selector, labels))
            })
            .map(|service| key_of("services", service))
            .collect()
    }

    /// The pods that a service selects, in the order of their names.
    pub(super) fn pods_of(&mut self, state: &State, service: &Value) -> Vec<Object> {
        let (namespace, selector) = (object::namespace(service), &service["spec"]["selector"]);
        let is_selected = |pod: &&Object| {
            LabelSelector::map_matches(
                selector,
                object::at(pod, &["metadata", "labels"]).unwrap_or(&Value::Null),
            )
        };
        let first = selector.as_object().and_then(|labels| labels.iter().next());
        let Some((label, value)) = first else { return Vec::new() };
        let names = self.known(state).pods.get(&pair(namespace, label, value));
        let pods = names.into_iter().flatten();
        let pods = pods.filter_map(|name| state.store.get("pods", &ObjectName::new(namespace, name)));
        pods.filter(is_selected).cloned().collect()
    }
}

impl Known {
    fn forget_pod(&mut self, pod: &Value) {
        for pair in pairs_of(pod) {
            if let Some(names) = self.pods.get_mut(&pair) {
                names.remove(object::name(pod));
            }
        }
    }

    fn note(&mut self, resource: &str, object: &Value) {
        let (namespace, name) = (object::namespace(object), object::name(object));
        match resource {
            "pods" => {
                for pair in pairs_of(object) {
                    self.pods.entry(pair).or_default().insert(name.to_owned());
                }
            }
            "services" => {
                let labels = service::selector_of(object).and_then(Value::as_object);
                if let Some((label, value)) = labels.and_then(|labels| labels.iter().next()) {
                    self.services.entry(pair(namespace, label, value)).or_default().insert(name.to_owned());
                }
            }
            _ => {}
        }
    }
}

fn pairs_of(pod: &Value) -> impl Iterator<Item = (String, String, String)> {
    let labels = object::at(pod, &["metadata", "labels"]).and_then(Value::as_object);
    labels.into_iter().flatten().map(|(label, value)| pair(object::namespace(pod), label, value))
}

fn pair(namespace: &str, label: &str, value: &Value) -> (String, String, String) {
    (namespace.to_owned(), label.to_owned(), value.as_str().unwrap_or("").to_owned())
}
