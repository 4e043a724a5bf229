//! The table of apps by cluster; with many clusters, of apps by ring.

use std::collections::{BTreeMap, BTreeSet};

use super::super::status_text::count_noun;
use super::text::{MAX_SHORT_NAME_CHARS, bold, escaped, take_within};
use crate::compare::{AppChange, AppPresence, Comparison, ObjectCounts};
use crate::model::ClusterName;

/// With more clusters than this, columns are rings; with more rings, one column.
const MOST_COLUMNS: usize = 8;
/// The most rows, and the bytes for them.
const MOST_ROWS: usize = 60;
const MAX_ROWS_BYTES: usize = 9_000;

/// Title and clusters of a column.
type PlanTableColumn<'p> = (String, Vec<&'p ClusterName>);

pub fn app_table(plan: &Comparison) -> String {
    if plan.apps.is_empty() {
        return String::new();
    }
    let columns = columns(plan);
    let row =
        |first: String, cells: Vec<String>| format!("| {} |", [vec![first], cells].concat().join(" | "));
    let of_app = |app: &AppChange| {
        row(app_title(app), columns.iter().map(|(_, clusters)| cell(app, clusters)).collect())
    };
    let mut lines = vec![row("app".to_owned(), columns.iter().map(|(title, _)| title.clone()).collect())];
    lines.push(format!("|{}", "---|".repeat(columns.len() + 1)));
    let (rows, _) = take_within(plan.apps.iter().take(MOST_ROWS).map(of_app), MAX_ROWS_BYTES);
    let more = plan.apps.len() - rows.len();
    lines.extend(rows);
    if more > 0 {
        lines.push(row(format!("and {}", count_noun(more, "more app")), vec![String::new(); columns.len()]));
    }
    lines.join("\n")
}

fn columns(plan: &Comparison) -> Vec<PlanTableColumn<'_>> {
    let of = |app: &'_ AppChange| -> Vec<ClusterName> {
        app.on.keys().chain(&app.broken).chain(&app.mended).chain(&app.remaining).cloned().collect()
    };
    let named: BTreeSet<ClusterName> = plan.apps.iter().flat_map(of).collect();
    let concerned: Vec<_> = plan.clusters.iter().filter(|column| named.contains(&column.name)).collect();
    if concerned.len() <= MOST_COLUMNS {
        let title = |name: &ClusterName, ring: Option<&str>| match ring {
            Some(ring) => format!(
                "{} ({})",
                escaped(name.as_str(), MAX_SHORT_NAME_CHARS),
                escaped(ring, MAX_SHORT_NAME_CHARS)
            ),
            None => escaped(name.as_str(), MAX_SHORT_NAME_CHARS),
        };
        return concerned.iter().map(|it| (title(&it.name, it.ring.as_deref()), vec![&it.name])).collect();
    }
    let mut rings: Vec<(Option<&str>, Vec<&ClusterName>)> = Vec::new();
    for column in concerned {
        let ring = column.ring.as_deref();
        match rings.iter_mut().find(|(known, _)| *known == ring) {
            Some((_, clusters)) => clusters.push(&column.name),
            None => rings.push((ring, vec![&column.name])),
        }
    }
    if rings.len() > MOST_COLUMNS {
        let all: Vec<&ClusterName> = rings.into_iter().flat_map(|(_, clusters)| clusters).collect();
        return vec![(count_noun(all.len(), "cluster"), all)];
    }
    let title = |ring: Option<&str>, clusters: usize| {
        format!(
            "{} ({})",
            ring.map_or_else(|| "no ring".to_owned(), |ring| escaped(ring, MAX_SHORT_NAME_CHARS)),
            count_noun(clusters, "cluster")
        )
    };
    rings.into_iter().map(|(ring, clusters)| (title(ring, clusters.len()), clusters)).collect()
}

fn app_title(app: &AppChange) -> String {
    let mut text = bold(&app.app.to_string());
    match app.state {
        AppPresence::New => text.push_str(" new"),
        AppPresence::Removed => text.push_str(" removed"),
        AppPresence::Changed => {}
    }
    if let Some(version) = app.versions.first() {
        let shown = |version: &Option<String>| version.as_deref().map(|it| escaped(it, 60));
        match (shown(&version.before), shown(&version.after)) {
            (Some(before), Some(after)) => text.push_str(&format!(" {before} → {after}")),
            (None, Some(only)) | (Some(only), None) => text.push_str(&format!(" {only}")),
            (None, None) => {}
        }
        if app.versions.len() > 1 {
            text.push_str(&format!(" and {}", count_noun(app.versions.len() - 1, "more version")));
        }
    }
    if let Some(held) = app.held {
        text.push_str(&format!(" ({held}: nothing is applied)"));
    }
    text
}

/// `~3`, or for several clusters `~3 on 4, +1 on 1`.
fn cell(app: &AppChange, clusters: &[&ClusterName]) -> String {
    let mut told: BTreeMap<String, (Option<ObjectCounts>, usize)> = BTreeMap::new();
    let (unchanged, broken): (BTreeSet<_>, BTreeSet<_>) =
        (app.unchanged.iter().collect(), app.broken.iter().collect());
    for name in clusters {
        let text = match app.on.get(*name) {
            Some(counts) => counts.to_string(),
            None if broken.contains(name) => "error".to_owned(),
            None if app.mended.contains(name) => "rendered again".to_owned(),
            None if app.remaining.contains(name) => "objects stay".to_owned(),
            None if unchanged.contains(name) => "no change".to_owned(),
            None => "–".to_owned(),
        };
        let entry = told.entry(text).or_insert_with(|| (app.on.get(*name).copied(), 0));
        entry.1 += 1;
    }
    if clusters.len() == 1 {
        return told.into_keys().next().unwrap_or_default();
    }
    let mut parts: Vec<(String, (Option<ObjectCounts>, usize))> = told.into_iter().collect();
    parts.retain(|(text, _)| text != "–");
    // Changes first, then by the number of clusters.
    parts
        .sort_by_key(|(text, (counts, number))| (counts.is_none(), std::cmp::Reverse(*number), text.clone()));
    let more = parts.len().saturating_sub(4);
    let mut texts: Vec<String> =
        parts.into_iter().take(4).map(|(text, (_, number))| format!("{text} on {number}")).collect();
    if more > 0 {
        texts.push(format!("{more} others"));
    }
    if texts.is_empty() { "–".to_owned() } else { texts.join(", ") }
}
