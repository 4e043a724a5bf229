//! Virtual pods, which are not visible in the API, for tests with many clusters.
//!
//! Controllers, scheduler and kubelets treat them as any pod, so workloads and services have the same status at the
//! same times. They need little memory: no defaults, managed fields, history or events, and only the template fields
//! that the simulation reads. Requests for pods get `NotSimulated`.

use serde_json::{Map, Value};

use crate::cluster::State;
use crate::object;
use crate::options::Pods;
use crate::status::ApiError;
use crate::store::{Key, Object};
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
pub(super) fn are(state: &State, resource: &str) -> bool {
    resource == "pods" && state.options.pods == Pods::Virtual
}

/// Creates a pod with the identity that a stored one would have.
pub(super) fn create(state: &mut State, namespace: &str, mut pod: Value) -> Result<Object, ApiError> {
    let kind = state.registry.resource("pods").cloned().ok_or_else(ApiError::no_such_resource)?;
    verbs::prepare(state, &kind, namespace, &mut pod)?;
    slim(&mut pod);
    object::set(&mut pod, &["status", "phase"], "Pending");
    Ok(state.store.put("pods", pod))
}

/// Writes a changed pod, which goes with its last finalizer.
pub(super) fn write(state: &mut State, key: &Key, pod: Value) -> Option<Object> {
    let gone = object::is_deleting(&pod)
        && object::finalizers(&pod).is_empty()
        && object::integer(&pod, &["metadata", "deletionGracePeriodSeconds"]) == 0;
    if gone {
        return state.store.remove(key);
    }
    Some(state.store.put("pods", pod))
}

fn slim(pod: &mut Value) {
    let Some(spec) = object::take(pod, &["spec"]) else { return };
    let mut slim = chosen(&spec, SPEC);
    for list in ["initContainers", "containers"] {
        let containers = object::list(&spec, &[list]);
        if !containers.is_empty() {
            let containers = containers.iter().map(|one| Value::Object(chosen(one, CONTAINER)));
            slim.insert(list.to_owned(), containers.collect());
        }
    }
    object::set(pod, &["spec"], slim);
}

fn chosen(value: &Value, fields: &[&str]) -> Map<String, Value> {
    let known = fields.iter().filter_map(|field| Some(((*field).to_owned(), value.get(field)?.clone())));
    known.collect()
}
