//! Deletes and rollouts that wait for a person, and the commands for them, below a table.

use crate::cli::app_selection::AppSelection;
use crate::cli::output::say;
use crate::model::AppId;
use crate::report::status_text::count_noun;
use crate::report::{NextStep, Overview, RolloutReport};

/// Prints deletes and rollouts that wait for a person.
pub fn write_approvals(overview: &Overview) {
    write_approvals_of(overview, &AppSelection::of(overview, None));
}

/// The same for a selection.
pub fn write_approvals_of(overview: &Overview, chosen: &AppSelection<'_>) {
    let is_of_it = |app: &AppId| chosen.app.as_ref().is_none_or(|chosen| chosen == app);
    for approval in overview.approvals_wanted.iter().filter(|approval| is_of_it(&approval.app)) {
        say!(
            "\n{} of {} wait for approval:\n  tutti approve {}",
            count_noun(approval.objects.len(), "delete"),
            approval.app,
            approval.digest().short()
        );
    }
    // The app of an unused approval is unknown.
    for name in overview.approvals_unused.iter().filter(|_| chosen.app.is_none()) {
        say!(
            "\napproval {name} matches no waiting delete: the objects changed, or they are deleted already; \
             delete its file"
        );
    }
    chosen.rollouts.iter().for_each(|rollout| write_next_steps(rollout));
}

/// Prints a rollout's next step, and approvals without effect.
pub fn write_next_steps(rollout: &RolloutReport) {
    if let Some(NextStep { reason: because, commands }) = rollout.next_step() {
        say!("\n{because}:");
        commands.iter().for_each(|command| say!("  {command}"));
    }
    for line in rollout.mismatched_approvals() {
        say!("\n{line}");
    }
}
