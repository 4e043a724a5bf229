//! Texts of statuses of pull requests that are no comparison result.

use std::collections::BTreeSet;

use crate::forge::State;
use crate::model::{AppId, Diagnostic, Revision};
use crate::promotion::{Gate, GateState};
use crate::report::words::count;
use crate::report::{self, Overview};

use super::queue::render_label;

/// State and text of a commit status.
pub type Said = (State, String);

pub fn comparing(base: &str) -> Said {
    (State::Pending, format!("comparing with {base}"))
}

pub fn fork(prefix: &str) -> Said {
    let label = render_label(prefix);
    (State::Pending, format!("of a fork: rendered when somebody who may write sets the label {label}"))
}

pub fn conflicts(base: &str, paths: &[String], more: usize) -> Said {
    let others = paths.len() - 1 + more;
    let rest = if others == 0 { String::new() } else { format!(" and {} more", count(others, "file")) };
    let first = paths.first().map_or("", String::as_str);
    (State::Failure, format!("conflicts with {base}: {first}{rest}"))
}

pub fn unreadable(why: &str) -> Said {
    (State::Failure, why.to_owned())
}

pub fn not_compared() -> Said {
    (State::Failure, "not compared: see validate".to_owned())
}

pub fn superseded(by: &Revision) -> Said {
    (State::Skipped, report::words::superseded(by))
}

pub fn closed() -> Said {
    (State::Skipped, "closed before there was a result".to_owned())
}

/// A result without its missing parts is an error.
pub fn ended((state, text): Said) -> Said {
    (if state == State::Pending { State::Error } else { state }, text)
}

/// Status of the deployed branch's tip.
pub fn of_branch(overview: &Overview) -> Said {
    let (errors, warnings): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
        overview.diagnostics.iter().partition(|diagnostic| diagnostic.is_error());
    if let Some(first) = errors.first() {
        return (State::Failure, report::words::invalid(first, errors.len() - 1));
    }
    if !overview.is_rendered {
        return (State::Pending, report::words::rendering());
    }
    let apps: BTreeSet<&AppId> = overview.targets.iter().map(|target| &target.app).collect();
    let clusters = overview.clusters.iter().filter(|cluster| !cluster.is_dropped()).count();
    (State::Success, report::words::valid(apps.len(), clusters, warnings.len()))
}

pub fn gate(gate: &Gate) -> Said {
    let state = match gate.state {
        GateState::Success => State::Success,
        GateState::Pending => State::Pending,
        GateState::Failure => State::Failure,
    };
    (state, gate.text.clone())
}

/// Gate of an own pull request before the gates were read.
pub fn gates_unknown() -> Said {
    (State::Pending, "its gates are not known yet".to_owned())
}

pub fn no_promotion() -> Said {
    (State::Success, "no promotion".to_owned())
}
