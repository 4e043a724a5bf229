//! The cost of `/metrics` with 10,000 apps on 200 clusters: series of one name, a scrape, and publishing an overview.
#![allow(clippy::expect_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[path = "shared/goals.rs"]
mod goals;
#[path = "shared/large_fleet.rs"]
mod large_fleet;

use std::collections::BTreeMap;

use large_fleet::{median, milliseconds, overview};
use tutti::forge::{ForgeObserver as _, ForgeOperation};
use tutti::metrics::{DeliveryResult, Metrics};
use tutti::model::Revision;

const SCRAPES: usize = 101;
const PUBLISHED: usize = 5;

fn main() {
    let metrics = Metrics::default();
    let commit = Revision::from("4f9c2d1e8b7a6053c4d2e1f0a9b8c7d6e5f40312");
    let overview = overview(&commit);
    // A commit that is under way is the dearer case: each target is compared with it.
    metrics.record_commit(&commit, tokio::time::Instant::now());
    let mut published = milliseconds(PUBLISHED, || metrics.publish(&overview));
    for number in 0..1000 {
        let receiver = format!("receiver-{number}");
        DeliveryResult::ALL.into_iter().for_each(|verdict| metrics.record_delivery(Some(&receiver), verdict));
    }
    for code in (100..1000).filter_map(|code| http::StatusCode::from_u16(code).ok()) {
        ForgeOperation::ALL.into_iter().for_each(|operation| metrics.request_finished(operation, Some(code)));
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

fn largest(text: &str) -> usize {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        *counts.entry(line.split(['{', ' ']).next().unwrap_or_default()).or_default() += 1;
    }
    counts.into_values().max().unwrap_or_default()
}
