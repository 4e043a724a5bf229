//! Texts of the statuses `validate` and `plan` of a pull request: numbers first, cause last.

use super::words::{count, valid, with_room};
use crate::compare::Comparison;
use crate::forge::{State, shortened};
use crate::model::{Diagnostic, short_line};

pub type PlanStatus = (State, String);

/// `validate` and `plan`. Errors that the base has too do not fail them.
pub fn plan_statuses(plan: &Comparison) -> (PlanStatus, PlanStatus) {
    let short = |(state, text): (State, String)| (state, shortened(&short_line(&text, 1000)).into_owned());
    (short(validate(plan)), short(of_plan(plan)))
}

fn validate(plan: &Comparison) -> PlanStatus {
    if let Some(error) = plan.errors.first() {
        return (State::Failure, invalid(error, plan.errors.len()));
    }
    if plan.awaited > 0 {
        return (State::Pending, format!("{} not rendered yet", count(plan.awaited, "target")));
    }
    let totals = plan.totals;
    let mut text = valid(totals.apps, totals.clusters, totals.warnings);
    if !plan.known_errors.is_empty() {
        text.push_str(&format!("; {} of the base", count(plan.known_errors.len(), "error")));
    }
    (State::Success, text)
}

/// `apps/pay: image is required (apps/pay/app.yaml:14)`.
fn invalid(error: &Diagnostic, errors: usize) -> String {
    let first = if errors > 1 { format!("{errors} errors, ") } else { String::new() };
    let Some(location) = &error.location else { return format!("{first}{}", error.message) };
    let folder = location.file.rsplit_once('/').map_or(location.file.as_str(), |(folder, _)| folder);
    let place = short_line(&format!("{}:{}", location.file, location.start.line), 80);
    let message = short_line(&error.message, 200);
    with_room(format!("{first}{}: {message}", short_line(folder, 60)), &format!(" ({place})"))
}

fn of_plan(plan: &Comparison) -> PlanStatus {
    let errors = plan.errors.len();
    if errors > 0 {
        let broken = plan.apps.iter().filter(|app| !app.broken.is_empty()).count();
        let what = if broken > 0 {
            format!("{} not rendered", count(broken, "app"))
        } else {
            "no whole plan".to_owned()
        };
        return (State::Failure, format!("{}: {what}", count(errors, "error")));
    }
    if plan.awaited > 0 {
        return (State::Pending, format!("{} not rendered yet", count(plan.awaited, "target")));
    }
    let counts = plan.counts();
    if counts.is_none() {
        let text = if plan.has_changes() { "No object to write" } else { "No changes" };
        return (State::Success, text.to_owned());
    }
    let apps = plan.apps.iter().filter(|app| !app.on.is_empty()).count();
    let clusters = plan.changed_clusters().len();
    let deletes =
        if counts.deleted > 0 { format!(" ({})", count(counts.deleted, "delete")) } else { String::new() };
    (State::Success, format!("{}, {}: {counts}{deletes}", count(apps, "app"), count(clusters, "cluster")))
}
