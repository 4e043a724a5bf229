//! Live objects of a cluster: who owns their fields, and what other managers changed.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::{
    AppId, Digest, FieldPath, GroupVersionKind, Health, HealthStatus, InstallAnnotation,
    ObjectRolloutAnnotations, Revision, SyncWave,
};

/// The compact record of one live object that carries this instance's label and whose origin annotation names itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveObject {
    pub uid: Arc<str>,
    pub resource_version: Arc<str>,
    pub generation: i64,
    /// As served by the watch. Thousands share it.
    pub kind: Arc<GroupVersionKind>,
    /// The exact `namespace/name` from the annotation `tutti.dev/app`.
    pub app: Arc<str>,
    /// From the annotation; `None` when somebody took it off.
    pub hash: Option<Digest>,
    /// From the annotation: the commit that was applied last.
    pub revision: Option<Arc<str>>,
    /// From the annotation.
    pub annotations: Option<Box<TrackingAnnotations>>,
    /// `tutti.dev/prune: keep`.
    pub keep: bool,
    /// From the annotation.
    pub wave: SyncWave,
    /// A finished Job or Pod of a chart's release, whether it succeeded or failed.
    pub is_ended_run: bool,
    /// The volume claims of its pods would be deleted with it.
    pub deletes_volume_claims: bool,
    /// It has a deletionTimestamp.
    pub deleting: bool,
    pub health: Health,
    /// Of a workload: desired and available pods.
    pub pods: Option<PodCount>,
    /// Its creationTimestamp (RFC 3339).
    pub created: Option<Arc<str>>,
    pub ownership: FieldOwnership,
    /// The `ownership` at which the object was known to have all rendered values; `None` until that is known.
    pub settled_ownership: Option<FieldOwnership>,
    /// A repeated apply gave other values than the rendered ones: something in the cluster changes what is applied.
    pub is_overruled: bool,
    /// The evidence for `settled`, kept until that is set.
    pub evidence: Option<OwnershipEvidence>,
    /// Set when the app ignores fields of it. `ownership` excludes these fields.
    pub ignored: Option<Arc<IgnoredFields>>,
}

impl LiveObject {
    /// The last apply, from the annotations.
    pub fn last_applied(&self) -> Option<LastApplied> {
        let revision = Revision::from(self.revision.as_deref()?);
        Some(LastApplied {
            app: AppId::parse(&self.app)?,
            revision,
            hash: self.hash?,
            content: self.content(),
        })
    }

    /// The changes of other managers, as far as they are known.
    pub fn foreign_changes(&self) -> Option<&Arc<ForeignChanges>> {
        match &self.evidence {
            Some(OwnershipEvidence::Changes(changes)) => Some(changes),
            _ => None,
        }
    }

    /// Records the ownership after an apply as settled. `before`: the foreign values that the apply was to revert. Returns true when they
    /// are still there.
    pub fn settle(&mut self, shown: &FieldOwnership, before: Option<NonZeroU64>) -> bool {
        let then = self.settled_ownership.take().and_then(|settled| settled.values);
        let is_overruled = before.is_some() && before == shown.values && then.is_some() && before != then;
        // Keep the earlier settled values: when they come back, the object is repaired.
        let values = if is_overruled { then } else { shown.values };
        self.is_overruled = is_overruled && self.ownership.values == before;
        self.settled_ownership = Some(FieldOwnership { values, ..shown.clone() });
        let is_as_shown = self.ownership.fields == shown.fields;
        self.evidence =
            self.evidence.take().filter(|it| matches!(it, OwnershipEvidence::Changes(_)) && !is_as_shown);
        self.is_overruled
    }

    pub fn install(&self) -> Option<&InstallAnnotation> {
        self.annotations.as_ref()?.install.as_ref()
    }

    /// The rollout annotations of an app in waves.
    pub fn rollout_annotations(&self) -> Option<&ObjectRolloutAnnotations> {
        Some(&self.annotations.as_ref()?.rollout)
    }

    /// The digest of the applied content without scale, if known.
    pub fn content(&self) -> Option<Digest> {
        self.rollout_annotations()?.content
    }

    /// Whether it can replace another object: it is healthy, and not merely paused before its pods started.
    pub fn can_replace(&self) -> bool {
        match self.health.status {
            HealthStatus::Current => true,
            HealthStatus::Suspended => self.pods.is_none_or(|pods| pods.available >= pods.desired),
            _ => false,
        }
    }
}

/// Annotations about releases and rollouts, which few objects have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackingAnnotations {
    pub install: Option<InstallAnnotation>,
    pub rollout: ObjectRolloutAnnotations,
}

impl TrackingAnnotations {
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// A hundred thousand of them are kept: with its two counters one is 320 bytes, a size in which allocators deal.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<LiveObject>() <= 304);

/// The last apply of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastApplied {
    pub app: AppId,
    pub revision: Revision,
    pub hash: Digest,
    /// The content without scale, because the commit may have another number of replicas.
    pub content: Option<Digest>,
}

/// The evidence whether a newly seen object has all applied values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnershipEvidence {
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
    pub displacement: Displacement,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignField {
    /// Empty where the field is gone.
    pub manager: String,
    pub field: String,
}

impl ForeignField {
    /// `kubectl-edit set .data.level, .data.mode is gone and 2 more`.
    pub fn summary(fields: &[Self]) -> String {
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
pub struct IgnoredFields {
    pub paths: Vec<FieldPath>,
    /// As `managedFields` writes them.
    pub owned_fields: Value,
    /// The live version of a workload whose image is ignored.
    pub version: Option<Box<str>>,
}

/// Hashes of the field ownership of an object: equal numbers mean equal fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldOwnership {
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
    pub owner: ReplicasOwner,
}

/// Who set `spec.replicas` last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicasOwner {
    /// We did.
    Tutti,
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
