//! The description of a pull request of this instance: the block for programs, and text for people.

use std::fmt::Write as _;

use super::pin::version_change;
use super::{PromotionGate, PromotionGateState, ProposedChange};
use crate::model::short_line;

/// Apps that are listed; the others are counted.
const MAX_LISTED_APPS: usize = 100;

/// The note below the description of a pull request that the forge does not merge.
pub fn refused_merge_note(why: &str) -> String {
    format!(
        "\nAll gates have passed. The forge refuses the merge, which is tried again: {}\n",
        code_span(why)
    )
}

pub fn pull_request_body(change: &ProposedChange, gates: &[PromotionGate]) -> String {
    let mut text = change.block().to_text();
    text.push('\n');
    text.push_str(&what_changes(change));
    if !gates.is_empty() {
        text.push_str("\n| gate | | |\n|---|---|---|\n");
        for PromotionGate { name, state, text: because } in gates {
            // Writing to a String does not fail.
            let _ =
                writeln!(text, "| {} | {} | {} |", code_span(name), state_mark(*state), code_span(because));
        }
    }
    text
}

fn what_changes(change: &ProposedChange) -> String {
    let mut text = String::new();
    let (lines, end): (Vec<String>, &str) = match change {
        ProposedChange::Promote { ring, before, pins, is_requested, .. } => {
            let _ = match is_requested {
                true => {
                    writeln!(text, "Requested with `tutti promote` for ring {}.\n", code_span(ring))
                }
                false => writeln!(
                    text,
                    "Ring {} has finished these versions; this pull request sets them in {}.\n",
                    code_span(before),
                    code_span(ring)
                ),
            };
            let line = |pin: &super::PinChange| {
                format!(
                    "{}: {} in {}",
                    code_span(&pin.app.to_string()),
                    code_span(&version_change(pin)),
                    code_span(&pin.file)
                )
            };
            let end = "To hold the version, close this pull request: tutti opens a new one with the next \
                       version only. If another person pushes to its branch, tutti no longer changes it.";
            (pins.iter().map(line).collect(), end)
        }
        ProposedChange::Approve { commit, wave, approvals } => {
            let _ = writeln!(
                text,
                "Wave {} of commit {} waits for a person. Merging this pull request confirms it, with the \
                 approvals that rules require.\n",
                code_span(wave),
                commit.short()
            );
            let line = |it: &crate::model::RolloutApproval| {
                format!("{}: version {}", code_span(&it.app.to_string()), it.digest.short())
            };
            (approvals.iter().map(line).collect(), "To leave the wave shut, close this pull request.")
        }
        ProposedChange::Revert { commit, apps, pins } => {
            let _ = writeln!(
                text,
                "The clusters returned to the version before {}, which failed. This pull request reverts it \
                 in Git too.\n",
                commit.short()
            );
            let line = |app: &crate::model::AppId| {
                let pin = pins.iter().find(|pin| pin.app == *app);
                let what = pin
                    .map(|pin| format!(": {} in {}", code_span(&version_change(pin)), code_span(&pin.file)));
                format!("{}{}", code_span(&app.to_string()), what.unwrap_or_default())
            };
            (
                apps.iter().map(line).collect(),
                "To try the version again instead: `tutti approve rollout APP --retry`.",
            )
        }
    };
    for line in lines.iter().take(MAX_LISTED_APPS) {
        let _ = writeln!(text, "- {line}");
    }
    if let Some(more) = lines.len().checked_sub(MAX_LISTED_APPS).filter(|more| *more > 0) {
        let _ = writeln!(text, "- and {more} more");
    }
    let _ = writeln!(text, "\n{end}");
    text
}

fn state_mark(state: PromotionGateState) -> &'static str {
    match state {
        PromotionGateState::Success => "✓ passed",
        PromotionGateState::Pending => "… pending",
        PromotionGateState::Failure => "✗ failed",
    }
}

/// Text in a code span mentions no user, closes no issue and ends no table.
fn code_span(text: &str) -> String {
    let text = short_line(text, 300).replace('|', "\\|");
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    if text.is_empty() { "–".to_owned() } else { format!("{fence}{space}{text}{space}{fence}") }
}
