//! Sections of the comment that cover all apps.

use std::collections::BTreeMap;

use super::super::status_text::count_noun;
use super::PlanCommentContext;
use super::text::{
    MAX_NAME_CHARS, MAX_SHORT_NAME_CHARS, bold, code_span, escaped, join_clusters, take_within,
};
use crate::compare::{AppChange, ClusterPresence, Comparison, ObjectChange, RemovalOutcome, WaveStep};
use crate::model::{AppId, ClusterName};

/// The most deletes and rollout orders, and the bytes for them.
const MOST_DELETES: usize = 60;
const MAX_DELETES_BYTES: usize = 14_000;
const MOST_ORDERS: usize = 8;
const MAX_ORDERS_BYTES: usize = 2_500;
const LONGEST_ORDER: usize = 1_500;

pub fn summary(plan: &Comparison) -> String {
    let (counts, apps) = (plan.counts(), plan.apps.iter().filter(|app| !app.on.is_empty()).count());
    let clusters = plan.changed_clusters().len();
    let what: Vec<String> = [(counts.created, "add"), (counts.changed, "change"), (counts.deleted, "delete")]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, verb)| format!("{number} to {verb}"))
        .collect();
    let mut parts = Vec::new();
    if !plan.errors.is_empty() {
        parts.push(format!("**{}**", count_noun(plan.errors.len(), "error")));
    }
    parts.push(match what.as_slice() {
        [] if plan.has_changes() => "**No object to write**".to_owned(),
        [] => "**No changes**".to_owned(),
        what => {
            let (apps, total) = (count_noun(apps, "app"), count_noun(plan.clusters.len(), "cluster"));
            format!("**{apps} on {clusters} of {total}: {}**", what.join(", "))
        }
    });
    if !plan.warnings.is_empty() {
        parts.push(count_noun(plan.warnings.len(), "warning"));
    }
    if plan.awaited > 0 {
        parts.push(format!("{} not rendered yet", count_noun(plan.awaited, "target")));
    }
    parts.join(" · ")
}

pub fn deletes(plan: &Comparison) -> String {
    let all: Vec<(&AppId, &ObjectChange)> = plan.deletes().collect();
    if all.is_empty() {
        return String::new();
    }
    let objects: usize = all.iter().map(|(_, object)| object.clusters.len()).sum();
    let line = |(app, object): &(&AppId, &ObjectChange)| {
        let on = join_clusters(&object.clusters, bold);
        let fate = match &object.fate {
            Some(RemovalOutcome::WaitsForApproval(why)) => {
                format!(": waits for an approval, {}", escaped(why, 200))
            }
            _ => String::new(),
        };
        let (app, object) = (
            escaped(&app.to_string(), MAX_NAME_CHARS),
            code_span(&object.object.to_string(), 2 * MAX_NAME_CHARS),
        );
        format!("> - {object} on {on} ({app}){fate}")
    };
    let mut lines = vec!["> [!CAUTION]".to_owned(), format!("> **{}**", count_noun(objects, "delete"))];
    let (told, _) = take_within(all.iter().take(MOST_DELETES).map(line), MAX_DELETES_BYTES);
    let number = told.len();
    lines.extend(told);
    if all.len() > number {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, object) in all.iter().skip(number) {
            *kinds.entry(&object.object.kind).or_default() += object.clusters.len();
        }
        let mut kinds: Vec<(&str, usize)> = kinds.into_iter().collect();
        kinds.sort_by_key(|(kind, number)| (std::cmp::Reverse(*number), *kind));
        let named: Vec<String> = kinds
            .iter()
            .take(5)
            .map(|(kind, number)| format!("{number} {}", escaped(kind, MAX_SHORT_NAME_CHARS)))
            .collect();
        let more = count_noun(all.len() - number, "more object");
        lines.push(format!("> - and {more}: {}", named.join(", ")));
    }
    if !plan.errors.is_empty() || !plan.known_errors.is_empty() {
        lines.push("> - nothing is deleted while the repository has errors".to_owned());
    }
    lines.join("\n")
}

