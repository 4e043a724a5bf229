//! Reports for tests: what a test does not say is empty.

use super::{Phase, RolloutReport, TargetReport, UnitReport};
use crate::model::{AppId, ClusterName, Digest, PodCount, Revision};
use crate::rollout::{UnitId, WaveReport, WaveState};

impl TargetReport {
    pub(crate) fn of_test(app: AppId, cluster: &str, phase: Phase) -> Self {
        Self {
            app,
            kind: "Component",
            cluster: ClusterName::from(cluster),
            ring: None,
            revision: Revision::from("abc"),
            phase,
            detail: String::new(),
            pods: PodCount::default(),
            version: String::new(),
            pod_sets: Vec::new(),
            created: None,
            plan: None,
            differences: None,
        }
    }
}

impl UnitReport {
    pub(crate) fn of_test(unit: UnitId, wave: &str) -> Self {
        Self {
            unit,
            wave: wave.to_owned(),
            is_at_head: false,
            is_done: false,
            revision: None,
            since: None,
            done_since: None,
            previous: None,
            detail: String::new(),
            hold: None,
            failure: None,
        }
    }
}

impl RolloutReport {
    /// An open rollout.
    pub(crate) fn of_test(app: AppId, waves: Vec<WaveReport>, units: Vec<UnitReport>) -> Self {
        Self {
            app,
            digest: Digest::of(b"v2"),
            commit: None,
            is_open: true,
            waves,
            confirmation: None,
            units,
            approvals_unused: Vec::new(),
        }
    }
}

impl WaveReport {
    pub(crate) fn of_test(name: &str, state: WaveState, done: usize, units: usize) -> Self {
        Self {
            name: name.to_owned(),
            state,
            units,
            done,
            begun: 0,
            failed: 0,
            left_out: Vec::new(),
            waits: None,
        }
    }
}
