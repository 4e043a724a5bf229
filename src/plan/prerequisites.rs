//! Objects that other apps of a cluster wait for.
//!
//! A rendered Namespace or definition that does not exist yet delays the other apps of that cluster. A missing
//! Namespace that no app renders is an error of the apply, which is retried.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{AppId, Observation, RenderedObject};
use crate::render::ObjectClaims;

/// Namespaces and definitions that an app of the cluster will create and that do not exist yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingPrerequisites {
    pub namespaces: BTreeMap<Arc<str>, AppId>,
    /// By group and kind.
    pub definitions: BTreeMap<(Arc<str>, Arc<str>), AppId>,
}

impl PendingPrerequisites {
    /// `objects`: those of one cluster for which [`is_prerequisite`] holds. An app whose object another app owns delays
    /// nobody.
    pub fn of<'a>(
        objects: impl IntoIterator<Item = (&'a AppId, &'a RenderedObject)>,
        claims: &ObjectClaims,
        observation: &Observation,
    ) -> Self {
        let mut pending = Self::default();
        let has = |app: &AppId, object: &RenderedObject| {
            let live = observation.objects.get(&object.id);
            claims.other_owner(app, &object.id, live.map(|live| &*live.app)).is_none()
        };
        for (app, object) in objects.into_iter().filter(|(app, object)| has(app, object)) {
            if let Some((group, kind)) = object.defines() {
                if !is_served(observation, group, kind) {
                    pending.definitions.insert((group.into(), kind.into()), app.clone());
                }
            } else if !is_there(observation, object)
                && let Some(namespace) = opened_namespace(app, object)
            {
                pending.namespaces.insert(Arc::clone(namespace), app.clone());
            }
        }
        pending
    }
}

/// Whether other apps may have to wait for this object.
pub fn is_prerequisite(app: &AppId, object: &RenderedObject) -> bool {
    object.defines().is_some() || opened_namespace(app, object).is_some()
}

/// The namespace that is not usable before the object exists.
fn opened_namespace<'o>(app: &AppId, object: &'o RenderedObject) -> Option<&'o Arc<str>> {
    match (&*object.id.group, &*object.id.kind) {
        ("", "Namespace") => Some(&object.id.name),
        // Limits of a project must hold before its first pod.
        ("", "ResourceQuota" | "LimitRange") | ("networking.k8s.io", "NetworkPolicy") if app.is_project() => {
            object.id.namespace.as_ref()
        }
        _ => None,
    }
}

/// A foreign object counts too.
fn is_there(observation: &Observation, object: &RenderedObject) -> bool {
    observation.objects.contains_key(&object.id) || observation.unmanaged_objects.contains_key(&object.id)
}

fn is_served(observation: &Observation, group: &str, kind: &str) -> bool {
    observation.served_kinds.keys().any(|served| *served.group == *group && *served.kind == *kind)
}
