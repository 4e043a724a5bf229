//! Texts of commit statuses: present tense, numbers first, cause last.

use std::collections::BTreeSet;

use super::{TargetReport, WriteCounts};
use crate::forge::LONGEST_DESCRIPTION;
use crate::model::{ClusterName, Diagnostic, Revision};

/// The most names of a kind; the others are counted.
const MAX_NAMED: usize = 3;

pub fn healthy(targets: usize, clusters: usize) -> String {
    match targets {
        0 => "nothing to deploy here".to_owned(),
        1 => "1 app healthy on 1 cluster".to_owned(),
        targets => format!("{targets}/{targets} healthy on {}", count_noun(clusters, "cluster")),
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
    let (apps, clusters) = (count_noun(apps, "app"), count_noun(clusters, "cluster"));
    format!("{apps} × {clusters} valid, {}", count_noun(warnings, "warning"))
}

pub fn rendering() -> String {
    "rendering".to_owned()
}

pub fn under_way(healthy: usize, targets: usize, slowest: &TargetReport) -> String {
    format!("{healthy}/{targets} healthy, {}", target_name(slowest))
}

/// `bj5 shop/pay: ImagePullBackOff pay-7c9f, 5/6 healthy`: the cause comes first, as readers look for it.
pub fn failed(healthy: usize, targets: usize, worst: &TargetReport) -> String {
    format!("{}, {healthy}/{targets} healthy", target_name(worst))
}

/// The same for an app in waves, with its wave and the commands. `rests`: the fullest first; the last one is used even if it
/// shortens the cause.
pub fn failed_in_wave(worst: &TargetReport, rests: &[String]) -> String {
    let text = target_name(worst);
    let is_short = |rest: &&String| text.chars().count() + rest.chars().count() <= LONGEST_DESCRIPTION;
    match rests.iter().find(is_short).or(rests.last()) {
        Some(rest) => join_shortened(text, rest),
        None => text,
    }
}

/// With the counts of healthy targets, if they fit.
pub fn with_healthy(text: String, healthy: usize, targets: usize) -> String {
    let counts = format!(", {healthy}/{targets} healthy");
    let is_short = text.chars().count() + counts.chars().count() <= LONGEST_DESCRIPTION;
    if is_short { text + &counts } else { text }
}

/// Other apps that need a person too.
pub fn and_others(text: String, apps: usize) -> String {
    match apps {
        0 => text,
        apps => join_shortened(text, &format!(" (and {})", count_noun(apps, "more app"))),
    }
}

pub fn observed(writes: usize, targets: usize) -> String {
    format!(
        "observe: {} planned for {}, nothing written",
        count_noun(writes, "write"),
        count_noun(targets, "target")
    )
}

pub fn superseded(by: &Revision) -> String {
    format!("superseded by {}", by.short())
}

pub fn paused(healthy: usize, targets: usize, paused: usize) -> String {
    format!("{healthy}/{targets} healthy, {paused} paused")
}

pub fn deletes_held(objects: usize, reason: &str) -> String {
    format!("{} wait: {reason}", count_noun(objects, "delete"))
}

pub fn deletes_wait(objects: usize, digests: &BTreeSet<&str>) -> String {
    let digests: Vec<&str> = digests.iter().copied().collect();
    format!("{} wait: tutti approve {}", count_noun(objects, "delete"), digests.join(", "))
}

pub fn deleted(objects: usize, clusters: usize) -> String {
    format!("{} deleted on {}", count_noun(objects, "object"), count_noun(clusters, "cluster"))
}

pub fn deletes_pending(objects: usize) -> String {
    format!("{} under way", count_noun(objects, "delete"))
}

/// The text about the apps, then the clusters whose file the commit removed.
pub fn with_removed_clusters(apps: &str, clusters: &[&ClusterName]) -> String {
    let names: Vec<&str> = clusters.iter().take(MAX_NAMED).map(|name| name.as_str()).collect();
    let others = match clusters.len() - names.len() {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let (noun, verb) = if clusters.len() == 1 { ("cluster", "is") } else { ("clusters", "are") };
    let names = names.join(", ");
    let rest = format!("; {noun} {names}{others} {verb} no longer in Git: the objects there stay");
    join_shortened(apps.to_owned(), &rest)
}

/// Both texts, the first one shortened if needed: forges cut at the end.
pub(super) fn join_shortened(mut text: String, rest: &str) -> String {
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

fn target_name(report: &TargetReport) -> String {
    format!("{} {}: {}", report.cluster, report.app, report.cause_text())
}

impl TargetReport {
    /// The cause, or the phase if there is none.
    pub(super) fn cause_text(&self) -> &str {
        if self.detail.is_empty() { self.phase.as_str() } else { &self.detail }
    }
}

impl WriteCounts {
    /// `3 configured, 1 created, 0 deleted on 2 clusters`.
    pub fn summary(&self) -> String {
        let Self { configured, created, deleted, clusters } = self;
        if clusters.is_empty() {
            return "nothing to write".to_owned();
        }
        let clusters = count_noun(clusters.len(), "cluster");
        format!("{configured} configured, {created} created, {deleted} deleted on {clusters}")
    }
}

pub fn count_noun(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
