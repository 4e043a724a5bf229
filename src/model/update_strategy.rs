//! The rollout settings of manifests: waves, limits and gates. The module `rollout` assigns units to waves and decides what each may run.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::{AppId, ClusterName, ClusterSelector, Location};

/// `updateStrategy` of an app.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    pub order: WaveOrder,
    /// Apps whose units must be done on a cluster before the units of this app advance there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<RolloutDependency>,
    pub on_failure: OnFailure,
    /// A unit that is not done for so long has failed; `None`: [`UpdateStrategy::DEFAULT_DEADLINE`].
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    pub progress_deadline: Option<Duration>,
    /// The first installation goes wave by wave too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gate_first: bool,
    /// Of `canaryClusters`, else of `updateStrategy`.
    #[serde(skip)]
    pub location: Option<Location>,
}

/// Where the order of the waves comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WaveOrder {
    /// The rings of the repository, or one wave where there are none.
    #[default]
    Default,
    /// `upgradeType`, `canaryClusters`, `needWaitingForConfirm`.
    Groups(GroupOrder),
    /// `waves`.
    Waves(Vec<WaveRule>),
}

/// The waves `first`, then one for each group, then `rest`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupOrder {
    /// Groups that are not named come last, together.
    pub groups: Vec<RolloutGroup>,
    /// Where each of them is named.
    #[serde(skip)]
    pub places: Vec<Location>,
    /// Whose canary podSets are the wave `first`; empty: all canary podSets.
    pub canary_clusters: Vec<ClusterName>,
    /// Somebody confirms after every wave but the last that changes.
    pub needs_confirmation: bool,
    /// Of each of its waves.
    pub limits: WaveLimits,
}

/// One entry of `waves`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaveRule {
    pub name: String,
    pub clusters: ClusterSelector,
    /// Of an AppSet: the podSets of these groups; empty: of all groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    pub limits: WaveLimits,
    #[serde(skip)]
    pub location: Location,
}

/// How many units of a wave change side by side, how many may fail, and what must pass after it before the next wave opens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaveLimits {
    /// `None`: all units of the wave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<UnitShare>,
    /// Units that may fail and hold up nothing. Never counted in the first wave.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_failures: u32,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    pub soak: Option<Duration>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
    /// Names of what is measured after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub analysis: Vec<String>,
    /// Contexts of commit statuses of others that must be success after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<String>,
}

impl WaveLimits {
    /// It has none of them.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }
}

/// `3`, or `25%` of the units of a wave, rounded up and at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum UnitShare {
    Count(u32),
    Percent(u32),
}

impl UnitShare {
    pub fn of(self, units: usize) -> usize {
        match self {
            Self::Count(count) => count as usize,
            Self::Percent(percent) => (units * percent as usize).div_ceil(100).max(1),
        }
    }
}

/// What happens when a unit fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// No further unit changes.
    #[default]
    Stop,
    /// The units that have the failed version go back to what they ran before.
    Revert,
}

/// An app that comes before this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RolloutDependency {
    pub app: AppId,
    #[serde(skip)]
    pub location: Location,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RolloutGroup {
    Canary,
    Blue,
    Green,
}

impl RolloutGroup {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Canary => "canary",
            Self::Blue => "blue",
            Self::Green => "green",
        }
    }
}

impl UpdateStrategy {
    /// As that of a Deployment.
    pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(600);
    /// The wave of the canary podSets in `canaryClusters`.
    pub const FIRST_WAVE: &str = "first";
    /// The last wave: what no other wave selects.
    pub const REST_WAVE: &str = "rest";

    pub fn deadline(&self) -> Duration {
        self.progress_deadline.unwrap_or(Self::DEFAULT_DEADLINE)
    }

    /// Whether it has no waves of its own. Then the rings are the waves, if there are rings.
    pub fn has_no_waves(&self) -> bool {
        match &self.order {
            WaveOrder::Default => true,
            WaveOrder::Groups(groups) => {
                groups.groups.is_empty()
                    && groups.canary_clusters.is_empty()
                    && !groups.needs_confirmation
                    && groups.limits.are_none()
            }
            WaveOrder::Waves(waves) => waves.is_empty(),
        }
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|it| it.as_secs()).serialize(serializer)
}
