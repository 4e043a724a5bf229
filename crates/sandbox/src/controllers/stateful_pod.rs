//! One pod of a StatefulSet: its name, its template's revision, its claims.

use serde_json::{Value, json};

use super::controller_context::ControllerContext;
use super::event_component::EventComponent;
use super::{controller_revision, pods};
use crate::object;
use crate::store::{NamespacedName, StoreKey};

/// The names of the revisions of the present template, and of the one that is being left.
#[derive(Debug, Clone)]
pub(super) struct RevisionNames {
    pub(super) update: String,
    pub(super) current: String,
}

/// True when the pod was made.
pub(super) fn create(
    context: &mut ControllerContext<'_>,
    set: &Value,
    names: &RevisionNames,
    number: i64,
    old: bool,
) -> bool {
    let namespace = object::namespace(set).to_owned();
    let name = format!("{}-{number}", object::name(set));
    let wanted = if old { &names.current } else { &names.update };
    let mut owner = set.clone();
    if let Some(template) = controller_revision::template(context, &namespace, wanted) {
        owner["spec"]["template"] = template;
    }
    let mut pod = pods::from_template(&owner, "apps/v1", "StatefulSet");
    object::set(&mut pod, &["metadata", "name"], name.as_str());
    for (label, value) in [
        (controller_revision::LABEL, wanted.as_str()),
        ("statefulset.kubernetes.io/pod-name", name.as_str()),
        ("apps.kubernetes.io/pod-index", number.to_string().as_str()),
    ] {
        object::set(&mut pod, &["metadata", "labels", label], value);
    }
    pod["spec"]["hostname"] = json!(name);
    if let Some(service) = object::text(set, &["spec", "serviceName"]).filter(|name| !name.is_empty()) {
        pod["spec"]["subdomain"] = json!(service);
    }
    for claim in object::list(set, &["spec", "volumeClaimTemplates"]) {
        mount_claim(context, set, &mut pod, claim, &namespace);
    }
    let set_name = object::name(set);
    let (kind, reason, message) = match context.try_create("pods", &namespace, pod) {
        Ok(_) => {
            ("Normal", "SuccessfulCreate", format!("Create Pod {name} in StatefulSet {set_name} successful"))
        }
        Err(error) => (
            "Warning",
            "FailedCreate",
            format!("Create Pod {name} in StatefulSet {set_name} failed error: {error}"),
        ),
    };
    context.event(set, EventComponent::StatefulSet, kind, reason, &message);
    kind == "Normal"
}

/// The claim of one pod, made once and kept when the pod goes.
fn mount_claim(
    context: &mut ControllerContext<'_>,
    set: &Value,
    pod: &mut Value,
    template: &Value,
    namespace: &str,
) {
    let volume = object::name(template).to_owned();
    let pod_name = object::name(pod).to_owned();
    let name = format!("{volume}-{pod_name}");
    let key = StoreKey {
        resource: "persistentvolumeclaims".to_owned(),
        name: NamespacedName::new(namespace, &name),
    };
    if context.state.store.object_at(&key).is_none() {
        let mut labels =
            object::value_at(template, &["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
        let selected = object::value_at(set, &["spec", "selector", "matchLabels"]).and_then(Value::as_object);
        for (label, value) in selected.into_iter().flatten() {
            labels[label] = value.clone();
        }
        let claim = json!({"metadata": {"name": name, "labels": labels}, "spec": template["spec"]});
        context.create("persistentvolumeclaims", namespace, claim);
        let message =
            format!("Create Claim {name} Pod {pod_name} in StatefulSet {} success", object::name(set));
        context.event(set, EventComponent::StatefulSet, "Normal", "SuccessfulCreate", &message);
    }
    let volumes = object::value_mut(pod, &["spec", "volumes"]);
    if !volumes.is_array() {
        *volumes = json!([]);
    }
    if let Some(volumes) = volumes.as_array_mut() {
        volumes.retain(|one| one["name"] != volume.as_str());
        volumes.insert(0, json!({"name": volume, "persistentVolumeClaim": {"claimName": name}}));
    }
}
