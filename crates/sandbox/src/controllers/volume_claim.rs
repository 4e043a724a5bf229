//! PersistentVolumeClaims: creates a volume for each claim and binds it, as a provisioner does.
//!
//! Claims without a class are served too: they use the default class, for which no object is needed.

use std::time::Duration;

use serde_json::{Value, json};

use super::controller_context::{ControllerContext, key_of};
use super::event_component::EventComponent;
use crate::object;
use crate::store::{NamespacedName, ParsedObject, StoreKey};
use crate::verbs::{RequestDeleteOptions, WriteCaller};

const PROTECTION: &str = "kubernetes.io/pvc-protection";
const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";
const STORAGE_CLASSES: &str = "storageclasses.storage.k8s.io";
const VOLUMES: &str = "persistentvolumes";
/// How often the binder tries again.
const PERIOD: Duration = Duration::from_secs(15);

pub(super) fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey, claim: &Value) {
    if object::is_deleting(claim) {
        return release(context, key, claim);
    }
    if object::text(claim, &["status", "phase"]) == Some("Bound") {
        return;
    }
    let class = object::text(claim, &["spec", "storageClassName"]).unwrap_or("").to_owned();
    let found = context
        .state
        .store
        .object_at(&StoreKey { resource: STORAGE_CLASSES.to_owned(), name: NamespacedName::new("", &class) });
    if !class.is_empty() && found.is_none() {
        let message = format!("storageclass.storage.k8s.io \"{class}\" not found");
        if context.is_due(key, PERIOD) {
            context.event(claim, EventComponent::Volumes, "Warning", "ProvisioningFailed", &message);
        }
        return;
    }
    let waits = found.is_some_and(|class| class["volumeBindingMode"] == "WaitForFirstConsumer");
    if waits
        && !pods_using_claim(context, claim)
            .iter()
            .any(|pod| object::value_at(pod, &["spec", "nodeName"]).is_some())
    {
        let message = "waiting for first consumer to be created before binding";
        if context.is_due(key, PERIOD) {
            context.event(claim, EventComponent::Volumes, "Normal", "WaitForFirstConsumer", message);
        }
        return;
    }
    bind(context, key, claim, &class);
}

pub(super) fn claims_of_pod(pod: &Value) -> Vec<StoreKey> {
    let names = object::list(pod, &["spec", "volumes"])
        .iter()
        .filter_map(|volume| object::text(volume, &["persistentVolumeClaim", "claimName"]));
    let key = |name| StoreKey {
        resource: "persistentvolumeclaims".to_owned(),
        name: NamespacedName::new(object::namespace(pod), name),
    };
    names.map(key).collect()
}

/// The pods that mount a claim and have not ended.
fn pods_using_claim(context: &ControllerContext<'_>, claim: &Value) -> Vec<ParsedObject> {
    let name = object::name(claim);
    context
        .state
        .store
        .list("pods", Some(object::namespace(claim)))
        .filter(|pod| !super::pods::is_finished(pod))
        .filter(|pod| {
            object::list(pod, &["spec", "volumes"])
                .iter()
                .any(|volume| object::text(volume, &["persistentVolumeClaim", "claimName"]) == Some(name))
        })
        .cloned()
        .collect()
}

fn bind(context: &mut ControllerContext<'_>, key: &StoreKey, claim: &Value, class: &str) {
    let volume = format!("pvc-{}", object::uid(claim));
    let size = claim["spec"]["resources"]["requests"].clone();
    let modes = claim["spec"]["accessModes"].clone();
    let mut spec = json!({"capacity": size, "accessModes": modes,
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": object::namespace(claim),
            "name": object::name(claim), "uid": object::uid(claim), "apiVersion": "v1",
            "resourceVersion": claim["metadata"]["resourceVersion"]},
        "persistentVolumeReclaimPolicy": "Delete", "volumeMode": claim["spec"]["volumeMode"],
        "hostPath": {"path": format!("/var/local/{volume}"), "type": ""}});
    if !class.is_empty() {
        spec["storageClassName"] = json!(class);
    }
    let made = context.create(VOLUMES, "", json!({"metadata": {"name": volume}, "spec": spec}));
    if let Some(made) = made {
        context.change_status(&key_of(VOLUMES, &made), &WriteCaller::controller(), |status| {
            status["phase"] = json!("Bound");
        });
    }
    context.change(key, |claim| {
        for note in ["bind-completed", "bound-by-controller"] {
            object::set(claim, &["metadata", "annotations", &format!("pv.kubernetes.io/{note}")], "yes");
        }
        object::set_default(claim, &["spec", "volumeName"], volume.as_str());
    });
    context.change_status(key, &WriteCaller::controller(), |status| {
        status["phase"] = json!("Bound");
        status["accessModes"] = modes;
        status["capacity"] = size;
    });
}

/// A deleted claim stays while pods use it; its volume goes with it.
fn release(context: &mut ControllerContext<'_>, key: &StoreKey, claim: &Value) {
    if !pods_using_claim(context, claim).is_empty() {
        // each of them calls when it goes
        return;
    }
    let volume = object::text(claim, &["spec", "volumeName"]).unwrap_or("").to_owned();
    context.drop_finalizer(key, PROTECTION);
    let volume = StoreKey { resource: VOLUMES.to_owned(), name: NamespacedName::new("", &volume) };
    let ours = context.state.store.object_at(&volume).is_some_and(|volume| {
        object::text(volume, &["spec", "claimRef", "uid"]) == Some(object::uid(claim))
            && object::text(volume, &["spec", "persistentVolumeReclaimPolicy"]) == Some("Delete")
    });
    if ours {
        context.delete(&volume, &RequestDeleteOptions::default());
    }
}

/// A deleted volume stays while its claim is there.
pub(super) fn release_volume(context: &mut ControllerContext<'_>, key: &StoreKey, volume: &Value) {
    let claim = object::text(volume, &["spec", "claimRef", "uid"]).unwrap_or("");
    if !object::is_deleting(volume) || context.state.store.by_uid(claim).is_some() {
        return;
    }
    context.drop_finalizer(key, VOLUME_PROTECTION);
}
