//! Renders what a pull request would change, as one Markdown comment.
//!
//! A pure function of a [`Comparison`]: equal comparisons give equal bytes. Whatever names, values and errors contain, the
//! comment has at most [`MOST_BYTES`] bytes, its fences are closed, and it contains no foreign HTML, mentions or control
//! characters. If it is too long, the diffs of apps are dropped first; the summary, deletes and errors stay, and the comment
//! names what was left out. `pulls` and `cli` call it.

mod context;
mod details;
mod diagnostics;
mod sections;
mod table;
#[cfg(test)]
mod tests;
mod text;

pub use context::PlanCommentContext;
use details::DetailLevel;
use text::escaped;

use super::status_text::count_noun;
use crate::compare::{AppChange, Comparison};
use crate::model::Revision;

/// Below the limit of forges for a comment.
pub const MOST_BYTES: usize = 60_000;
/// Apps with a list of objects; the others only have a line in the table.
const MOST_APPS: usize = 300;

pub fn plan_comment(plan: &Comparison, names: &PlanCommentContext) -> String {
    let above = [
        names.heading(&plan.head),
        sections::summary(plan),
        sections::deletes(plan),
        diagnostics::errors(plan),
        sections::clusters(plan),
        table::app_table(plan),
        sections::rollout_orders(plan),
    ];
    let below = [
        diagnostics::existing_errors(plan, &names.base),
        diagnostics::warnings(plan),
        sections::footer(plan, names),
    ];
    let join = |parts: &[String]| {
        let parts: Vec<&str> =
            parts.iter().map(|part| part.trim_end()).filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    };
    let (above, below) = (join(&above), join(&below));
    let room = MOST_BYTES.saturating_sub(above.len() + below.len() + 1000);
    let (details, note) = app_sections(plan, room);
    let mut parts = vec![above];
    parts.extend(details);
    parts.extend([note, below]);
    join(&parts) + "\n"
}

/// A comment that explains why there is no plan: a conflict, or an unreadable head.
pub fn plan_failure(
    names: &PlanCommentContext,
    head: &Revision,
    message: &str,
    help: Option<&str>,
) -> String {
    let help = help.map(|help| format!("\n> help: {}", escaped(help, 500))).unwrap_or_default();
    format!("{}\n> [!WARNING]\n> **No plan**: {}{help}\n", names.heading(head), escaped(message, 2000))
}

/// The details of each app within a number of bytes, and the text about what was left out.
fn app_sections(plan: &Comparison, room: usize) -> (Vec<String>, String) {
    // The apps with the least risk are left out first.
    let risk = |app: &AppChange| {
        let deletes: usize = app.on.values().map(|counts| counts.deleted).sum();
        let changes: usize = app.on.values().map(|counts| counts.changed).sum();
        (deletes, app.broken.len(), changes)
    };
    let mut by_risk: Vec<usize> = (0..plan.apps.len()).collect();
    by_risk.sort_by_key(|index| (plan.apps.get(*index).map(risk), std::cmp::Reverse(*index)));
    let skipped = plan.apps.len().saturating_sub(MOST_APPS);
    let listed = by_risk.split_off(skipped);
    let mut levels = vec![DetailLevel::None; plan.apps.len()];
    let mut texts = vec![String::new(); plan.apps.len()];
    for index in &listed {
        if let (Some(app), Some(level), Some(text)) =
            (plan.apps.get(*index), levels.get_mut(*index), texts.get_mut(*index))
        {
            *level = DetailLevel::Full;
            *text = details::app_details(app, DetailLevel::Full);
        }
    }
    let size = |texts: &[String]| texts.iter().map(|text| text.len() + 2).sum::<usize>();
    let mut total = size(&texts);
    for level in [DetailLevel::Short, DetailLevel::List, DetailLevel::None] {
        for index in &listed {
            if total <= room {
                break;
            }
            let (Some(app), Some(text)) = (plan.apps.get(*index), texts.get_mut(*index)) else { continue };
            let shorter = details::app_details(app, level);
            if shorter.len() < text.len() {
                total -= text.len() - shorter.len();
                *text = shorter;
                if let Some(known) = levels.get_mut(*index) {
                    *known = level;
                }
            }
        }
    }
    let of = |level: DetailLevel| levels.iter().filter(|it| **it == level).count();
    let parts: Vec<String> = [
        (of(DetailLevel::Short), "parts of the diffs of"),
        (of(DetailLevel::List), "the diffs of"),
        (of(DetailLevel::None), "the objects of"),
    ]
    .into_iter()
    .filter(|(apps, _)| *apps > 0)
    .map(|(apps, what)| format!("{what} {}", count_noun(apps, "app")))
    .collect();
    let note = match parts.as_slice() {
        [] => String::new(),
        parts => format!(
            "Left out, as a comment has a limit: {}. `tutti plan --base … --head …` shows all.",
            parts.join(", ")
        ),
    };
    (texts.into_iter().filter(|text| !text.is_empty()).collect(), note)
}
