//! Detects drift: whether an object that was applied as rendered has changed since.

use serde::Serialize;

use crate::model::{LiveObject, LiveReplicas, ReplicasOwner, UnmanagedObject};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Drift {
    /// No field of it is ours in `managedFields` any more.
    Disowned,
    /// Another manager set fields of ours, perhaps to the same values.
    FieldsTaken,
    /// Values of our fields changed, and no other manager set them: an admission webhook did.
    ValuesChanged,
    Scaled,
    /// Uncertain: our `managedFields` entry lacks applied fields.
    NotCovered,
    /// Uncertain: somebody wrote the object, and its values are not watched.
    Written,
}

impl Drift {
    /// Only a request to the cluster can tell whether the object differs.
    pub fn is_uncertain(self) -> bool {
        matches!(self, Self::NotCovered | Self::Written)
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::Disowned => "the applied fields have no field manager",
            Self::FieldsTaken => "another field manager set applied fields",
            Self::ValuesChanged => "applied values were changed",
            Self::Scaled => "it was scaled by another client",
            Self::NotCovered => "some applied fields may be missing",
            Self::Written => "it was changed by another client",
        }
    }
}

/// Expects an object whose hash equals that of the render. `is_said`: Git sets the replicas, and no autoscaler of
/// ours targets the object.
pub fn detect_drift(live: &LiveObject, is_said: bool) -> Option<Drift> {
    let now = &live.ownership;
    if now.fields.is_none() {
        return Some(Drift::Disowned);
    }
    let Some(then) = &live.settled_ownership else { return Some(Drift::NotCovered) };
    if now.fields != then.fields {
        return Some(Drift::FieldsTaken);
    }
    // Checked before the values, which exclude the replicas: values that the cluster keeps overruling are not
    // repaired.
    if is_said && is_scaled(then.replicas, now.replicas) {
        return Some(Drift::Scaled);
    }
    if now.values.zip(then.values).is_some_and(|(now, then)| now != then) {
        return Some(Drift::ValuesChanged);
    }
    now.others.zip(then.others).is_some_and(|(now, then)| now != then).then_some(Drift::Written)
}

/// Scaling by an autoscaler is no drift. A number that a person set is put back, even if an autoscaler set the one
/// before.
fn is_scaled(then: Option<LiveReplicas>, now: Option<LiveReplicas>) -> bool {
    let owner = |replicas: Option<LiveReplicas>| replicas.map(|it| it.owner);
    now != then
        && match owner(now) {
            Some(ReplicasOwner::Autoscaler | ReplicasOwner::Unknown) => false,
            Some(ReplicasOwner::Other) => true,
            Some(ReplicasOwner::Tutti) | None => owner(then) == Some(ReplicasOwner::Tutti),
        }
}

/// What an apply sends as `spec.replicas`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SentReplicas {
    #[default]
    AsRendered,
    /// An autoscaler owns the number, and the field is still ours: leaving it out would reset it.
    AsLive(i64),
    /// An autoscaler owns the number and the field.
    LeftOut,
}

impl SentReplicas {
    /// `unlabelled`: an object of ours that lost its label. `said`: the number in Git.
    pub fn of(
        live: Option<&LiveObject>,
        unlabelled: Option<&UnmanagedObject>,
        said: Option<i64>,
        autoscaled: bool,
    ) -> Self {
        match live.map_or(unlabelled.and_then(|it| it.replicas), |live| live.ownership.replicas) {
            Some(LiveReplicas { owner: ReplicasOwner::Autoscaler, .. }) => Self::LeftOut,
            // If the count equals the number in Git, the field stays ours: the next commit may set another number.
            Some(LiveReplicas { owner: ReplicasOwner::Unknown, count })
                if autoscaled || said != Some(count) =>
            {
                Self::LeftOut
            }
            Some(LiveReplicas { owner: ReplicasOwner::Tutti, count }) if autoscaled => Self::AsLive(count),
            Some(LiveReplicas { owner: ReplicasOwner::Other, .. }) if autoscaled => Self::LeftOut,
            _ => Self::AsRendered,
        }
    }
}
