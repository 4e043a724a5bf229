//! Maps each kind of hold to its link of the chain, its place in Git, its owner and its commands. No other file matches on
//! every kind.

use std::collections::BTreeSet;

use super::subject::ChainSubject;
use super::{ChainFinding, ChainLink, ChainLinkState, RuleKind};
use crate::fleet::selector;
use crate::model::{App, AppId, Location, WaveOrder};
use crate::report::RolloutReport;
use crate::rollout::{GateProgress, RolloutHold, UnitId};

pub const APPROVALS_FOLDER: &str = "approvals/";

pub fn hold_finding(at: &ChainSubject<'_>, rollout: &RolloutReport, hold: &RolloutHold) -> ChainFinding {
    let of = |link, state| ChainFinding::new(link, state, hold.to_string());
    let (waits, broken) =
        (of(ChainLink::Rollout, ChainLinkState::Waits), of(ChainLink::Rollout, ChainLinkState::Broken));
    let look_at = |unit: &UnitId| format!("tutti why {} --cluster {}", at.app, unit.cluster);
    let doctor = |name: &str| format!("tutti doctor {name}");
    let wave = |name: &str| wave_place(at, name);
    let approvals = || vec![APPROVALS_FOLDER.to_owned(), at.folder()];
    let finding = match hold.gate() {
        RolloutHold::Paused => broken.with_place(at.manifest_place()).help(["remove `paused: true`"]),
        RolloutHold::LeftOut { cluster, .. } => {
            of(ChainLink::Apply, ChainLinkState::Broken).help([doctor(cluster.as_str())])
        }
        RolloutHold::Unread => waits,
        RolloutHold::NotRendered { .. } => {
            of(ChainLink::Render, ChainLinkState::Broken).with_place(at.manifest_place())
        }
        RolloutHold::ClusterUnread { cluster } => waits.help([doctor(cluster.cluster.as_str())]),
        RolloutHold::Wave { unit, .. } => waits.with_writers(&[at.folder()]).help([look_at(unit)]),
        RolloutHold::WaveLeftOut { wave: name, .. } => {
            waits.with_place(wave(name)).help(["bring one of them back"])
        }
        RolloutHold::Soak { wave: name, .. } => {
            // The soak is counted by the running process, which may have started earlier than this one.
            let text = format!("{hold} at the latest");
            ChainFinding { text, ..waits }.with_place(wave(name)).help(["wait, or shorten `soak`"])
        }
        RolloutHold::Concurrency { wave: name, .. } => {
            waits.with_place(wave(name)).help(["wait, or raise `maxConcurrency`"])
        }
        RolloutHold::Confirmation { after, .. } => {
            broken.with_place(wave(after)).with_writers(&approvals()).help(RolloutReport::commands(rollout))
        }
        RolloutHold::Stopped { unit, .. } => {
            let revert = rollout.commands();
            broken.with_writers(&[at.folder()]).help(std::iter::once(look_at(unit)).chain(revert))
        }
        RolloutHold::Reverted { .. } | RolloutHold::RevertFailed { .. } => {
            broken.with_writers(&[at.folder(), APPROVALS_FOLDER.to_owned()]).help(rollout.commands())
        }
        RolloutHold::After { app, .. } => {
            waits.with_place(after_place(at, app)).help([format!("tutti why {app}")])
        }
        RolloutHold::Pin { .. } => {
            broken.with_place(pin_place(at)).with_writers(&approvals()).help(rollout.commands())
        }
        RolloutHold::Window { window, until, may_override, .. } => {
            let shut = if until.is_some() { waits } else { broken };
            let place = window_place(at, window);
            let overrides = match may_override.as_slice() {
                [] => APPROVALS_FOLDER.to_owned(),
                names => format!("{APPROVALS_FOLDER} (an override, by {})", names.join(", ")),
            };
            let by: Vec<String> =
                std::iter::once(overrides).chain(place.iter().map(|place| at.folder_of(place))).collect();
            let command = format!("tutti approve rollout {} --override {window}", at.app);
            let help = until.map(|_| "wait".to_owned()).into_iter().chain([command]);
            shut.with_place(place).with_writers(&by).help(help)
        }
        RolloutHold::Analysis { analysis, standing, .. } => {
            let place = at.context.fleet.analyses.get(analysis).map(|it| it.location.clone());
            let measured = measurement_finding(*standing, waits, broken)
                .with_place(place.clone().or_else(|| rings_place(at)));
            let place = place.iter().map(|place| at.folder_of(place));
            measured.with_writers(&place.chain(approvals()).collect::<Vec<_>>()).help(rollout.commands())
        }
        RolloutHold::Status { wave: name, standing, .. } => measurement_finding(*standing, waits, broken)
            .with_place(wave(name))
            .with_writers(&approvals())
            .help(rollout.commands()),
        RolloutHold::Approval { asks, .. } => {
            let rules = &at.context.fleet.approval_rules.rules;
            let place = rules.iter().find(|rule| asks.iter().any(|asks| asks.rule == rule.name));
            let roles: BTreeSet<&str> =
                asks.iter().flat_map(|asks| &asks.approvers).map(String::as_str).collect();
            let by = match roles.is_empty() {
                true => APPROVALS_FOLDER.to_owned(),
                false => format!("{APPROVALS_FOLDER} (approved by {})", Vec::from_iter(roles).join(", ")),
            };
            let of_rule = if hold.is_reading() { waits } else { broken };
            of_rule
                .with_place(place.map(|rule| rule.location.clone()))
                .with_writers(&[by])
                .help(rollout.commands())
        }
        RolloutHold::Frozen { .. } => {
            broken.with_writers(&[at.folder()]).help(["commit the app again, or fetch its history"])
        }
    };
    ChainFinding { hold: Some(hold.clone()), ..finding }
}

