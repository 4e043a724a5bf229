//! What a cluster was seen to hold.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::{
    AppId, Digest, FieldPath, Health, InstallMark, Judged, Kind, ObjectId, ObjectMark, Revision, Status,
    SyncWave,
};

/// One object that carries this instance's label and is itself the object that was applied (its
/// origin fits): the compact record that is kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    pub uid: Arc<str>,
    pub resource_version: Arc<str>,
    pub generation: i64,
    /// As served by the watch. Thousands share it.
    pub kind: Arc<Kind>,
    /// The exact `namespace/name` from the annotation `tutti.dev/app`.
    pub app: Arc<str>,
    /// From the annotation; `None` when somebody took it off.
    pub hash: Option<Digest>,
    /// From the annotation: the commit that was applied last.
    pub revision: Option<Arc<str>>,
    /// From the annotation.
    pub marks: Option<Box<Marks>>,
    /// `tutti.dev/prune: keep`.
    pub keep: bool,
    /// From the annotation.
    pub wave: SyncWave,
    /// A run of a release of a chart that has come to its end, well or not.
    pub is_ended_run: bool,
    /// The volume claims of its pods would be deleted with it.
    pub claims_go_along: bool,
    /// It has a deletionTimestamp.
    pub deleting: bool,
    pub health: Health,
    /// Of a workload: how many pods it wants and how many are available.
    pub pods: Option<PodCount>,
    /// Its creationTimestamp (RFC 3339).
    pub created: Option<Arc<str>>,
    /// Who set what of it.
    pub ownership: Ownership,
    /// What `ownership` was when it was known to hold everything that `hash` says; `None` until that is known.
    pub settled: Option<Ownership>,
    /// What was settled was applied again, and the values that are there now came of it: something changes what is applied.
    pub overruled: bool,
    /// By what `settled` is told. Kept until it is settled.
    pub evidence: Option<Evidence>,
    /// When its app leaves fields of it to others. What `ownership` says is without these fields.
    pub ignored: Option<Arc<Ignored>>,
}

impl Live {
    /// What was applied last, as its annotations say.
    pub fn was(&self) -> Option<Was> {
        let revision = Revision::from(self.revision.as_deref()?);
        Some(Was { app: AppId::parse(&self.app)?, revision, hash: self.hash?, content: self.content() })
    }

    /// What others did to it, where that is known.
    pub fn changes(&self) -> Option<&Arc<ForeignChanges>> {
        match &self.evidence {
            Some(Evidence::Changes(changes)) => Some(changes),
            _ => None,
        }
    }

    /// An apply shows what is there when everything was wanted. `before`: the values that it was to put back. Whether it did not,
    /// as they are there all the same.
    pub fn settle(&mut self, shown: &Ownership, before: Option<NonZeroU64>) -> bool {
        let then = self.settled.take().and_then(|settled| settled.values);
        let is_overruled = before.is_some() && before == shown.values && then.is_some() && before != then;
        // What was there then stays what is wanted: where it comes back, all is well.
        let values = if is_overruled { then } else { shown.values };
        self.overruled = is_overruled && self.ownership.values == before;
        self.settled = Some(Ownership { values, ..shown.clone() });
        let is_as_shown = self.ownership.fields == shown.fields;
        self.evidence = self.evidence.take().filter(|it| matches!(it, Evidence::Changes(_)) && !is_as_shown);
        self.overruled
    }

    pub fn install(&self) -> Option<&InstallMark> {
        self.marks.as_ref()?.install.as_ref()
    }

    /// What an app in waves wrote on it.
    pub fn rollout(&self) -> Option<&ObjectMark> {
        Some(&self.marks.as_ref()?.rollout)
    }

    /// What it was applied as, without its scale, where that is known.
    pub fn content(&self) -> Option<Digest> {
        self.rollout()?.content
    }

    /// It is there in place of another one: well, and not only because somebody holds it before its pods came.
    pub fn can_take_over(&self) -> bool {
        match self.health.status {
            Status::Current => true,
            Status::Suspended => self.pods.is_none_or(|pods| pods.available >= pods.desired),
            _ => false,
        }
    }
}

