//! The objects that no app renders any more.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::StepOrder;
use crate::model::{
    AppId, ApprovedObject, ClusterName, Digest, GroupVersionKind, LiveObject, ObjectId, Observation,
    RenderedTarget, SyncWave,
};

/// An object of this instance that no app renders on its cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PruneCandidate {
    /// The app that applied it last. It may no longer exist.
    pub app: AppId,
    pub cluster: ClusterName,
    pub object: ObjectId,
    pub kind: GroupVersionKind,
    pub uid: String,
    pub resource_version: String,
    /// Its annotation `prune` is `keep`.
    pub keep: bool,
    #[serde(skip_serializing_if = "SyncWave::is_default")]
    pub wave: SyncWave,
    /// An ended hook run of an earlier release. Every release leaves one behind.
    pub is_ended_run: bool,
    /// A delete would also delete the volume claims of its pods.
    pub claims_go_along: bool,
    /// Objects of ours that a delete of this namespace or definition would delete too, of any app. Rendered objects
    /// count even if they do not exist yet, because an apply may be running. The delete waits until no content is
    /// rendered, kept or pending. Rendered contents come first: a person has to act on them.
    pub contents: Vec<ContainedObject>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainedObject {
    pub object: ObjectId,
    /// An app renders it. It may not exist yet.
    pub is_wanted: bool,
}

impl PruneCandidate {
    pub fn approved_object(&self) -> ApprovedObject {
        ApprovedObject { cluster: self.cluster.clone(), id: self.object.clone(), uid: self.uid.clone() }
    }

    /// The last position is deleted first.
    pub fn delete_order(&self) -> StepOrder {
        StepOrder::of_delete(&self.object, self.wave)
    }

    /// The same object in a newer state. `None` if the name now belongs to another object or app.
    pub fn seen_again(&self, live: &LiveObject) -> Option<Self> {
        let is_same = *live.uid == *self.uid && *live.app == self.app.to_string();
        is_same.then(|| Self {
            resource_version: live.resource_version.to_string(),
            keep: live.keep,
            ..self.clone()
        })
    }
}

/// The candidates of one cluster among `strays`: objects that the app which applied them no longer renders.
/// `rendered` holds the renders of all apps there. An incomplete observation has no candidates, and an object that is
/// being deleted is none. `plural` is the name of an object's kind in paths.
pub fn candidates<'a>(
    cluster: &ClusterName,
    observation: &Observation,
    strays: impl IntoIterator<Item = &'a ObjectId>,
    rendered: &BTreeSet<ObjectId>,
    plural: &dyn Fn(&ObjectId) -> Option<String>,
) -> Vec<PruneCandidate> {
    if !observation.complete {
        return Vec::new();
    }
    let gone = |id: &ObjectId, live: &LiveObject| {
        !live.deleting && !rendered.contains(id) && !is_twin_of_rendered(id, rendered)
    };
    let candidate = |(id, live): (&ObjectId, &Arc<LiveObject>)| {
        Some(PruneCandidate {
            // An annotation that names no app leaves the owner unknown.
            app: AppId::parse(&live.app)?,
            cluster: cluster.clone(),
            object: id.clone(),
            kind: GroupVersionKind::clone(&live.kind),
            uid: live.uid.to_string(),
            resource_version: live.resource_version.to_string(),
            keep: live.keep,
            wave: live.wave,
            is_ended_run: live.is_ended_run,
            claims_go_along: live.deletes_volume_claims,
            contents: contents(id, observation, rendered, plural),
        })
    };
    let live = |id| observation.objects.get_key_value(id);
    strays.into_iter().filter_map(live).filter(|(id, live)| gone(id, live)).filter_map(candidate).collect()
}

fn contents(
    id: &ObjectId,
    observation: &Observation,
    rendered: &BTreeSet<ObjectId>,
    plural: &dyn Fn(&ObjectId) -> Option<String>,
) -> Vec<ContainedObject> {
    if !id.deletes_contents() {
        return Vec::new();
    }
    let is_inside = |other: &&ObjectId| match &*id.kind {
        "Namespace" => other.namespace.as_ref() == Some(&id.name),
        // Named `menus.example.com`. If the plural of a kind is unknown, the kind counts as defined.
        "CustomResourceDefinition" => id.name.split_once('.').is_some_and(|(defined, group)| {
            *other.group == *group && plural(other).is_none_or(|plural| plural == defined)
        }),
        _ => false,
    };
    let is_left = |other: &&ObjectId| is_inside(other) && !rendered.contains(*other);
    let left: BTreeSet<&ObjectId> = observation.objects.keys().filter(is_left).collect();
    let content = |object: &ObjectId, is_wanted| ContainedObject { object: object.clone(), is_wanted };
    let wanted = rendered.iter().filter(is_inside).map(|object| content(object, true));
    wanted.chain(left.into_iter().map(|object| content(object, false))).collect()
}

/// Old servers list an object both in the group `extensions` and in its later group.
fn is_twin_of_rendered(id: &ObjectId, rendered: &BTreeSet<ObjectId>) -> bool {
    &*id.group == "extensions"
        && ["apps", "networking.k8s.io", "policy"]
            .into_iter()
            .any(|group| rendered.contains(&ObjectId { group: group.into(), ..id.clone() }))
}

/// The digest that an approval is bound to: the renders of an app on all its clusters. An app without any render has
/// one too.
pub fn rendered_digest<'a>(renders: impl IntoIterator<Item = &'a RenderedTarget>) -> Digest {
    let mut parts: Vec<[String; 2]> = renders
        .into_iter()
        .map(|render| [render.cluster.as_str().to_owned(), render.digest().to_string()])
        .collect();
    parts.sort();
    Digest::of_json(&json!(parts))
}
