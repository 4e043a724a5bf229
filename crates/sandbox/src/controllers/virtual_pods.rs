//! Virtual pods, which are not visible in the API, for tests with many clusters.
//!
//! Controllers, scheduler and kubelets treat them as any pod, so workloads and services have the same status at the
//! same times. They need little memory: no defaults, managed fields, history or events, and only the template fields
//! that the simulation reads. Requests for pods get `NotSimulated`.

use serde_json::{Map, Value};

use crate::api_error::ApiError;
use crate::cluster::SandboxState;
use crate::object;
use crate::options::PodMode;
use crate::store::{ParsedObject, StoreKey};
use crate::verbs;

/// The fields of a pod's spec and containers that the scheduler and the kubelets read.
const SPEC: &[&str] = &[
    "affinity",
    "nodeName",
    "nodeSelector",
    "readinessGates",
    "restartPolicy",
    "schedulingGates",
    "terminationGracePeriodSeconds",
];
const CONTAINER: &[&str] = &["name", "image", "resources", "restartPolicy"];

/// Is this a resource of virtual objects here?
pub(super) fn is_virtual(state: &SandboxState, resource: &str) -> bool {
    resource == "pods" && state.options.pods == PodMode::Virtual
}

/// Creates a pod with the identity that a stored one would have.
pub(super) fn create(
    state: &mut SandboxState,
    namespace: &str,
    mut pod: Value,
) -> Result<ParsedObject, ApiError> {
    let kind = state.registry.resource("pods").cloned().ok_or_else(ApiError::no_such_resource)?;
    verbs::prepare(state, &kind, namespace, &mut pod)?;
    strip_fields(&mut pod);
    object::set(&mut pod, &["status", "phase"], "Pending");
    Ok(state.store.put("pods", pod))
}

/// Writes a changed pod, which goes with its last finalizer.
pub(super) fn write(state: &mut SandboxState, key: &StoreKey, pod: Value) -> Option<ParsedObject> {
    let gone = object::is_deleting(&pod)
        && object::finalizers(&pod).is_empty()
        && object::integer(&pod, &["metadata", "deletionGracePeriodSeconds"]) == 0;
    if gone {
        return state.store.remove(key);
    }
    Some(state.store.put("pods", pod))
}

fn strip_fields(pod: &mut Value) {
    let Some(spec) = object::take(pod, &["spec"]) else { return };
    let mut slim = pick_fields(&spec, SPEC);
    for list in ["initContainers", "containers"] {
        let containers = object::list(&spec, &[list]);
        if !containers.is_empty() {
            let containers = containers.iter().map(|one| Value::Object(pick_fields(one, CONTAINER)));
            slim.insert(list.to_owned(), containers.collect());
        }
    }
    object::set(pod, &["spec"], slim);
}

fn pick_fields(value: &Value, fields: &[&str]) -> Map<String, Value> {
    let known = fields.iter().filter_map(|field| Some(((*field).to_owned(), value.get(field)?.clone())));
    known.collect()
}
