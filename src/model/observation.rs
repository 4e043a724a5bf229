//! Observations of a cluster: live objects with field ownership, and the results of lookups by name.

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

/// The compact record of one live object that carries this instance's label and whose origin annotation names itself.
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
    /// A finished Job or Pod of a chart's release, whether it succeeded or failed.
    pub is_ended_run: bool,
    /// The volume claims of its pods would be deleted with it.
    pub claims_go_along: bool,
    /// It has a deletionTimestamp.
    pub deleting: bool,
    pub health: Health,
    /// Of a workload: desired and available pods.
    pub pods: Option<PodCount>,
    /// Its creationTimestamp (RFC 3339).
    pub created: Option<Arc<str>>,
    pub ownership: Ownership,
    /// The `ownership` at which the object was known to have all rendered values; `None` until that is known.
    pub settled: Option<Ownership>,
    /// A repeated apply gave other values than the rendered ones: something in the cluster changes what is applied.
    pub overruled: bool,
    /// The evidence for `settled`, kept until that is set.
    pub evidence: Option<Evidence>,
    /// Set when the app ignores fields of it. `ownership` excludes these fields.
    pub ignored: Option<Arc<Ignored>>,
}

impl Live {
    /// The last apply, from the annotations.
    pub fn was(&self) -> Option<Was> {
        let revision = Revision::from(self.revision.as_deref()?);
        Some(Was { app: AppId::parse(&self.app)?, revision, hash: self.hash?, content: self.content() })
    }

    /// The changes of other managers, as far as they are known.
    pub fn changes(&self) -> Option<&Arc<ForeignChanges>> {
        match &self.evidence {
            Some(Evidence::Changes(changes)) => Some(changes),
            _ => None,
        }
    }

    /// Records the ownership after an apply as settled. `before`: the foreign values that the apply was to revert. Returns true when they
    /// are still there.
    pub fn settle(&mut self, shown: &Ownership, before: Option<NonZeroU64>) -> bool {
        let then = self.settled.take().and_then(|settled| settled.values);
        let is_overruled = before.is_some() && before == shown.values && then.is_some() && before != then;
        // Keep the earlier settled values: when they come back, the object is repaired.
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

    /// The rollout annotations of an app in waves.
    pub fn rollout(&self) -> Option<&ObjectMark> {
        Some(&self.marks.as_ref()?.rollout)
    }

    /// The digest of the applied content without scale, if known.
    pub fn content(&self) -> Option<Digest> {
        self.rollout()?.content
    }

    /// Whether it can replace another object: it is healthy, and not merely paused before its pods started.
    pub fn can_take_over(&self) -> bool {
        match self.health.status {
            Status::Current => true,
            Status::Suspended => self.pods.is_none_or(|pods| pods.available >= pods.desired),
            _ => false,
        }
    }
}

/// Annotations about releases and rollouts, which few objects have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub install: Option<InstallMark>,
    pub rollout: ObjectMark,
}

impl Marks {
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// A hundred thousand of them are kept: with its two counters one is 320 bytes, a size in which allocators deal.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Live>() <= 304);

/// The last apply of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Was {
    pub app: AppId,
    pub revision: Revision,
    pub hash: Digest,
    /// The content without scale, because the commit may have another number of replicas.
    pub content: Option<Digest>,
}

/// The evidence whether a newly seen object has all applied values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The fields that are ours, as `managedFields` writes them: the text, which is small.
    Fields(Arc<str>),
    /// The object is known to differ, by these changes.
    Changes(Arc<ForeignChanges>),
}

/// The changes of other managers to an applied object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignChanges {
    /// Our fields that other managers own now, or that are gone.
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
        /// Fields that are listed for one object.
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

/// Whether foreign list items stand in the place of ours, so that an apply alone does not restore ours.
#[derive(Clone, PartialEq, Eq)]
pub enum Displacement {
    Nothing,
    /// Items of ours are gone from a list, and only metadata is known.
    NotKnown,
    /// The object as it was seen.
    Seen(Box<Value>),
}

