//! Texts of statuses of pull requests that are no comparison result.

use std::collections::BTreeSet;

use crate::forge::CommitStatusState;
use crate::model::{AppId, Diagnostic, Revision};
use crate::promotion::{PromotionGate, PromotionGateState};
use crate::report::status_text::count_noun;
use crate::report::{self, Overview};

use super::check_queue::render_label;

/// State and text of a commit status.
pub type StatusText = (CommitStatusState, String);

pub fn comparing(base: &str) -> StatusText {
    (CommitStatusState::Pending, format!("comparing with {base}"))
}

pub fn awaiting_fork_label(prefix: &str) -> StatusText {
    let label = render_label(prefix);
    (
        CommitStatusState::Pending,
        format!("from a fork: rendered after a person with write access sets the label {label}"),
    )
}

pub fn conflicts(base: &str, paths: &[String], more: usize) -> StatusText {
    let others = paths.len() - 1 + more;
    let rest = if others == 0 { String::new() } else { format!(" and {} more", count_noun(others, "file")) };
    let first = paths.first().map_or("", String::as_str);
    (CommitStatusState::Failure, format!("conflicts with {base}: {first}{rest}"))
}

pub fn invalid(why: &str) -> StatusText {
    (CommitStatusState::Failure, why.to_owned())
}

pub fn not_compared() -> StatusText {
    (CommitStatusState::Failure, "not compared: see validate".to_owned())
}

pub fn superseded(by: &Revision) -> StatusText {
    (CommitStatusState::Skipped, report::status_text::superseded(by))
}

pub fn closed() -> StatusText {
    (CommitStatusState::Skipped, "closed before there was a result".to_owned())
}

/// A result without its missing parts is an error.
pub fn ended((state, text): StatusText) -> StatusText {
    (if state == CommitStatusState::Pending { CommitStatusState::Error } else { state }, text)
}

/// Status of the deployed branch's tip.
pub fn branch_status(overview: &Overview) -> StatusText {
    let (errors, warnings): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
        overview.diagnostics.iter().partition(|diagnostic| diagnostic.is_error());
    if let Some(first) = errors.first() {
        return (CommitStatusState::Failure, report::status_text::invalid(first, errors.len() - 1));
    }
    if !overview.is_rendered {
        return (CommitStatusState::Pending, report::status_text::rendering());
    }
    let apps: BTreeSet<&AppId> = overview.targets.iter().map(|target| &target.app).collect();
    let clusters = overview.clusters.iter().filter(|cluster| !cluster.is_unregistered()).count();
    (CommitStatusState::Success, report::status_text::valid(apps.len(), clusters, warnings.len()))
}

pub fn gate_status(gate: &PromotionGate) -> StatusText {
    let state = match gate.state {
        PromotionGateState::Success => CommitStatusState::Success,
        PromotionGateState::Pending => CommitStatusState::Pending,
        PromotionGateState::Failure => CommitStatusState::Failure,
    };
    (state, gate.text.clone())
}

/// Gate of an own pull request before the gates were read.
pub fn gates_unknown() -> StatusText {
    (CommitStatusState::Pending, "its gates are not known yet".to_owned())
}

pub fn no_promotion() -> StatusText {
    (CommitStatusState::Success, "no promotion".to_owned())
}
