//! Gauges of the fleet: a pure function of the overview.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::gauge::{gauge, number};
use crate::plan::PlanStep;
use crate::report::{ClusterReport, Overview, RolloutReport, TargetPhase, TargetReport};
use crate::rollout::WaveState;

/// With more clusters, there are no series for single clusters.
pub const MOST_CLUSTERS: usize = 1000;

/// The phases of a rollout, as label values.
const DONE: &str = "Done";
const PROGRESSING: &str = "Progressing";
const WAITING: &str = "Waiting";
const FAILED: &str = "Failed";

/// Counts by state; empty before the first overview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetState {
    clusters: BTreeMap<&'static str, usize>,
    /// Which clusters answer; empty if there are too many.
    up: Vec<(String, bool)>,
    is_up_omitted: bool,
    targets: BTreeMap<&'static str, usize>,
    /// By the worst phase of their targets.
    apps: BTreeMap<&'static str, usize>,
    rollouts: BTreeMap<&'static str, usize>,
    drifted: usize,
}

impl FleetState {
    pub fn of(overview: &Overview) -> Self {
        let mut state = Self::default();
        for cluster in &overview.clusters {
            *state.clusters.entry(cluster.state).or_default() += 1;
        }
        let ours = overview.clusters.iter().filter(|cluster| !cluster.is_unregistered());
        state.is_up_omitted = ours.clone().count() > MOST_CLUSTERS;
        if !state.is_up_omitted {
            state.up = ours.map(|cluster| (cluster.name.to_string(), cluster.is_up())).collect();
        }
        // Targets are sorted by app.
        for of_app in overview.targets.chunk_by(|one, next| one.app == next.app) {
            let mut worst = TargetPhase::Running;
            for target in of_app {
                *state.targets.entry(target.phase.as_str()).or_default() += 1;
                worst = worst.max(target.phase);
                state.drifted += drifted(target);
            }
            *state.apps.entry(worst.as_str()).or_default() += 1;
        }
        for rollout in &overview.rollouts {
            *state.rollouts.entry(phase_of(rollout)).or_default() += 1;
        }
        state
    }

    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut up = gauge(encoder, "tutti_cluster_up", "Whether a cluster answers.", None)?;
        for (cluster, is_up) in &self.up {
            up.encode_family(&[("cluster", cluster.as_str())])?.encode_gauge(&i64::from(*is_up))?;
        }
        let help = "Whether tutti_cluster_up has no series, as there are more than 1,000 clusters.";
        gauge(encoder, "tutti_cluster_up_omitted", help, None)?
            .encode_gauge(&i64::from(self.is_up_omitted))?;
        let phases = TargetPhase::ALL.map(TargetPhase::as_str);
        let by = [
            ("tutti_clusters", "Clusters by state.", "state", &self.clusters, &ClusterReport::STATES[..]),
            ("tutti_targets", "Targets, apps on clusters, by phase.", "phase", &self.targets, &phases[..]),
            ("tutti_apps", "Apps by the worst phase of their targets.", "phase", &self.apps, &phases[..]),
            (
                "tutti_rollouts",
                "Apps in waves by the phase of their rollout.",
                "phase",
                &self.rollouts,
                &[DONE, PROGRESSING, WAITING, FAILED][..],
            ),
        ];
        for (name, help, label, counts, values) in by {
            let mut family = gauge(encoder, name, help, None)?;
            // With zeros: an alert on a vanished series would end without a value.
            for value in values {
                let count = counts.get(value).copied().unwrap_or_default();
                family.encode_family(&[(label, *value)])?.encode_gauge(&number(count))?;
            }
        }
        let help = "Objects with drift that is not corrected yet, or is only reported.";
        gauge(encoder, "tutti_drift_objects", help, None)?.encode_gauge(&number(self.drifted))
    }
}

fn drifted(target: &TargetReport) -> usize {
    let steps = target.plan.iter().flat_map(|plan| &plan.steps);
    steps.filter(|step: &&PlanStep| step.has_drifted() && !step.is_drift_check()).count()
}

fn phase_of(rollout: &RolloutReport) -> &'static str {
    if rollout.waves.iter().any(|wave| wave.state == WaveState::Failed) {
        FAILED
    } else if rollout.confirmation.is_some() {
        WAITING
    } else if rollout.is_open {
        PROGRESSING
    } else {
        DONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AppId;
    use crate::rollout::WaveReport;

    fn cluster(name: &str, state: &'static str) -> ClusterReport {
        ClusterReport { state, objects: 0, ..ClusterReport::of_test(name, None) }
    }

    #[test]
    fn clusters_by_state_and_by_name() {
        let names = ["Ready", "Maintaining", "Removing", "Connecting", "Offline", "Dropped"];
        let clusters = names.map(|state| cluster(&state.to_lowercase(), state)).to_vec();
        let state = FleetState::of(&Overview { clusters, ..Overview::default() });
        let expected = [
            ("ready", true),
            ("maintaining", true),
            ("removing", true),
            ("connecting", false),
            ("offline", false),
        ];
        assert_eq!(state.up, expected.map(|(name, is_up)| (name.to_owned(), is_up)));
        assert_eq!(state.clusters, names.map(|name| (name, 1)).into());
        assert!(!state.is_up_omitted);
    }

    #[test]
    fn too_many_clusters_have_no_series() {
        let check = |count: usize, series: usize, is_omitted: bool| {
            let clusters = (0..count).map(|number| cluster(&number.to_string(), "Ready")).collect();
            let state = FleetState::of(&Overview { clusters, ..Overview::default() });
            assert_eq!((state.up.len(), state.is_up_omitted), (series, is_omitted));
            assert_eq!(state.clusters["Ready"], count);
        };
        check(1000, 1000, false);
        check(1001, 0, true);
    }

    #[test]
    fn apps_count_by_their_worst_target() {
        let target = |app: &str, phase| TargetReport::of_test(AppId::new("shop", app), "bj1", phase);
        let targets = vec![
            target("cart", TargetPhase::Running),
            target("pay", TargetPhase::Running),
            target("pay", TargetPhase::Degraded),
            target("pay", TargetPhase::Progressing),
        ];
        let state = FleetState::of(&Overview { targets, ..Overview::default() });
        assert_eq!(state.targets, [("Running", 2), ("Degraded", 1), ("Progressing", 1)].into());
        assert_eq!(state.apps, [("Running", 1), ("Degraded", 1)].into());
    }

    #[test]
    fn rollout_phase_follows_its_units() {
        let check = |states: &[WaveState], is_open: bool, expected: &str| {
            let waves = states.iter().map(|state| WaveReport::of_test("test", *state, 0, 1)).collect();
            let rollout = RolloutReport::of_test(AppId::new("shop", "pay"), waves, Vec::new());
            assert_eq!(phase_of(&RolloutReport { is_open, ..rollout }), expected);
        };
        check(&[WaveState::Done], false, "Done");
        check(&[WaveState::Done, WaveState::Open], true, "Progressing");
        check(&[WaveState::Failed, WaveState::Shut], true, "Failed");
    }
}
