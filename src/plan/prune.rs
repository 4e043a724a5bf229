//! Objects that nobody renders any more: which they are, and what was decided about them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::reason::with_words;
use super::{Action, Left, Phase, Reason, SentReplicas, Step, Turn};
use crate::model::{
    AppId, Approval, ApprovedObject, ClusterName, Digest, Kind, Live, ObjectId, Observation, Rendered,
    SyncWave,
};

/// One of our objects that no app renders on its cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// The app that applied it last; it may be gone.
    pub app: AppId,
    pub cluster: ClusterName,
    pub object: ObjectId,
    pub kind: Kind,
    pub uid: String,
    pub resource_version: String,
    /// Its annotation says that it stays.
    pub keep: bool,
    #[serde(skip_serializing_if = "SyncWave::is_default")]
    pub wave: SyncWave,
    /// A run of an earlier release of a chart: it did its work, and no release comes without leaving one behind.
    pub is_ended_run: bool,
    /// The volume claims of its pods would be deleted with it.
    pub claims_go_along: bool,
    /// Objects of ours, of whatever app, that would go with it: what is in a namespace, what a definition defines. Also
    /// those that are rendered and not there yet: an apply may be under way. A namespace goes when nothing in it is wanted,
    /// kept, or on its way any more. What is wanted comes first: it is what a person has to do something about.
    pub contents: Vec<Content>,
}

/// What would go with a namespace or a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Content {
    pub object: ObjectId,
    /// An app renders it. It may not be there yet.
    pub is_wanted: bool,
}

impl Candidate {
    pub fn approved_object(&self) -> ApprovedObject {
        ApprovedObject { cluster: self.cluster.clone(), id: self.object.clone(), uid: self.uid.clone() }
    }

    /// Its place among what goes: the last one first.
    pub fn turn(&self) -> Turn {
        Turn::of_delete(&self.object, self.wave)
    }

    /// The same object in a newer state. `None` when it is another one of its name, or another app's.
    pub fn seen_again(&self, live: &Live) -> Option<Self> {
        let is_same = *live.uid == *self.uid && *live.app == self.app.to_string();
        is_same.then(|| Self {
            resource_version: live.resource_version.to_string(),
            keep: live.keep,
            ..self.clone()
        })
    }
}

/// The candidates of one cluster, among the objects that the app which applied them renders no longer (`strays`).
/// `rendered` holds what all apps render there. None from a view that is not whole; none that is being deleted already.
/// `plural` is the name of an object's kind in paths.
pub fn candidates<'a>(
    cluster: &ClusterName,
    observation: &Observation,
    strays: impl IntoIterator<Item = &'a ObjectId>,
    rendered: &BTreeSet<ObjectId>,
    plural: &dyn Fn(&ObjectId) -> Option<String>,
) -> Vec<Candidate> {
    if !observation.complete {
        return Vec::new();
    }
    let gone = |id: &ObjectId, live: &Live| {
        !live.deleting && !rendered.contains(id) && !is_twin_of_rendered(id, rendered)
    };
    let candidate = |(id, live): (&ObjectId, &Arc<Live>)| {
        Some(Candidate {
            // An annotation that names no app is a doubt.
            app: AppId::parse(&live.app)?,
            cluster: cluster.clone(),
            object: id.clone(),
            kind: Kind::clone(&live.kind),
            uid: live.uid.to_string(),
            resource_version: live.resource_version.to_string(),
            keep: live.keep,
            wave: live.wave,
            is_ended_run: live.is_ended_run,
            claims_go_along: live.claims_go_along,
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
) -> Vec<Content> {
    if !id.takes_others_along() {
        return Vec::new();
    }
    let is_inside = |other: &&ObjectId| match &*id.kind {
        "Namespace" => other.namespace.as_ref() == Some(&id.name),
        // Named `menus.example.com`. A kind whose plural nobody knows may be the one.
        "CustomResourceDefinition" => id.name.split_once('.').is_some_and(|(defined, group)| {
            *other.group == *group && plural(other).is_none_or(|plural| plural == defined)
        }),
        _ => false,
    };
    let is_left = |other: &&ObjectId| is_inside(other) && !rendered.contains(*other);
    let left: BTreeSet<&ObjectId> = observation.objects.keys().filter(is_left).collect();
    let content = |object: &ObjectId, is_wanted| Content { object: object.clone(), is_wanted };
    let wanted = rendered.iter().filter(is_inside).map(|object| content(object, true));
    wanted.chain(left.into_iter().map(|object| content(object, false))).collect()
}

/// Old servers show one and the same object in the group `extensions` and in its later group.
fn is_twin_of_rendered(id: &ObjectId, rendered: &BTreeSet<ObjectId>) -> bool {
    &*id.group == "extensions"
        && ["apps", "networking.k8s.io", "policy"]
            .into_iter()
            .any(|group| rendered.contains(&ObjectId { group: group.into(), ..id.clone() }))
}

/// The digest that an approval is bound to: an app as rendered on all its clusters. An app that is
/// rendered nowhere has one too.
pub fn rendered_digest<'a>(renders: impl IntoIterator<Item = &'a Rendered>) -> Digest {
    let mut parts: Vec<[String; 2]> = renders
        .into_iter()
        .map(|render| [render.cluster.as_str().to_owned(), render.digest().to_string()])
        .collect();
    parts.sort();
    Digest::of_json(&json!(parts))
}

/// What happens to one candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    pub candidate: Candidate,
    pub action: Action,
    #[serde(serialize_with = "with_words")]
    pub reason: Reason,
}

impl Decided {
    pub fn step(&self) -> Step {
        let Candidate { object, kind, uid, resource_version, wave, .. } = self.candidate.clone();
        Step {
            values: None,
            install: None,
            rollout: None,
            replicas: SentReplicas::default(),
            phase: Phase::of(&object),
            hook: None,
            wave,
            object,
            unit: Arc::default(),
            kind,
            action: self.action,
            reason: self.reason.clone(),
            uid: Some(uid),
            resource_version: Some(resource_version),
            seen: None,
            is_at_rest: false,
            applied: None,
            source: None,
            force: false,
            may_replace: false,
            left: Left::default(),
            was: None,
            changed: None,
        }
    }
}

/// Each list sorted by cluster and app, and there in the order of deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PruneDecision {
    /// To be deleted now.
    pub deletes: Vec<Decided>,
    /// To be left now, without our labels and our ownership of fields.
    pub releases: Vec<Decided>,
    /// Not now: Wait, or Skip while a hold stands.
    pub waiting: Vec<Decided>,
    /// Left for good.
    pub orphans: Vec<Decided>,
    /// What people are asked to approve, one for each app that needs it.
    pub approvals_wanted: Vec<Approval>,
    /// What may run here without anybody's word. A process that has deleted other things at this commit, or others that wait since
    /// an earlier one, may ask for it all the same.
    #[serde(skip)]
    pub approvals_early: Vec<Approval>,
    /// While there is more than the cap: all that makes it so, also what waits for something else, or may go by an approval that
    /// could be taken back.
    #[serde(skip)]
    pub over_cap: BTreeSet<ApprovedObject>,
    pub approvals_unused: Vec<UnusedApproval>,
}

impl PruneDecision {
    pub fn all(&self) -> impl Iterator<Item = &Decided> {
        self.deletes.iter().chain(&self.releases).chain(&self.waiting).chain(&self.orphans)
    }
}

/// An approval that does nothing, which is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnusedApproval {
    pub name: String,
    pub because: Unused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Unused {
    /// The app renders to something else now.
    RenderChanged,
    /// None of its objects waits to be deleted.
    NothingPending,
}
