//! Computes the waves of an app and the wave of each unit, from Git alone. `controller`, `render`, `compare` and `report` call it.
//!
//! | what the app says | waves |
//! |---|---|
//! | `upgradeType`, `canaryClusters` | `first`: canary podSets of the canary clusters; then the groups as named; `rest`: all others |
//! | `waves` | as named; `rest`: what no wave selects |
//! | nothing, with `rings.yaml` | the rings; `rest`: clusters in no ring |
//! | nothing | one, `all` |

use std::collections::BTreeSet;

use super::Fleet;
use crate::model::{
    App, AppSpec, ClusterName, DefaultRollout, GroupOrder, Ring, RolloutGroup, UpdateStrategy, WaveLimits,
    WaveOrder, WaveRule,
};

#[derive(Clone, Debug, PartialEq)]
pub struct Waves {
    list: Vec<Wave>,
    order: WaveAssignment,
}

/// Units that are released together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wave {
    pub name: String,
    /// How the wave proceeds, and what must pass before the next wave opens.
    pub limits: WaveLimits,
}

/// How the wave of a unit is found.
#[derive(Clone, Debug, PartialEq)]
enum WaveAssignment {
    Single,
    /// `None`: all canary podSets belong to the first wave.
    Groups(Option<BTreeSet<ClusterName>>),
    Rules(Vec<WaveRule>),
    Rings,
}

impl Waves {
    pub fn of(fleet: &Fleet, app: &App) -> Self {
        Self::from_parts(app, &fleet.rings, fleet.instance.defaults.rollout)
    }

    pub(super) fn from_parts(app: &App, rings: &[Ring], default: DefaultRollout) -> Self {
        match &app.rollout.order {
            WaveOrder::Groups(groups) => Self::of_groups(app, groups),
            WaveOrder::Waves(rules) => {
                let named =
                    rules.iter().map(|rule| Wave { name: rule.name.clone(), limits: rule.limits.clone() });
                Self {
                    list: named.chain([rest_wave()]).collect(),
                    order: WaveAssignment::Rules(rules.clone()),
                }
            }
            WaveOrder::Default
                if !rings.is_empty() && default == DefaultRollout::Rings && !app.is_project() =>
            {
                let named =
                    rings.iter().map(|ring| Wave { name: ring.name.clone(), limits: ring.limits.clone() });
                Self { list: named.chain([rest_wave()]).collect(), order: WaveAssignment::Rings }
            }
            WaveOrder::Default => {
                let all = Wave { name: "all".to_owned(), limits: WaveLimits::default() };
                Self { list: vec![all], order: WaveAssignment::Single }
            }
        }
    }

    fn of_groups(app: &App, groups: &GroupOrder) -> Self {
        let limits = WaveLimits {
            confirm: groups.limits.confirm || groups.needs_confirmation,
            ..groups.limits.clone()
        };
        let wave = |name: &str| Wave { name: name.to_owned(), limits: limits.clone() };
        let has_canary = groups.groups.contains(&RolloutGroup::Canary) || !groups.canary_clusters.is_empty();
        let first = has_canary.then(|| wave(UpdateStrategy::FIRST_WAVE));
        let named = groups.groups.iter().map(|group| wave(group.as_str()));
        // The last wave opens nothing.
        let last = Wave {
            limits: WaveLimits {
                confirm: false,
                soak: None,
                analysis: Vec::new(),
                statuses: Vec::new(),
                ..limits.clone()
            },
            ..wave(UpdateStrategy::REST_WAVE)
        };
        let used: BTreeSet<ClusterName> = match &app.spec {
            AppSpec::AppSet(app_set) => app_set.clusters.iter().map(|cluster| cluster.name.clone()).collect(),
            _ => BTreeSet::new(),
        };
        let canary: BTreeSet<ClusterName> =
            groups.canary_clusters.iter().filter(|name| used.contains(*name)).cloned().collect();
        let order = WaveAssignment::Groups(Some(canary).filter(|canary| !canary.is_empty()));
        Self { list: first.into_iter().chain(named).chain([last]).collect(), order }
    }

    pub fn list(&self) -> &[Wave] {
        &self.list
    }

    /// Everything is released together.
    pub fn is_single(&self) -> bool {
        self.order == WaveAssignment::Single
    }

    pub fn position(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|wave| wave.name == name)
    }

    /// The index of the wave of a unit. The group is empty for apps without podSets.
    pub fn wave_of(&self, fleet: &Fleet, cluster: &ClusterName, group: &str) -> usize {
        let last = self.list.len().saturating_sub(1);
        let named = |name: &str| self.position(name).unwrap_or(last);
        match &self.order {
            WaveAssignment::Single => last,
            WaveAssignment::Groups(canary) if group == RolloutGroup::Canary.as_str() => {
                let is_first = canary.as_ref().is_none_or(|canary| canary.contains(cluster));
                named(if is_first { UpdateStrategy::FIRST_WAVE } else { RolloutGroup::Canary.as_str() })
            }
            WaveAssignment::Groups(_) => named(group),
            WaveAssignment::Rules(rules) => {
                let Some(facts) = fleet.clusters.get(cluster) else { return last };
                let facts = facts.facts(fleet.ring_of(cluster));
                let selects = |rule: &WaveRule| {
                    rule.clusters.matches(facts)
                        && (rule.groups.is_empty() || rule.groups.iter().any(|it| it == group))
                };
                rules.iter().position(selects).unwrap_or(last)
            }
            WaveAssignment::Rings => fleet.ring_of(cluster).map_or(last, named),
        }
    }
}

fn rest_wave() -> Wave {
    Wave { name: UpdateStrategy::REST_WAVE.to_owned(), limits: WaveLimits::default() }
}
