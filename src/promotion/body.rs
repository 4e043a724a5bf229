//! The description of a pull request of this instance: the block for programs, and text for people.

use std::fmt::Write as _;

use super::change::versions;
use super::{Change, Gate, GateState};
use crate::model::short_line;

/// Apps that are listed; the others are counted.
const MOST_APPS: usize = 100;

/// The note below the description of a pull request that the forge does not merge.
pub fn refused_merge(why: &str) -> String {
    format!("\nAll gates have passed. The forge refuses the merge, which is tried again: {}\n", code(why))
}

pub fn body(change: &Change, gates: &[Gate]) -> String {
    let mut text = change.block().to_text();
    text.push('\n');
    text.push_str(&what_changes(change));
    if !gates.is_empty() {
        text.push_str("\n| gate | | |\n|---|---|---|\n");
        for Gate { name, state, text: because } in gates {
            // Writing to a String does not fail.
            let _ = writeln!(text, "| {} | {} | {} |", code(name), mark(*state), code(because));
        }
    }
    text
}

fn what_changes(change: &Change) -> String {
    let mut text = String::new();
    let (lines, end): (Vec<String>, &str) = match change {
        Change::Promote { ring, before, pins, is_requested, .. } => {
            let _ = match is_requested {
                true => {
                    writeln!(text, "Somebody asked for this with `tutti promote`, for ring {}.\n", code(ring))
                }
                false => writeln!(
                    text,
                    "Ring {} runs these versions and is done with them; this brings them to {}.\n",
                    code(before),
                    code(ring)
                ),
            };
            let line = |pin: &super::PinChange| {
                format!("{}: {} in {}", code(&pin.app.to_string()), code(&versions(pin)), code(&pin.file))
            };
            let end = "To hold the version, close this pull request: it comes again with the next version only. Once somebody else \
                       pushes to its branch, tutti leaves it alone.";
            (pins.iter().map(line).collect(), end)
        }
        Change::Approve { commit, wave, approvals } => {
            let _ = writeln!(
                text,
                "Wave {} of commit {} waits for a person. The merge of this confirms it: with the approvals that rules ask for, if they do.\n",
                code(wave),
                commit.short()
            );
            let line = |it: &crate::model::RolloutApproval| {
                format!("{}: version {}", code(&it.app.to_string()), it.digest.short())
            };
            (approvals.iter().map(line).collect(), "To leave the wave shut, close this pull request.")
        }
        Change::Revert { commit, apps, pins } => {
            let _ = writeln!(
                text,
                "The clusters went back to what they ran before {}, which failed. This takes it back in Git too.\n",
                commit.short()
            );
            let line = |app: &crate::model::AppId| {
                let pin = pins.iter().find(|pin| pin.app == *app);
                let what = pin.map(|pin| format!(": {} in {}", code(&versions(pin)), code(&pin.file)));
                format!("{}{}", code(&app.to_string()), what.unwrap_or_default())
            };
            (
                apps.iter().map(line).collect(),
                "To try the version again instead: `tutti approve rollout APP --retry`.",
            )
        }
    };
    for line in lines.iter().take(MOST_APPS) {
        let _ = writeln!(text, "- {line}");
    }
    if let Some(more) = lines.len().checked_sub(MOST_APPS).filter(|more| *more > 0) {
        let _ = writeln!(text, "- and {more} more");
    }
    let _ = writeln!(text, "\n{end}");
    text
}

fn mark(state: GateState) -> &'static str {
    match state {
        GateState::Success => "✓ passed",
        GateState::Pending => "… pending",
        GateState::Failure => "✗ failed",
    }
}

/// Text in a code span mentions no user, closes no issue and ends no table.
fn code(text: &str) -> String {
    let text = short_line(text, 300).replace('|', "\\|");
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    if text.is_empty() { "–".to_owned() } else { format!("{fence}{space}{text}{space}{fence}") }
}
