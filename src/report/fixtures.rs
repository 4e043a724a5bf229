//! Reports for tests, with defaults for all other fields.

use super::{ClusterReport, RolloutReport, TargetPhase, TargetReport, UnitReport};
use crate::model::{AppId, ClusterName, Digest, PodCount, Revision};
use crate::rollout::{Confirmation, RolloutHold, UnitId, WaveReport, WaveState};

impl ClusterReport {
    /// A cluster that is connected and read.
    pub(crate) fn of_test(name: &str, ring: Option<&str>) -> Self {
        Self {
            name: ClusterName::from(name),
            ring: ring.map(ToOwned::to_owned),
            state: "Ready",
            detail: String::new(),
            observed: true,
            objects: 1,
            credential_expires: None,
            dropped_by: None,
        }
    }
}

impl TargetReport {
    pub(crate) fn of_test(app: AppId, cluster: &str, phase: TargetPhase) -> Self {
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
    /// A rollout that waits for a confirmation of the wave behind `after`; units on these clusters, in order, wait for it.
    pub(crate) fn with_confirmation(app: AppId, clusters: &[&str], after: &str, through: &str) -> Self {
        let (after, through, digest) = (after.to_owned(), through.to_owned(), Digest::of(b"v2"));
        let unit = |cluster: &&str| UnitReport {
            hold: Some(RolloutHold::Confirmation { after: after.clone(), through: through.clone(), digest }),
            ..UnitReport::of_test(
                UnitId { cluster: ClusterName::from(*cluster), pod_set: "".into() },
                &through,
            )
        };
        let units = clusters.iter().map(unit).collect();
        let confirmation = Some(Confirmation { after: after.clone(), through: through.clone(), digest });
        Self { confirmation, ..Self::of_test(app, Vec::new(), units) }
    }

    pub(crate) fn of_test(app: AppId, waves: Vec<WaveReport>, units: Vec<UnitReport>) -> Self {
        Self {
            app,
            digest: Digest::of(b"v2"),
            commit: None,
            is_open: true,
            waves,
            confirmation: None,
            measures: Vec::new(),
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
