//! Texts of the statuses `validate` and `plan` of a pull request: numbers first, cause last.

use super::status_text::{count_noun, join_shortened, valid};
use crate::compare::Comparison;
use crate::forge::{CommitStatusState, shorten_description};
use crate::model::{Diagnostic, short_line};

pub type PlanStatus = (CommitStatusState, String);

/// `validate` and `plan`. Errors that the base has too do not fail them.
pub fn plan_statuses(plan: &Comparison) -> (PlanStatus, PlanStatus) {
    let short = |(state, text): (CommitStatusState, String)| {
        (state, shorten_description(&short_line(&text, 1000)).into_owned())
    };
    (short(validate_status(plan)), short(plan_status(plan)))
}

fn validate_status(plan: &Comparison) -> PlanStatus {
    if let Some(error) = plan.errors.first() {
        return (CommitStatusState::Failure, invalid_text(error, plan.errors.len()));
    }
    if plan.awaited > 0 {
        return (
            CommitStatusState::Pending,
            format!("{} not rendered yet", count_noun(plan.awaited, "target")),
        );
    }
    let totals = plan.totals;
    let mut text = valid(totals.apps, totals.clusters, totals.warnings);
    if !plan.known_errors.is_empty() {
        text.push_str(&format!("; {} of the base", count_noun(plan.known_errors.len(), "error")));
    }
    (CommitStatusState::Success, text)
}

/// `apps/pay: image is required (apps/pay/app.yaml:14)`.
fn invalid_text(error: &Diagnostic, errors: usize) -> String {
    let first = if errors > 1 { format!("{errors} errors, ") } else { String::new() };
    let Some(location) = &error.location else { return format!("{first}{}", error.message) };
    let folder = location.file.rsplit_once('/').map_or(location.file.as_str(), |(folder, _)| folder);
    let place = short_line(&format!("{}:{}", location.file, location.start.line), 80);
    let message = short_line(&error.message, 200);
    join_shortened(format!("{first}{}: {message}", short_line(folder, 60)), &format!(" ({place})"))
}

fn plan_status(plan: &Comparison) -> PlanStatus {
    let errors = plan.errors.len();
    if errors > 0 {
        let broken = plan.apps.iter().filter(|app| !app.broken.is_empty()).count();
        let what = if broken > 0 {
            format!("{} not rendered", count_noun(broken, "app"))
        } else {
            "no complete plan".to_owned()
        };
        return (CommitStatusState::Failure, format!("{}: {what}", count_noun(errors, "error")));
    }
    if plan.awaited > 0 {
        return (
            CommitStatusState::Pending,
            format!("{} not rendered yet", count_noun(plan.awaited, "target")),
        );
    }
    let counts = plan.counts();
    if counts.is_none() {
        let text = if plan.has_changes() { "No object to write" } else { "No changes" };
        return (CommitStatusState::Success, text.to_owned());
    }
    let apps = plan.apps.iter().filter(|app| !app.on.is_empty()).count();
    let clusters = plan.changed_clusters().len();
    let deletes = if counts.deleted > 0 {
        format!(" ({})", count_noun(counts.deleted, "delete"))
    } else {
        String::new()
    };
    (
        CommitStatusState::Success,
        format!("{}, {}: {counts}{deletes}", count_noun(apps, "app"), count_noun(clusters, "cluster")),
    )
}
