//! The details of one app: its objects with their fields.

use super::super::status_text::count_noun;
use super::text::{MAX_NAME_CHARS, bold, code_span, escaped, escaped_html, fenced, join_clusters};
use crate::compare::{
    AppChange, FieldChange, FieldGroup, ObjectChange, ObjectChangeAction, PlacementChange,
    PlacementTransition, RemovalOutcome,
};
use crate::model::ClusterName;

/// The level of detail for an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetailLevel {
    Full,
    /// Without the bodies of new objects; changes only where most clusters agree.
    Short,
    /// The objects without their changes.
    List,
    None,
}

const MOST_OBJECTS: usize = 60;
const MOST_SHORT: usize = 15;
/// Sets of clusters with the same change of one object.
const MOST_GROUPS: usize = 12;
const MOST_LINES: usize = 60;
const MOST_PLACES: usize = 12;

pub fn app_details(app: &AppChange, level: DetailLevel) -> String {
    if level == DetailLevel::None || app.objects.is_empty() && app.placement.is_empty() {
        return String::new();
    }
    let changed: Vec<ClusterName> = app.on.keys().cloned().collect();
    let mut parts = vec![versions(app), placement_lines(&app.placement)];
    let most = if level == DetailLevel::Full { MOST_OBJECTS } else { MOST_SHORT };
    parts.extend(app.objects.iter().take(most).map(|it| object_details(it, &changed, level)));
    if app.objects.len() > most {
        parts.push(format!("… and {}", count_noun(app.objects.len() - most, "more object")));
    }
    let separator = if level == DetailLevel::List { "\n" } else { "\n\n" };
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).filter(|part| !part.is_empty()).collect();
    format!(
        "<details><summary>{}</summary>\n\n{}\n\n</details>",
        app_title(app, &changed),
        parts.join(separator)
    )
}

fn app_title(app: &AppChange, changed: &[ClusterName]) -> String {
    let is_same = app.objects.iter().all(|object| {
        object.clusters == changed && object.fields.iter().all(|group| group.clusters == object.clusters)
    });
    let clusters = join_clusters(changed, |name| escaped_html(name, MAX_NAME_CHARS));
    let on = match changed {
        [] => String::new(),
        [_] => format!(" on {clusters}"),
        _ if is_same => format!(", the same on {clusters}"),
        _ => format!(" on {clusters}"),
    };
    let objects: std::collections::BTreeSet<_> = app.objects.iter().map(|object| &object.object).collect();
    format!(
        "<b>{}</b>: {}{on}",
        escaped_html(&app.app.to_string(), MAX_NAME_CHARS),
        count_noun(objects.len(), "object")
    )
}

/// Empty for one version, which is in the table.
fn versions(app: &AppChange) -> String {
    if app.versions.len() < 2 {
        return String::new();
    }
    let shown = |version: &Option<String>| {
        version.as_deref().map_or_else(|| "none".to_owned(), |it| code_span(it, 60))
    };
    let line = |it: &crate::compare::VersionChange| {
        format!("- {} → {} on {}", shown(&it.before), shown(&it.after), join_clusters(&it.clusters, bold))
    };
    app.versions.iter().take(MOST_PLACES).map(line).collect::<Vec<_>>().join("\n")
}

/// One line for clusters with the same reason and numbers.
fn placement_lines(changes: &[PlacementChange]) -> String {
    let mut folded: Vec<(&PlacementChange, Vec<ClusterName>)> = Vec::new();
    for change in changes {
        let same = |known: &PlacementChange| {
            (known.kind, known.before, known.after, &known.why)
                == (change.kind, change.before, change.after, &change.why)
        };
        match folded.iter_mut().find(|(known, _)| same(known)) {
            Some((_, clusters)) => clusters.push(change.cluster.clone()),
            None => folded.push((change, vec![change.cluster.clone()])),
        }
    }
    let number = |number: Option<i64>| number.map_or_else(|| "no number".to_owned(), |it| it.to_string());
    let line = |(change, clusters): &(&PlacementChange, Vec<ClusterName>)| {
        let words = match change.kind {
            PlacementTransition::Comes => format!("comes, {} replicas", number(change.after)),
            PlacementTransition::Goes => "goes".to_owned(),
            PlacementTransition::Stays => {
                format!("{} → {} replicas", number(change.before), number(change.after))
            }
        };
        format!("- {}: {words} ({})", join_clusters(clusters, bold), escaped(&change.why, 300))
    };
    let mut lines: Vec<String> = folded.iter().take(MOST_PLACES).map(line).collect();
    if folded.len() > MOST_PLACES {
        lines.push(format!("- and {} more", folded.len() - MOST_PLACES));
    }
    lines.join("\n")
}