/// What few objects say of releases and rollouts, in annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub install: Option<InstallMark>,
    pub rollout: ObjectMark,
}

impl Marks {
    /// `None` where there are none.
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// A hundred thousand of them are kept: with its two counters one is 320 bytes, a size in which allocators deal.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Live>() <= 304);

/// What was applied last to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Was {
    pub app: AppId,
    pub revision: Revision,
    pub hash: Digest,
    /// Without its scale, where it says that: the commit may have another number of pods.
    pub content: Option<Digest>,
}

/// By what it is told whether an object that is seen for the first time holds everything that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The fields that are ours, as `managedFields` writes them: the text, which is small.
    Fields(Arc<str>),
    /// None: what others did to it is known, until it is as applied again.
    Changes(Arc<ForeignChanges>),
}

/// What others did to an object that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignChanges {
    /// What we say and somebody else has now, or nobody; and what stands in the place of ours.
    pub fields: Vec<ForeignField>,
    pub in_place: Displacement,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignField {
    /// Empty where the field is gone.
    pub manager: String,
    pub field: String,
}

impl ForeignField {
    /// `kubectl-edit set .data.level, .data.mode is gone and 2 more`.
    pub fn words(fields: &[Self]) -> String {
        /// How many are told of one object.
        const MOST: usize = 3;
        let told = fields.iter().take(MOST).map(|Self { manager, field }| match manager.as_str() {
            "" => format!("{field} is gone"),
            manager => format!("{manager} set {field}"),
        });
        let told = told.collect::<Vec<_>>().join(", ");
        match fields.len().saturating_sub(MOST) {
            0 => told,
            more => format!("{told} and {more} more"),
        }
    }
}

/// Whether something of others stands in the place of ours, so that an apply alone does not put ours back.
#[derive(Clone, PartialEq, Eq)]
pub enum Displacement {
    Nothing,
    /// Items of ours are gone from a list, and only metadata is known.
    NotKnown,
    /// The object as it was seen.
    Seen(Box<Value>),
}

/// Without the object, which may hold what must not be told.
impl fmt::Debug for Displacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::NotKnown => "NotKnown",
            Self::Seen(_) => "Seen",
        })
    }
}

/// Which of the fields that an app leaves to others are still ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    pub paths: Vec<FieldPath>,
    /// As `managedFields` writes them.
    pub ours: Value,
    /// What a workload runs whose image is among these fields.
    pub version: Option<Box<str>>,
}

/// Who set what of an object, in little space: equal numbers, equal fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ownership {
    /// Of the fields that our applies own, and since when; `None` when there are none any more.
    pub fields: Option<NonZeroU64>,
    /// Of the live values of those fields; `None` where only metadata is watched.
    pub values: Option<NonZeroU64>,
    /// Of what others wrote, but for statuses, where only metadata is watched.
    pub others: Option<NonZeroU64>,
    /// `spec.replicas`, which stands apart because autoscalers write it.
    pub replicas: Option<LiveReplicas>,
}

/// `spec.replicas` of a live object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveReplicas {
    pub count: i64,
    pub owner: Scaler,
}

/// Who set `spec.replicas` last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaler {
    /// We did.
    Applied,
    /// An autoscaler, or something else that writes the `scale` subresource and is not kubectl.
    Autoscaler,
    /// Nobody knows any more: the server merged who had what, or it was cleared. It was not put back, so it may well be an autoscaler's.
    Unknown,
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PodCount {
    pub desired: u32,
    pub available: u32,
}

/// An object that was there before its first apply and is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// Field managers of its `managedFields`, sorted; or the other instance's.
    pub managers: Vec<String>,
    /// Only for an app that adopts: what that would do.
    pub takeover: Option<Takeover>,
    pub uid: Arc<str>,
    pub resource_version: Arc<str>,
    /// Of one that we applied: its number of replicas, where Git says one.
    pub replicas: Option<LiveReplicas>,
}

/// What taking an object over would do to it, as the cluster itself says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// Of the object as rendered when the cluster was asked.
    pub hash: Digest,
    /// Or why it cannot be taken over.
    pub effect: Result<Effect, String>,
}

