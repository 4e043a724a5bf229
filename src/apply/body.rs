//! The body of an apply.

use serde_json::Value;

use super::ignored_fields;
use super::managed_fields::OwnedFieldSet;
use crate::model::{FieldPath, ObjectRolloutAnnotations, RenderedObject, Revision, labels};
use crate::plan::{IgnoredPaths, PlanStep, SentReplicas};

/// The rendered object with the two annotations outside its hash. They are in the same apply: a second apply by the
/// same manager without them would remove them.
pub fn apply_body(object: &RenderedObject, revision: &Revision) -> Value {
    let mut body = object.body.fields();
    let annotations = &mut body["metadata"]["annotations"];
    annotations[labels::HASH] = Value::String(object.hash.to_string());
    annotations[labels::REVISION] = Value::String(revision.to_string());
    if (&*object.kind.group, &*object.kind.kind) == ("", "Service") {
        set_port_protocols(&mut body);
    }
    body
}

/// The protocol is a key of a Service's ports. Servers before 1.21 have no default for it, so an apply without it
/// fails.
fn set_port_protocols(service: &mut Value) {
    let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        port.entry("protocol").or_insert_with(|| Value::String("TCP".to_owned()));
    }
}

/// Adds the fields of the step to the body, and removes ignored ones.
pub(super) fn add_step_fields(body: &mut Value, step: &PlanStep) {
    if let Some(mark) = &step.install_mark {
        body["metadata"]["annotations"][labels::INSTALL] = mark.to_string().into();
    }
    for (name, said) in step.rollout.iter().flat_map(ObjectRolloutAnnotations::annotations) {
        body["metadata"]["annotations"][name] = said.into();
    }
    set_replicas(body, step.replicas);
    remove_ignored(body, &step.ignored_paths);
}

/// Removes ignored fields that others own. Replicas are handled by `scale`: their number is sent while it is ours.
fn remove_ignored(body: &mut Value, left: &IgnoredPaths) {
    let Some(known) = &left.still_owned else { return };
    let ours = OwnedFieldSet::parse(&known.owned_fields);
    for path in left.paths.iter().filter(|path| !is_replicas_path(path)) {
        ignored_fields::remove_unowned(body, path, &ours);
    }
}

/// `spec.replicas`, which every comparison of fields handles separately.
pub fn is_replicas_path(path: &FieldPath) -> bool {
    path.equals(&["spec", "replicas"])
}

/// Sets or removes `spec.replicas` if an autoscaler decides it.
pub(super) fn set_replicas(body: &mut Value, replicas: SentReplicas) {
    let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut) else { return };
    match replicas {
        SentReplicas::AsRendered => {}
        SentReplicas::AsLive(count) if spec.contains_key("replicas") => {
            spec.insert("replicas".to_owned(), count.into());
        }
        SentReplicas::AsLive(_) | SentReplicas::LeftOut => {
            spec.shift_remove("replicas");
        }
    }
}
