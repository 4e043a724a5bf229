//! What apps on one cluster have to do with each other.
//!
//! A Namespace that one app renders makes the other apps of that cluster wait for it, and so does a definition. A Namespace that no app
//! renders and that is missing is an error of the apply, which is retried.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{AppId, Observation, RenderedObject};
use crate::render::Claims;

/// What some app of a cluster brings there, and is not there yet: others wait for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    pub namespaces: BTreeMap<Arc<str>, AppId>,
    /// By group and kind.
    pub definitions: BTreeMap<(Arc<str>, Arc<str>), AppId>,
}

impl Pending {
    /// From what [`is_waited_for`] on one cluster. Nobody waits for an app whose object another app has.
    pub fn of<'a>(
        objects: impl IntoIterator<Item = (&'a AppId, &'a RenderedObject)>,
        claims: &Claims,
        observation: &Observation,
    ) -> Self {
        let mut pending = Self::default();
        let has = |app: &AppId, object: &RenderedObject| {
            let live = observation.objects.get(&object.id);
            claims.taken_from(app, &object.id, live.map(|live| &*live.app)).is_none()
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

/// Whether other apps may have to wait for this object of an app.
pub fn is_waited_for(app: &AppId, object: &RenderedObject) -> bool {
    object.defines().is_some() || opened_namespace(app, object).is_some()
}

/// The namespace that cannot be used before the object is there.
fn opened_namespace<'o>(app: &AppId, object: &'o RenderedObject) -> Option<&'o Arc<str>> {
    match (&*object.id.group, &*object.id.kind) {
        ("", "Namespace") => Some(&object.id.name),
        // What limits the pods of a project must hold before the first of them.
        ("", "ResourceQuota" | "LimitRange") | ("networking.k8s.io", "NetworkPolicy") if app.is_project() => {
            object.id.namespace.as_ref()
        }
        _ => None,
    }
}

/// A stranger's is there, though it is not ours.
fn is_there(observation: &Observation, object: &RenderedObject) -> bool {
    observation.objects.contains_key(&object.id) || observation.strangers.contains_key(&object.id)
}

fn is_served(observation: &Observation, group: &str, kind: &str) -> bool {
    observation.served.keys().any(|served| *served.group == *group && *served.kind == *kind)
}
