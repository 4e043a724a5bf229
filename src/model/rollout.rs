//! How a change of an AppSet shall reach its podSets: wave by wave.

use serde::Serialize;

use super::ClusterName;

/// Groups in order, canary clusters, and whether somebody confirms between waves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// Groups that are not named come last, together.
    pub groups: Vec<RolloutGroup>,
    /// The first wave; empty: all canary podSets.
    pub canary_clusters: Vec<ClusterName>,
    pub needs_confirmation: bool,
}

impl Rollout {
    /// It asks for nothing but everything at once.
    pub fn is_plain(&self) -> bool {
        self.groups.is_empty() && self.canary_clusters.is_empty() && !self.needs_confirmation
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RolloutGroup {
    Canary,
    Blue,
    Green,
}