/// A measurement continues by itself until it fails or is inconclusive.
fn measurement_finding(standing: GateProgress, waits: ChainFinding, broken: ChainFinding) -> ChainFinding {
    match standing {
        GateProgress::Pending => waits,
        GateProgress::Failed | GateProgress::Inconclusive => broken,
    }
}

fn rings_place(at: &ChainSubject<'_>) -> Option<Location> {
    at.context.fleet.rings_location.clone()
}

/// The rule kind of a hold. `None`: no rule causes it.
pub fn rule_kind(hold: &RolloutHold) -> Option<RuleKind> {
    match hold.gate() {
        RolloutHold::Wave { .. }
        | RolloutHold::WaveLeftOut { .. }
        | RolloutHold::Soak { .. }
        | RolloutHold::Confirmation { .. }
        | RolloutHold::Concurrency { .. }
        | RolloutHold::Stopped { .. }
        | RolloutHold::Analysis { .. }
        | RolloutHold::Status { .. }
        | RolloutHold::ClusterUnread { .. } => Some(RuleKind::Gate),
        RolloutHold::Window { .. } => Some(RuleKind::Window),
        RolloutHold::Approval { .. } => Some(RuleKind::Approval),
        RolloutHold::After { .. } => Some(RuleKind::After),
        RolloutHold::Pin { .. } => Some(RuleKind::Pin),
        RolloutHold::Paused => Some(RuleKind::Pause),
        RolloutHold::LeftOut { .. }
        | RolloutHold::Unread
        | RolloutHold::NotRendered { .. }
        | RolloutHold::Reverted { .. }
        | RolloutHold::RevertFailed { .. }
        | RolloutHold::Frozen { .. } => None,
    }
}

pub fn wave_place(at: &ChainSubject<'_>, name: &str) -> Option<Location> {
    let app = at.manifest?;
    match &app.rollout.order {
        WaveOrder::Waves(rules) => {
            rules.iter().find(|rule| rule.name == name).map(|rule| rule.location.clone())
        }
        WaveOrder::Groups(_) => app.rollout.location.clone(),
        WaveOrder::Default => at.context.fleet.rings_location.clone(),
    }
}

fn after_place(at: &ChainSubject<'_>, app: &AppId) -> Option<Location> {
    let after = &at.manifest?.rollout.after;
    after.iter().find(|after| after.app == *app).map(|after| after.location.clone())
}

fn pin_place(at: &ChainSubject<'_>) -> Option<Location> {
    at.manifest?.pins.get(at.cluster?).map(|pin| pin.location.clone())
}

fn window_place(at: &ChainSubject<'_>, name: &str) -> Option<Location> {
    at.context.fleet.windows.iter().find(|window| window.name == name).map(|window| window.location.clone())
}

/// The place that sets the clusters of an app.
pub fn placement_place(app: &App) -> Location {
    let place = selector(app).and_then(|placement| placement.location.as_ref());
    place.unwrap_or(&app.location).clone()
}
