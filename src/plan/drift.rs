//! Whether a live object that was applied as rendered is still what it was then.

use serde::Serialize;

use crate::model::{Live, LiveReplicas, Scaler, Stranger};

/// How it is not, or may not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Drift {
    /// Nothing of it is ours any more in its `managedFields`.
    Disowned,
    /// Somebody else set fields of ours, perhaps to what they were.
    FieldsTaken,
    /// Values of ours are others, though nobody else set them: admission did.
    ValuesChanged,
    Scaled,
    /// A doubt: what is ours there is not all that was applied.
    NotCovered,
    /// A doubt: somebody wrote it, and its values are not watched.
    Written,
}

impl Drift {
    /// Only the cluster can tell whether anything is different.
    pub fn is_doubt(self) -> bool {
        matches!(self, Self::NotCovered | Self::Written)
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::Disowned => "our fields are nobody's any more",
            Self::FieldsTaken => "somebody else set fields of ours",
            Self::ValuesChanged => "values of ours were changed",
            Self::Scaled => "somebody scaled it",
            Self::NotCovered => "not known to hold all that was applied",
            Self::Written => "somebody else wrote it",
        }
    }
}

/// Of an object whose hash is that of what is rendered. `is_said`: Git says how many replicas, and no autoscaler of ours targets
/// it.
pub fn of(live: &Live, is_said: bool) -> Option<Drift> {
    let now = &live.ownership;
    if now.fields.is_none() {
        return Some(Drift::Disowned);
    }
    let Some(then) = &live.settled else { return Some(Drift::NotCovered) };
    if now.fields != then.fields {
        return Some(Drift::FieldsTaken);
    }
    // Before the values, which are without it: they may be kept by the cluster, and then nothing is done about them.
    if is_said && is_scaled(then.replicas, now.replicas) {
        return Some(Drift::Scaled);
    }
    if now.values.zip(then.values).is_some_and(|(now, then)| now != then) {
        return Some(Drift::ValuesChanged);
    }
    now.others.zip(then.others).is_some_and(|(now, then)| now != then).then_some(Drift::Written)
}

/// An autoscaler scales as it likes. A person's number is put back, also where an autoscaler's was before.
fn is_scaled(then: Option<LiveReplicas>, now: Option<LiveReplicas>) -> bool {
    let owner = |replicas: Option<LiveReplicas>| replicas.map(|it| it.owner);
    now != then
        && match owner(now) {
            Some(Scaler::Autoscaler | Scaler::Unknown) => false,
            Some(Scaler::Other) => true,
            Some(Scaler::Applied) | None => owner(then) == Some(Scaler::Applied),
        }
}

/// What an apply says of `spec.replicas`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SentReplicas {
    #[default]
    AsRendered,
    /// An autoscaler decides, and the field is still ours: to leave it out would reset it.
    AsLive(i64),
    /// An autoscaler decides, and the field is its own.
    LeftOut,
}

impl SentReplicas {
    /// `unlabelled`: it is ours, but for its label. `said`: by Git.
    pub fn of(
        live: Option<&Live>,
        unlabelled: Option<&Stranger>,
        said: Option<i64>,
        autoscaled: bool,
    ) -> Self {
        match live.map_or(unlabelled.and_then(|it| it.replicas), |live| live.ownership.replicas) {
            Some(LiveReplicas { owner: Scaler::Autoscaler, .. }) => Self::LeftOut,
            // The number that Git says is ours to have: the next commit may say another.
            Some(LiveReplicas { owner: Scaler::Unknown, count }) if autoscaled || said != Some(count) => {
                Self::LeftOut
            }
            Some(LiveReplicas { owner: Scaler::Applied, count }) if autoscaled => Self::AsLive(count),
            Some(LiveReplicas { owner: Scaler::Other, .. }) if autoscaled => Self::LeftOut,
            _ => Self::AsRendered,
        }
    }
}
