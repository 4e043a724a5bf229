//! What `/metrics` costs with 10,000 apps on 200 clusters: series of one name, a scrape, and what is computed when an overview is
//! published.
#![allow(clippy::expect_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[path = "shared/goals.rs"]
mod goals;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tutti::forge::{Observer as _, Operation};
use tutti::metrics::{Metrics, Verdict};
use tutti::model::{AppId, ClusterName, Digest, PodCount, Revision};
use tutti::plan::Plan;
use tutti::report::{ClusterReport, Overview, Phase, RolloutReport, TargetReport};

const APPS: usize = 10_000;
const CLUSTERS: usize = 200;
const SCRAPES: usize = 101;
const PUBLISHED: usize = 5;

fn main() {
    let metrics = Metrics::default();
    let commit = Revision::from("4f9c2d1e8b7a6053c4d2e1f0a9b8c7d6e5f40312");
    let overview = overview(&commit);
    // A commit that is under way is the dearer case: each target is compared with it.
    metrics.commit_seen(&commit, tokio::time::Instant::now());
    let mut published = milliseconds(PUBLISHED, || metrics.publish(&overview));
    for number in 0..1000 {
        let receiver = format!("receiver-{number}");
        Verdict::ALL.into_iter().for_each(|verdict| metrics.delivered(Some(&receiver), verdict));
    }
    for code in (100..1000).filter_map(|code| http::StatusCode::from_u16(code).ok()) {
        Operation::ALL.into_iter().for_each(|operation| metrics.answered(operation, Some(code)));
    }
    let mut scrapes = milliseconds(SCRAPES, || drop(metrics.encode().expect("text")));
    let text = metrics.encode().expect("text");
    // Beside the controller, at most every two seconds.
    goals::at_most("metrics_overview_ms", median(&mut published), "ms", 1000.0);
    goals::figure("metrics_scrape_bytes", text.len() as f64, "B");
    goals::figure("metrics_scrape_median_ms", median(&mut scrapes), "ms");
    goals::at_most("metrics_scrape_worst_ms", scrapes[SCRAPES - 1], "ms", 100.0);
    goals::at_most("metrics_series_of_the_largest", largest(&text) as f64, "series", 1000.0);
    goals::check();
}

/// A fleet in the middle of a rollout.
fn overview(commit: &Revision) -> Overview {
    let clusters: Vec<ClusterName> =
        (0..CLUSTERS).map(|number| ClusterName::from(format!("cluster-{number:03}").as_str())).collect();
    let apps: Vec<AppId> = (0..APPS).map(|number| AppId::new("shop", &format!("app-{number:05}"))).collect();
    let target = |app: &AppId, cluster: &ClusterName, number: usize| TargetReport {
        app: app.clone(),
        kind: "App",
        cluster: cluster.clone(),
        ring: Some("prod".to_owned()),
        revision: commit.clone(),
        phase: Phase::ALL[number % Phase::ALL.len()],
        detail: String::new(),
        pods: PodCount::default(),
        version: "1.4.2".to_owned(),
        pod_sets: Vec::new(),
        created: None,
        plan: Some(Arc::new(Plan::of_nothing(app.clone(), cluster.clone(), commit.clone()))),
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
        told: vec![commit.clone()],
        targets: targets.collect(),
        rollouts: apps.iter().map(rollout).collect(),
        clusters: clusters.iter().map(cluster).collect(),
        ..Overview::default()
    }
}

fn milliseconds(times: usize, mut work: impl FnMut()) -> Vec<f64> {
    let mut one = || {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..times).map(|_| one()).collect()
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

fn largest(text: &str) -> usize {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        *counts.entry(line.split(['{', ' ']).next().unwrap_or_default()).or_default() += 1;
    }
    counts.into_values().max().unwrap_or_default()
}