/// Clusters that are added or removed.
pub fn clusters(plan: &Comparison) -> String {
    let of = |state: ClusterPresence| -> Vec<ClusterName> {
        let columns = plan.clusters.iter().filter(|column| column.state == state);
        columns.map(|column| column.name.clone()).collect()
    };
    let line = |state, words: &str| match of(state).as_slice() {
        [] => None,
        names => Some(format!("{}: {words}.", join_clusters(names, bold))),
    };
    let lines = [
        line(ClusterPresence::New, "new in Git"),
        line(ClusterPresence::Gone, "no longer in Git: its objects stay"),
    ];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

pub fn rollout_orders(plan: &Comparison) -> String {
    let mut orders: BTreeMap<String, Vec<&AppChange>> = BTreeMap::new();
    for app in plan.apps.iter().filter(|app| !app.waves.is_empty() && !app.on.is_empty()) {
        orders.entry(wave_sequence(&app.waves)).or_default().push(app);
    }
    let is_one = orders.len() == 1;
    let line = |(order, apps): (&String, &Vec<&AppChange>)| {
        let names: Vec<String> =
            apps.iter().take(3).map(|app| escaped(&app.app.to_string(), MAX_NAME_CHARS)).collect();
        let more = if apps.len() > names.len() {
            format!(" and {} more", apps.len() - names.len())
        } else {
            String::new()
        };
        if is_one {
            format!("Rollout order: {order}.")
        } else {
            format!("- {}{more}: {order}", names.join(", "))
        }
    };
    let (mut lines, _) = take_within(orders.iter().take(MOST_ORDERS).map(line), MAX_ORDERS_BYTES);
    if orders.len() > lines.len() {
        lines.push(format!("- and {}", count_noun(orders.len() - lines.len(), "more order")));
    }
    if !is_one && !lines.is_empty() {
        lines.insert(0, "Rollout order:".to_owned());
    }
    lines.join("\n")
}

/// `bj4 → *somebody confirms* → bj5, gz1`.
fn wave_sequence(waves: &[WaveStep]) -> String {
    let mut text = String::new();
    for (number, wave) in waves.iter().enumerate().take(12) {
        if number > 0 {
            text.push_str(" → ");
        }
        text.push_str(&format!(
            "{} {}",
            join_clusters(&wave.clusters, |name| escaped(name, MAX_SHORT_NAME_CHARS)),
            wave_label(&wave.name)
        ));
        if let Some(seconds) = wave.soak {
            text.push_str(&format!(" → *soak {}*", duration_text(seconds)));
        }
        if wave.confirm {
            text.push_str(" → *somebody confirms*");
        }
    }
    if text.len() > LONGEST_ORDER { count_noun(waves.len(), "wave") } else { text }
}

fn wave_label(wave: &str) -> String {
    format!("({})", escaped(wave, MAX_SHORT_NAME_CHARS))
}

/// `90s`, `15m`, `2h`.
fn duration_text(seconds: u64) -> String {
    match seconds {
        0 => "0s".to_owned(),
        it if it % 3600 == 0 => format!("{}h", it / 3600),
        it if it % 60 == 0 => format!("{}m", it / 60),
        it => format!("{it}s"),
    }
}

pub fn footer(plan: &Comparison, names: &PlanCommentContext) -> String {
    let commits =
        format!("{} merged into {}", escaped(plan.head.short(), 12), escaped(plan.base.short(), 12));
    let is_plain = |url: &&String| {
        url.starts_with("http")
            && url.len() <= 500
            && url.chars().all(|it| it.is_ascii_graphic() && !"()<>[]\\`|@".contains(it))
    };
    let link = names.url.as_ref().filter(is_plain).map(|url| format!(" · [open in tutti]({url})"));
    format!("{commits}; no cluster was contacted{}", link.unwrap_or_default())
}
