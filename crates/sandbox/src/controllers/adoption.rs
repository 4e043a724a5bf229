//! Controllers adopt matching objects that have no controller, such as those that an orphaning deletion left.
//!
//! A controller searches once, when it reconciles an owner for the first time.

use serde_json::Value;

use super::controller_context::{ControllerContext, key_of};
use crate::object;
use crate::selectors::LabelSelector;
use crate::store::{ParsedObject, StoreKey};

/// The kind that each controller owns.
fn controlled_resource(resource: &str) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match resource {
        "deployments.apps" => ("replicasets.apps", "apps/v1", "Deployment"),
        "replicasets.apps" => ("pods", "apps/v1", "ReplicaSet"),
        "statefulsets.apps" => ("pods", "apps/v1", "StatefulSet"),
        "daemonsets.apps" => ("pods", "apps/v1", "DaemonSet"),
        _ => return None,
    })
}

pub(super) fn adopt_matching(context: &mut ControllerContext<'_>, key: &StoreKey, owner: &Value) {
    let Some((resource, api_version, kind)) = controlled_resource(&key.resource) else { return };
    if object::is_deleting(owner) || !context.memory.adoption_done.insert(object::uid(owner).to_owned()) {
        return;
    }
    let selector = LabelSelector::of(&owner["spec"]["selector"]);
    if selector.is_empty() {
        return;
    }
    let namespace = object::namespace(owner);
    let found: Vec<ParsedObject> = context
        .memory
        .adoptable
        .0
        .iter()
        .filter(|key| key.resource == resource && key.name.namespace == namespace)
        .filter_map(|key| context.state.store.object_at(key))
        .filter(|one| !object::is_deleting(one) && selector.matches(one))
        .cloned()
        .collect();
    let reference = object::controller_reference(owner, api_version, kind);
    for one in found {
        context.change(&key_of(resource, &one), |one| {
            let mut owners = object::list(one, &["metadata", "ownerReferences"]).to_vec();
            owners.push(reference.clone());
            object::set(one, &["metadata", "ownerReferences"], owners);
        });
    }
}
