//! Finds services of a pod and pods of a selector through label indexes.

use serde_json::Value;

use super::controller_context::key_of;
use crate::cluster::SandboxState;
use crate::object;
use crate::selectors::LabelSelector;
use crate::store::{ParsedObject, StoreKey};

/// The services whose selector finds a pod, in the order of lists.
pub(super) fn services_selecting(state: &SandboxState, pod: &Value) -> Vec<StoreKey> {
    let labels = object::value_at(pod, &["metadata", "labels"]).unwrap_or(&Value::Null);
    let finds = |service: &&ParsedObject| {
        selector_of(service).is_some_and(|selector| LabelSelector::map_matches(selector, labels))
    };
    state
        .store
        .selectors_matching("services", pod)
        .filter(finds)
        .map(|service| key_of("services", service))
        .collect()
}

/// The selector of a service that has endpoints by pods.
pub(super) fn selector_of(service: &Value) -> Option<&Value> {
    let selector = object::value_at(service, &["spec", "selector"])?;
    let says_nothing = selector.as_object().is_none_or(serde_json::Map::is_empty);
    let is_elsewhere = object::text(service, &["spec", "type"]) == Some("ExternalName");
    (!says_nothing && !is_elsewhere).then_some(selector)
}

/// The pods of a namespace that a selector finds, in the order of their names.
pub(super) fn pods_selected_by(
    state: &SandboxState,
    namespace: &str,
    selector: &LabelSelector,
) -> Vec<ParsedObject> {
    let found = state.store.list_labelled("pods", namespace, &selector.pairs());
    found.filter(|pod| selector.matches(pod)).cloned().collect()
}
