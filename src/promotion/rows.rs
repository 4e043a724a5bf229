//! The state of every app with pins by ring: `tutti get promotions`.

use serde::Serialize;

use super::next::{NextVersion, pin_of, promotion_steps, rings_of, running_version};
use super::pull_requests::{PullRequestAction, decide};
use super::{PromotionInput, group_of, promotion_branch};
use crate::model::AppId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PromotionRowState {
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

impl PromotionRowState {
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
pub struct PromotionRow {
    pub app: AppId,
    pub ring: String,
    /// The version that runs there, or that its pin sets.
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    pub state: PromotionRowState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<u64>,
    /// What it waits for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub because: String,
}

/// One row for every app with a pin, in every ring that it runs in.
pub fn promotion_rows(input: &PromotionInput<'_>) -> Vec<PromotionRow> {
    let (steps, decision) = (promotion_steps(input), decide(input));
    let mut lines = Vec::new();
    for app in input.fleet.apps.values().filter(|app| !app.pins.is_empty()) {
        for ring in rings_of(input, app) {
            let pin = pin_of(input, app, &ring.name).map(|(version, _)| version.to_owned());
            let known =
                input.rings.get(&(app.id.clone(), ring.name.clone())).map(|state| state.version.clone());
            let mut line = PromotionRow {
                app: app.id.clone(),
                ring: ring.name.clone(),
                version: pin.or(known).unwrap_or_default(),
                next: None,
                state: PromotionRowState::First,
                pull_request: None,
                because: running_version(input, app, &ring.name).err().unwrap_or_default(),
            };
            let is_it = |(of, _): &(&crate::model::App, _)| of.id == app.id;
            if let Some(step) =
                steps.iter().find(|step| step.ring.name == ring.name && step.apps.iter().any(is_it))
            {
                let branch = promotion_branch(input.prefix(), &group_of(app), &ring.name);
                (line.state, line.because) = match step.next_version(input) {
                    NextVersion::Nothing { .. } => (PromotionRowState::UpToDate, String::new()),
                    NextVersion::Waits { why, .. } => (PromotionRowState::Waiting, why),
                    NextVersion::Ready { pins } => {
                        line.next = pins.into_iter().find(|pin| pin.app == app.id).map(|pin| pin.to);
                        match line.next {
                            Some(_) => (PromotionRowState::Ready, String::new()),
                            None => (PromotionRowState::UpToDate, String::new()),
                        }
                    }
                };
                let wanted = decision.pull_requests.iter().find(|wanted| wanted.branch == branch);
                if let Some(wanted) = wanted.filter(|_| line.state != PromotionRowState::UpToDate) {
                    line.pull_request = wanted.number;
                    match (&wanted.action, wanted.number) {
                        (PullRequestAction::Held { why }, number)
                            if line.state == PromotionRowState::Ready || number.is_some() =>
                        {
                            let waits = step.is_manual() && number.is_none();
                            line.state =
                                if waits { PromotionRowState::Ready } else { PromotionRowState::Held };
                            line.because.clone_from(why);
                        }
                        (_, Some(_)) => line.state = PromotionRowState::Open,
                        _ => {}
                    }
                }
            }
            lines.push(line);
        }
    }
    lines
}
