//! What apps on one cluster have to do with each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{AppId, ObjectId, Observation, Rendered, RenderedObject};

/// Objects that more than one app renders, with all of these apps. None of them may have it.
pub type Claims = BTreeMap<ObjectId, Vec<AppId>>;

/// The conflicting claims among the renders of one cluster.
pub fn claims<'a>(renders: impl IntoIterator<Item = &'a Rendered>) -> Claims {
    let mut claims = Claims::new();
    for render in renders {
        for object in &*render.objects {
            let apps = claims.entry(object.id.clone()).or_default();
            if !apps.contains(&render.app) {
                apps.push(render.app.clone());
            }
        }
    }
    claims.retain(|_, apps| apps.len() > 1);
    for apps in claims.values_mut() {
        apps.sort();
    }
    claims
}

/// What some app of a cluster brings there, and is not there yet: others wait for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    pub namespaces: BTreeMap<Arc<str>, AppId>,
    /// By group and kind.
    pub definitions: BTreeMap<(Arc<str>, Arc<str>), AppId>,
}

impl Pending {
    /// From all renders of one cluster.
    pub fn of<'a>(renders: impl IntoIterator<Item = &'a Rendered>, observation: &Observation) -> Self {
        let mut pending = Self::default();
        for render in renders {
            for object in &*render.objects {
                if let Some((group, kind)) = object.defines()
                    && !is_served(observation, group, kind)
                {
                    pending.definitions.insert((group.into(), kind.into()), render.app.clone());
                }
                match (&*object.id.group, &*object.id.kind) {
                    // A stranger's namespace is there, though it is not ours.
                    ("", "Namespace") if !is_there(observation, object) => {
                        pending.namespaces.insert(object.id.name.clone(), render.app.clone());
                    }
                    // What limits the pods of a project must hold before the first of them.
                    ("", "ResourceQuota" | "LimitRange") | ("networking.k8s.io", "NetworkPolicy")
                        if render.app.is_project() && !is_there(observation, object) =>
                    {
                        if let Some(namespace) = &object.id.namespace {
                            pending.namespaces.insert(namespace.clone(), render.app.clone());
                        }
                    }
                    _ => {}
                }
            }
        }
        pending
    }
}

fn is_there(observation: &Observation, object: &RenderedObject) -> bool {
    observation.objects.contains_key(&object.id) || observation.strangers.contains_key(&object.id)
}

fn is_served(observation: &Observation, group: &str, kind: &str) -> bool {
    observation.served.keys().any(|served| *served.group == *group && *served.kind == *kind)
}