fn object_details(change: &ObjectChange, changed: &[ClusterName], level: DetailLevel) -> String {
    let mut text = match level {
        DetailLevel::List => format!("- {}", heading(change)),
        _ => format!("#### {}", heading(change)),
    };
    if change.clusters != changed {
        text.push_str(&format!(" on {}", join_clusters(&change.clusters, bold)));
    }
    match &change.fate {
        Some(RemovalOutcome::WaitsForApproval(why)) => {
            text.push_str(&format!(": waits for an approval, {}", escaped(why, 200)))
        }
        Some(RemovalOutcome::Kept(why)) => text.push_str(&format!(": {}", escaped(why, 200))),
        Some(RemovalOutcome::Deleted) | None => {}
    }
    if level == DetailLevel::List {
        return text;
    }
    text.push('\n');
    if let Some(body) = change.body.as_ref().filter(|_| level == DetailLevel::Full) {
        let all: Vec<String> = body.lines().map(|line| format!("+{line}")).collect();
        text.push_str(&fenced("diff", &cut_lines(all)));
    }
    let groups = if level == DetailLevel::Full { MOST_GROUPS } else { 1 };
    for group in change.fields.iter().take(groups) {
        text.push_str(&fields(group, change));
    }
    if change.fields.len() > groups {
        text.push_str(&format!("\n… and {}\n", count_noun(change.fields.len() - groups, "more change")));
    }
    if change.more > 0 {
        text.push_str(&format!("\n… and {}\n", count_noun(change.more, "more field")));
    }
    text
}

fn heading(change: &ObjectChange) -> String {
    let object = code_span(&change.object.to_string(), 2 * MAX_NAME_CHARS);
    let version = escaped(&change.kind.api_version(), MAX_NAME_CHARS);
    match (change.action, &change.was, &change.from) {
        (ObjectChangeAction::Create, ..) => format!("+ {object} ({version})"),
        (ObjectChangeAction::Delete, ..) => format!("- {object} ({version})"),
        (ObjectChangeAction::Orphan, ..) => format!("{object} ({version}) is no longer rendered and stays"),
        (ObjectChangeAction::Rename, Some(was), _) => {
            format!("~ {object} ({version}), was {}", code_span(&was.name, MAX_NAME_CHARS))
        }
        (ObjectChangeAction::Move, _, Some(from)) => {
            format!("~ {object} ({version}), moves from {}", code_span(&from.to_string(), MAX_NAME_CHARS))
        }
        _ => format!("~ {object} ({version})"),
    }
}

/// The fields of a group of clusters, with a title unless it is all clusters of the object.
fn fields(group: &FieldGroup, change: &ObjectChange) -> String {
    let mut origins: Vec<&str> = group.fields.iter().filter_map(|field| field.set_by.as_deref()).collect();
    origins.sort_unstable();
    origins.dedup();
    let origin = match origins.as_slice() {
        [one] => format!(" ({})", code_span(one, 200)),
        _ => String::new(),
    };
    let title = if group.clusters == change.clusters {
        String::new()
    } else {
        format!("\nOnly on {}{origin}:\n", join_clusters(&group.clusters, bold))
    };
    let told_above = !title.is_empty() && origins.len() == 1;
    format!("{title}{}", fenced("diff", &cut_lines(lines(&group.fields, told_above))))
}

/// Fields of one parent follow a line that names it.
fn lines(fields: &[FieldChange], told_above: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut last = None;
    for field in fields {
        let (parent, name) = split_path(&field.path);
        let origin = field.set_by.as_deref().filter(|_| !told_above);
        let is_text = !field.lines.is_empty();
        let title = if is_text { field.path.as_str() } else { parent };
        if is_text || last.replace((title, origin)) != Some((title, origin)) {
            let origin = origin.map(|it| format!(" · {it}")).unwrap_or_default();
            lines.push(format!("@@ {}{origin} @@", if title.is_empty() { "." } else { title }));
        }
        if is_text {
            last = None;
            lines.extend(field.lines.iter().cloned());
        }
        lines.extend(field.before.iter().map(|value| format!("-{name}: {value}")));
        lines.extend(field.after.iter().map(|value| format!("+{name}: {value}")));
    }
    lines
}

/// Parent and name. Keys of these maps may contain dots.
fn split_path(path: &str) -> (&str, &str) {
    const MAPS: [&str; 6] =
        ["annotations.", "labels.", "data.", "stringData.", "matchLabels.", "nodeSelector."];
    let is_own = |at: usize| at == 0 || path.get(..at).is_some_and(|before| before.ends_with('.'));
    let begin =
        |map: &&str| path.match_indices(*map).find(|(at, _)| is_own(*at)).map(|(at, _)| at + map.len());
    match MAPS.iter().filter_map(begin).min() {
        Some(at) => (path.get(..at - 1).unwrap_or_default(), path.get(at..).unwrap_or_default()),
        None => path.rsplit_once('.').unwrap_or(("", path)),
    }
}

fn cut_lines(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > MOST_LINES {
        let more = lines.len() - MOST_LINES;
        lines.truncate(MOST_LINES);
        lines.push(format!("@@ and {more} more lines @@"));
    }
    lines
}