/// Hides the object, which may contain secrets.
impl fmt::Debug for Displacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::NotKnown => "NotKnown",
            Self::Seen(_) => "Seen",
        })
    }
}

/// The ignored fields of an object that tutti still owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    pub paths: Vec<FieldPath>,
    /// As `managedFields` writes them.
    pub ours: Value,
    /// The live version of a workload whose image is ignored.
    pub version: Option<Box<str>>,
}

/// Hashes of the field ownership of an object: equal numbers mean equal fields.
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
    /// The server merged or cleared the manager entries. The value is not reverted, because it may be an autoscaler's.
    Unknown,
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PodCount {
    pub desired: u32,
    pub available: u32,
}

/// An object that existed before its first apply and that tutti does not manage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// Field managers of its `managedFields`, sorted; or the other instance's.
    pub managers: Vec<String>,
    /// The effect of the adoption; only for an app that adopts.
    pub takeover: Option<Takeover>,
    pub uid: Arc<str>,
    pub resource_version: Arc<str>,
    /// For an object that tutti applied earlier: its replicas, when Git sets them.
    pub replicas: Option<LiveReplicas>,
}

/// The dry run of an adoption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// Of the object as rendered when the cluster was asked.
    pub hash: Digest,
    /// The effect, or the reason why the object cannot be adopted.
    pub effect: Result<Effect, String>,
}

/// The changes to an object by its adoption.
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

/// A refused change of immutable fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Immutable {
    /// Of the object as rendered.
    pub hash: Digest,
    /// Of the object that is there.
    pub uid: Arc<str>,
    pub fields: Vec<String>,
}

/// One cluster as seen through its watches, plus lookups by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The first list of every kind in use has been read whole. Nothing is pruned before.
    pub complete: bool,
    /// In `Arc`s, because subsets share them.
    pub objects: BTreeMap<ObjectId, Arc<Live>>,
    /// Looked up by name before a first apply: an object that tutti does not manage.
    pub strangers: BTreeMap<ObjectId, Stranger>,
    /// Looked up by name before a first apply, and not there.
    pub absent: BTreeSet<ObjectId>,
    /// The last apply of objects that lost tutti's label or annotations while they were watched. With the uid, because another object of
    /// the same name was never ours.
    pub unmarked: BTreeMap<ObjectId, (Arc<str>, Was)>,
    /// Looked up by name: tutti's field manager is there, but label and annotations are missing. The last apply is unknown, and the next
    /// lookup must read the replicas too.
    pub stripped: BTreeSet<ObjectId>,
    /// Refused changes of immutable fields.
    pub immutable: BTreeMap<ObjectId, Immutable>,
    /// Verdicts of policies on pending writes.
    pub judged: BTreeMap<ObjectId, Judged>,
    /// Kinds that the cluster serves (any version), with whether they are namespaced.
    pub served: Arc<BTreeMap<Kind, bool>>,
}

impl Observation {
    /// Whether the object with this uid exists.
    pub fn shows(&self, id: &ObjectId, uid: &str) -> bool {
        self.objects.get(id).is_some_and(|live| *live.uid == *uid)
    }

    /// The observation of some objects.
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

    /// The last apply of the object with this uid, if it lost its label or annotations while it was watched.
    pub fn was(&self, id: &ObjectId, uid: &str) -> Option<&Was> {
        self.unmarked.get(id).filter(|(known, _)| **known == *uid).map(|(_, was)| was)
    }

    /// Records the last apply of an object before its new state replaces the old one. Removed annotations do not end the ownership of its
    /// fields.
    pub fn note_marks(&mut self, id: &ObjectId, live: &Live) {
        let known = self.objects.get(id).filter(|known| known.uid == live.uid);
        if live.was().is_some() {
            self.unmarked.remove(id);
        } else if let Some(was) = known.and_then(|known| known.was()) {
            self.unmarked.insert(id.clone(), (Arc::clone(&live.uid), was));
        }
    }

    /// Removes an object that the watch no longer shows. A rendered object may still exist without its label.
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
