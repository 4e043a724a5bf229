//! The state of every app with pins by ring: `tutti get promotions`.

use serde::Serialize;

use super::next::{Next, pin_of, rings_of, runs, steps};
use super::wanted::{Action, decide};
use super::{Input, group_of, promotion_branch};
use crate::model::AppId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LineState {
    /// The first ring of a version: no pin, or no ring before.
    First,
    /// It has the version of the ring before.
    UpToDate,
    /// The ring before is not done, or its soak is not over.
    Waiting,
    /// The next version may be proposed.
    Ready,
    Open,
    /// Somebody closed the pull request, or pushed to the branch.
    Held,
}

impl LineState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "First",
            Self::UpToDate => "UpToDate",
            Self::Waiting => "Waiting",
            Self::Ready => "Ready",
            Self::Open => "Open",
            Self::Held => "Held",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    pub app: AppId,
    pub ring: String,
    /// The version that runs there, or that its pin sets.
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    pub state: LineState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<u64>,
    /// What it waits for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub because: String,
}

/// One row for every app with a pin, in every ring that it runs in.
pub fn lines(input: &Input<'_>) -> Vec<Line> {
    let (steps, decision) = (steps(input), decide(input));
    let mut lines = Vec::new();
    for app in input.fleet.apps.values().filter(|app| !app.pins.is_empty()) {
        for ring in rings_of(input, app) {
            let pin = pin_of(input, app, &ring.name).map(|(version, _)| version.to_owned());
            let known =
                input.rings.get(&(app.id.clone(), ring.name.clone())).map(|state| state.version.clone());
            let mut line = Line {
                app: app.id.clone(),
                ring: ring.name.clone(),
                version: pin.or(known).unwrap_or_default(),
                next: None,
                state: LineState::First,
                pull_request: None,
                because: runs(input, app, &ring.name).err().unwrap_or_default(),
            };
            let is_it = |(of, _): &(&crate::model::App, _)| of.id == app.id;
            if let Some(step) =
                steps.iter().find(|step| step.ring.name == ring.name && step.apps.iter().any(is_it))
            {
                let branch = promotion_branch(input.prefix(), &group_of(app), &ring.name);
                (line.state, line.because) = match step.next(input) {
                    Next::Nothing { .. } => (LineState::UpToDate, String::new()),
                    Next::Waits { why, .. } => (LineState::Waiting, why),
                    Next::Ready { pins } => {
                        line.next = pins.into_iter().find(|pin| pin.app == app.id).map(|pin| pin.to);
                        match line.next {
                            Some(_) => (LineState::Ready, String::new()),
                            None => (LineState::UpToDate, String::new()),
                        }
                    }
                };
                let wanted = decision.wanted.iter().find(|wanted| wanted.branch == branch);
                if let Some(wanted) = wanted.filter(|_| line.state != LineState::UpToDate) {
                    line.pull_request = wanted.number;
                    match (&wanted.action, wanted.number) {
                        (Action::Held { why }, number)
                            if line.state == LineState::Ready || number.is_some() =>
                        {
                            let waits = step.is_manual() && number.is_none();
                            line.state = if waits { LineState::Ready } else { LineState::Held };
                            line.because.clone_from(why);
                        }
                        (_, Some(_)) => line.state = LineState::Open,
                        _ => {}
                    }
                }
            }
            lines.push(line);
        }
    }
    lines
}
