//! Everything that commit statuses say. Present tense, numbers first, cause last.

use super::TargetReport;
use crate::model::{Diagnostic, Revision};

pub fn healthy(targets: usize, clusters: usize) -> String {
    match targets {
        0 => "nothing to deploy here".to_owned(),
        1 => "1 app healthy on 1 cluster".to_owned(),
        targets => format!("{targets}/{targets} healthy on {}", count(clusters, "cluster")),
    }
}

pub fn unchanged() -> String {
    "no change for this ring".to_owned()
}

pub fn observing() -> String {
    "observing the clusters".to_owned()
}

pub fn rendering() -> String {
    "rendering".to_owned()
}

pub fn under_way(healthy: usize, targets: usize, slowest: &TargetReport) -> String {
    format!("{healthy}/{targets} healthy, {}", target(slowest))
}

/// `bj5 shop/pay: ImagePullBackOff pay-7c9f, 5/6 healthy`, with the number behind the cause, as a
/// failure is read for its cause.
pub fn failed(healthy: usize, targets: usize, worst: &TargetReport) -> String {
    format!("{}, {healthy}/{targets} healthy", target(worst))
}

pub fn observed(writes: usize, targets: usize) -> String {
    format!("observe: {} planned for {}, nothing written", count(writes, "write"), count(targets, "target"))
}

pub fn superseded(by: &Revision) -> String {
    format!("superseded by {}", by.short())
}

pub fn paused(healthy: usize, targets: usize, paused: usize) -> String {
    format!("{healthy}/{targets} healthy, {paused} paused")
}

pub fn deletes_held(objects: usize, reason: &str) -> String {
    format!("{} wait: {reason}", count(objects, "delete"))
}

pub fn deletes_wait(objects: usize, digests: &[&str]) -> String {
    format!("{} wait: tutti approve {}", count(objects, "delete"), digests.join(", "))
}

pub fn deleted(objects: usize, clusters: usize) -> String {
    format!("{} deleted on {}", count(objects, "object"), count(clusters, "cluster"))
}

pub fn deletes_pending(objects: usize) -> String {
    format!("{} under way", count(objects, "delete"))
}

pub fn invalid(diagnostic: &Diagnostic, others: usize) -> String {
    let mut text = match &diagnostic.location {
        Some(location) => format!("{}: {}", location, diagnostic.message),
        None => diagnostic.message.clone(),
    };
    if others > 0 {
        text = format!("{} errors, first {text}", others + 1);
    }
    text
}

fn target(report: &TargetReport) -> String {
    let detail = if report.detail.is_empty() { report.phase.as_str() } else { &report.detail };
    format!("{} {}: {detail}", report.cluster, report.app)
}

/// `1 object`, `3 objects`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
