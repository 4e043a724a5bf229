//! 10,000 apps on 200 clusters, as an overview shows them, and times of what is computed from it.

use std::sync::Arc;
use std::time::Instant;

use tutti::model::{AppId, ClusterName, Digest, PodCount, Revision};
use tutti::plan::Plan;
use tutti::report::{ClusterReport, Overview, RolloutReport, TargetPhase, TargetReport};

const APPS: usize = 10_000;
const CLUSTERS: usize = 200;

/// A fleet in the middle of a rollout.
pub fn overview(commit: &Revision) -> Overview {
    let clusters: Vec<ClusterName> =
        (0..CLUSTERS).map(|number| ClusterName::from(format!("cluster-{number:03}").as_str())).collect();
    let apps: Vec<AppId> = (0..APPS).map(|number| AppId::new("shop", &format!("app-{number:05}"))).collect();
    let target = |app: &AppId, cluster: &ClusterName, number: usize| TargetReport {
        app: app.clone(),
        kind: "App",
        cluster: cluster.clone(),
        ring: Some("prod".to_owned()),
        revision: commit.clone(),
        phase: TargetPhase::ALL[number % TargetPhase::ALL.len()],
        detail: String::new(),
        pods: PodCount::default(),
        version: "1.4.2".to_owned(),
        pod_sets: Vec::new(),
        created: None,
        plan: Some(Arc::new(Plan::empty(app.clone(), cluster.clone(), commit.clone()))),
        differences: None,
    };
    let targets = apps.iter().enumerate().flat_map(|(number, app)| {
        clusters.iter().enumerate().map(move |(at, cluster)| target(app, cluster, number + at))
    });
    let rollout = |app: &AppId| RolloutReport {
        app: app.clone(),
        digest: Digest::of(b"v2"),
        commit: Some(commit.clone()),
        is_open: true,
        waves: Vec::new(),
        confirmation: None,
        units: Vec::new(),
        measures: Vec::new(),
        approvals_unused: Vec::new(),
    };
    let cluster = |name: &ClusterName| ClusterReport {
        name: name.clone(),
        ring: Some("prod".to_owned()),
        state: "Ready",
        detail: String::new(),
        observed: true,
        objects: 5 * APPS,
        credential_expires: None,
        dropped_by: None,
    };
    Overview {
        revision: Some(commit.clone()),
        is_rendered: true,
        tracked_commits: vec![commit.clone()],
        targets: targets.collect(),
        rollouts: apps.iter().map(rollout).collect(),
        clusters: clusters.iter().map(cluster).collect(),
        ..Overview::default()
    }
}

pub fn milliseconds(times: usize, mut work: impl FnMut()) -> Vec<f64> {
    let mut one = || {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..times).map(|_| one()).collect()
}

pub fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}