/// The difference between an object and what it is once it is ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Effect {
    /// Whose fields become ours, sorted.
    pub from: Vec<String>,
    /// Paths of fields that get another value, come or go; not our own labels and annotations.
    pub changes: Vec<String>,
    /// Of a workload: whether its pods are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces_pods: Option<bool>,
}

/// A change that the cluster refused, because it never makes it to an object that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Immutable {
    /// Of the object as rendered.
    pub hash: Digest,
    /// Of the object that is there.
    pub uid: Arc<str>,
    pub fields: Vec<String>,
}

/// One cluster as seen through its watches, plus what was asked for by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The first list of every kind in use has been read whole. Nothing is pruned before.
    pub complete: bool,
    /// Shared with whoever looks at some of them.
    pub objects: BTreeMap<ObjectId, Arc<Live>>,
    /// Looked up by name before a first apply, and found to be somebody else's.
    pub strangers: BTreeMap<ObjectId, Stranger>,
    /// Looked up by name before a first apply, and not there.
    pub absent: BTreeSet<ObjectId>,
    /// What was applied last to objects that lost the label or the annotations that say it, while we looked. By uid: another
    /// object of the name was never ours.
    pub unmarked: BTreeMap<ObjectId, (Arc<str>, Was)>,
    /// Looked up by name, and found to be applied by us once though nothing marks them: what was applied last is not known, and
    /// who looks again wants their number of replicas too.
    pub stripped: BTreeSet<ObjectId>,
    /// Applied, and refused for good.
    pub immutable: BTreeMap<ObjectId, Immutable>,
    /// What policies said of writes that have not been made.
    pub judged: BTreeMap<ObjectId, Judged>,
    /// Kinds that the cluster serves (any version), with whether they are namespaced.
    pub served: Arc<BTreeMap<Kind, bool>>,
}

impl Observation {
    /// Whether this very object is there, and not another of its name.
    pub fn shows(&self, id: &ObjectId, uid: &str) -> bool {
        self.objects.get(id).is_some_and(|live| *live.uid == *uid)
    }

    /// What is known of these objects.
    #[must_use]
    pub fn part<'a>(&self, ids: impl Iterator<Item = &'a ObjectId>) -> Self {
        let mut part = Self { complete: true, served: Arc::clone(&self.served), ..Self::default() };
        for id in ids {
            let own = || id.clone();
            part.objects.extend(self.objects.get(id).map(|it| (own(), Arc::clone(it))));
            part.strangers.extend(self.strangers.get(id).map(|it| (own(), it.clone())));
            part.absent.extend(self.absent.get(id).cloned());
            part.unmarked.extend(self.unmarked.get(id).map(|it| (own(), it.clone())));
            part.stripped.extend(self.stripped.get(id).cloned());
            part.judged.extend(self.judged.get(id).map(|it| (own(), it.clone())));
            part.immutable.extend(self.immutable.get(id).map(|it| (own(), it.clone())));
        }
        part
    }

    /// What was applied last to the object of this uid, if it lost its marks while we looked.
    pub fn was(&self, id: &ObjectId, uid: &str) -> Option<&Was> {
        self.unmarked.get(id).filter(|(known, _)| **known == *uid).map(|(_, was)| was)
    }

    /// An object as it is now, before it takes the place of what was known. Who takes off the marks that say by which commit
    /// it is ours does not make its fields his.
    pub fn note_marks(&mut self, id: &ObjectId, live: &Live) {
        let known = self.objects.get(id).filter(|known| known.uid == live.uid);
        if live.was().is_some() {
            self.unmarked.remove(id);
        } else if let Some(was) = known.and_then(|known| known.was()) {
            self.unmarked.insert(id.clone(), (Arc::clone(&live.uid), was));
        }
    }

    /// An object that is seen no longer. One that is rendered may be there still, without its label.
    pub fn remove(&mut self, id: &ObjectId, is_rendered: impl FnOnce() -> bool) -> Option<Arc<Live>> {
        let known = self.objects.remove(id)?;
        match known.was() {
            Some(was) if is_rendered() => {
                self.unmarked.insert(id.clone(), (Arc::clone(&known.uid), was));
            }
            Some(_) => {
                self.unmarked.remove(id);
            }
            None => {}
        }
        Some(known)
    }
}
