//! Everything that commit statuses say. Present tense, numbers first, cause last.

use std::collections::BTreeSet;

use super::TargetReport;
use crate::forge::LONGEST_DESCRIPTION;
use crate::model::{ClusterName, Diagnostic, Revision};

/// So many names of a kind are told; of the others, how many they are.
const NAMED: usize = 3;

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

/// `12 apps × 6 clusters valid, 0 warnings`.
pub fn valid(apps: usize, clusters: usize, warnings: usize) -> String {
    let (apps, clusters) = (count(apps, "app"), count(clusters, "cluster"));
    format!("{apps} × {clusters} valid, {}", count(warnings, "warning"))
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

/// The same of one whose app is in waves: where it stands, and what ends that.
/// `rests`: the fullest first; the last is told at the cost of the cause.
pub fn failed_in_wave(worst: &TargetReport, rests: &[String]) -> String {
    let text = target(worst);
    let is_short = |rest: &&String| text.chars().count() + rest.chars().count() <= LONGEST_DESCRIPTION;
    match rests.iter().find(is_short).or(rests.last()) {
        Some(rest) => with_room(text, rest),
        None => text,
    }
}

/// With the counts of healthy targets, if they fit.
pub fn with_healthy(text: String, healthy: usize, targets: usize) -> String {
    let counts = format!(", {healthy}/{targets} healthy");
    let is_short = text.chars().count() + counts.chars().count() <= LONGEST_DESCRIPTION;
    if is_short { text + &counts } else { text }
}

/// Other apps that ask too.
pub fn and_others(text: String, apps: usize) -> String {
    match apps {
        0 => text,
        apps => with_room(text, &format!(" (and {})", count(apps, "more app"))),
    }
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

pub fn deletes_wait(objects: usize, digests: &BTreeSet<&str>) -> String {
    let digests: Vec<&str> = digests.iter().copied().collect();
    format!("{} wait: tutti approve {}", count(objects, "delete"), digests.join(", "))
}

pub fn deleted(objects: usize, clusters: usize) -> String {
    format!("{} deleted on {}", count(objects, "object"), count(clusters, "cluster"))
}

pub fn deletes_pending(objects: usize) -> String {
    format!("{} under way", count(objects, "delete"))
}

/// What is said of the apps, and then of clusters whose file the commit took away.
pub fn dropped(apps: &str, clusters: &[&ClusterName]) -> String {
    let names: Vec<&str> = clusters.iter().take(NAMED).map(|name| name.as_str()).collect();
    let others = match clusters.len() - names.len() {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let (noun, verb) = if clusters.len() == 1 { ("cluster", "is") } else { ("clusters", "are") };
    let names = names.join(", ");
    let rest = format!("; {noun} {names}{others} {verb} no longer in Git: what runs there was left as it is");
    with_room(apps.to_owned(), &rest)
}

/// Both, the first shortened where they are too long: forges cut at the end.
pub(super) fn with_room(mut text: String, rest: &str) -> String {
    let room = LONGEST_DESCRIPTION.saturating_sub(rest.chars().count());
    if text.chars().count() > room {
        text = text.chars().take(room.saturating_sub(1)).collect();
        text.truncate(text.trim_end().len());
        text.push('…');
    }
    text + rest
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
    format!("{} {}: {}", report.cluster, report.app, report.words())
}

impl TargetReport {
    /// Its cause, or its phase where it has none.
    pub(super) fn words(&self) -> &str {
        if self.detail.is_empty() { self.phase.as_str() } else { &self.detail }
    }
}

/// `1 object`, `3 objects`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
