//! Maps each kind of hold to its link of the chain, its place in Git, its owner and its commands. No other file matches on
//! every kind.

use std::collections::BTreeSet;

use super::links::Position;
use super::{Finding, Link, RuleKind, State};
use crate::fleet::selector;
use crate::model::{App, AppId, Location, WaveOrder};
use crate::report::RolloutReport;
use crate::rollout::{Hold, Standing, UnitId};

pub const APPROVALS: &str = "approvals/";

pub fn finding(at: &Position<'_>, rollout: &RolloutReport, hold: &Hold) -> Finding {
    let of = |link, state| Finding::new(link, state, hold.to_string());
    let (waits, broken) = (of(Link::Rollout, State::Waits), of(Link::Rollout, State::Broken));
    let look_at = |unit: &UnitId| format!("tutti why {} --cluster {}", at.app, unit.cluster);
    let doctor = |name: &str| format!("tutti doctor {name}");
    let wave = |name: &str| wave_place(at, name);
    let approvals = || vec![APPROVALS.to_owned(), at.folder()];
    let finding = match hold.gate() {
        Hold::Paused => broken.at(at.manifest_place()).help(["remove `paused: true`"]),
        Hold::LeftOut { cluster, .. } => of(Link::Apply, State::Broken).help([doctor(cluster.as_str())]),
        Hold::Unread => waits,
        Hold::NotRendered { .. } => of(Link::Render, State::Broken).at(at.manifest_place()),
        Hold::ClusterUnread { cluster } => waits.help([doctor(cluster.cluster.as_str())]),
        Hold::Wave { unit, .. } => waits.by(&[at.folder()]).help([look_at(unit)]),
        Hold::WaveLeftOut { wave: name, .. } => waits.at(wave(name)).help(["bring one of them back"]),
        Hold::Soak { wave: name, .. } => {
            // The soak is counted by the running process, which may have started earlier than this one.
            let text = format!("{hold} at the latest");
            Finding { text, ..waits }.at(wave(name)).help(["wait, or shorten `soak`"])
        }
        Hold::Concurrency { wave: name, .. } => {
            waits.at(wave(name)).help(["wait, or raise `maxConcurrency`"])
        }
        Hold::Confirmation { after, .. } => {
            broken.at(wave(after)).by(&approvals()).help(RolloutReport::commands(rollout))
        }
        Hold::Stopped { unit, .. } => {
            let revert = rollout.commands();
            broken.by(&[at.folder()]).help(std::iter::once(look_at(unit)).chain(revert))
        }
        Hold::Reverted { .. } | Hold::RevertFailed { .. } => {
            broken.by(&[at.folder(), APPROVALS.to_owned()]).help(rollout.commands())
        }
        Hold::After { app, .. } => waits.at(after_place(at, app)).help([format!("tutti why {app}")]),
        Hold::Pin { .. } => broken.at(pin_place(at)).by(&approvals()).help(rollout.commands()),
        Hold::Window { window, until, may_override, .. } => {
            let shut = if until.is_some() { waits } else { broken };
            let place = window_place(at, window);
            let overrides = match may_override.as_slice() {
                [] => APPROVALS.to_owned(),
                names => format!("{APPROVALS} (an override, by {})", names.join(", ")),
            };
            let by: Vec<String> =
                std::iter::once(overrides).chain(place.iter().map(|place| at.folder_of(place))).collect();
            let command = format!("tutti approve rollout {} --override {window}", at.app);
            let help = until.map(|_| "wait".to_owned()).into_iter().chain([command]);
            shut.at(place).by(&by).help(help)
        }
        Hold::Analysis { analysis, standing, .. } => {
            let place = at.look.fleet.analyses.get(analysis).map(|it| it.location.clone());
            let measured = measured(*standing, waits, broken).at(place.clone().or_else(|| rings(at)));
            let place = place.iter().map(|place| at.folder_of(place));
            measured.by(&place.chain(approvals()).collect::<Vec<_>>()).help(rollout.commands())
        }
        Hold::Status { wave: name, standing, .. } => {
            measured(*standing, waits, broken).at(wave(name)).by(&approvals()).help(rollout.commands())
        }
        Hold::Approval { asks, .. } => {
            let rules = &at.look.fleet.approval_rules.rules;
            let place = rules.iter().find(|rule| asks.iter().any(|asks| asks.rule == rule.name));
            let roles: BTreeSet<&str> =
                asks.iter().flat_map(|asks| &asks.approvers).map(String::as_str).collect();
            let by = match roles.is_empty() {
                true => APPROVALS.to_owned(),
                false => format!("{APPROVALS} (approved by {})", Vec::from_iter(roles).join(", ")),
            };
            let of_rule = if hold.is_reading() { waits } else { broken };
            of_rule.at(place.map(|rule| rule.location.clone())).by(&[by]).help(rollout.commands())
        }
        Hold::Frozen { .. } => broken.by(&[at.folder()]).help(["commit the app anew, or fetch its history"]),
    };
    Finding { hold: Some(hold.clone()), ..finding }
}

/// A measurement continues by itself until it fails or is inconclusive.
fn measured(standing: Standing, waits: Finding, broken: Finding) -> Finding {
    match standing {
        Standing::Pending => waits,
        Standing::Failed | Standing::Inconclusive => broken,
    }
}

fn rings(at: &Position<'_>) -> Option<Location> {
    at.look.fleet.rings_location.clone()
}

/// The rule kind of a hold. `None`: no rule causes it.
pub fn rule_of(hold: &Hold) -> Option<RuleKind> {
    match hold.gate() {
        Hold::Wave { .. }
        | Hold::WaveLeftOut { .. }
        | Hold::Soak { .. }
        | Hold::Confirmation { .. }
        | Hold::Concurrency { .. }
        | Hold::Stopped { .. }
        | Hold::Analysis { .. }
        | Hold::Status { .. }
        | Hold::ClusterUnread { .. } => Some(RuleKind::Gate),
        Hold::Window { .. } => Some(RuleKind::Window),
        Hold::Approval { .. } => Some(RuleKind::Approval),
        Hold::After { .. } => Some(RuleKind::After),
        Hold::Pin { .. } => Some(RuleKind::Pin),
        Hold::Paused => Some(RuleKind::Pause),
        Hold::LeftOut { .. }
        | Hold::Unread
        | Hold::NotRendered { .. }
        | Hold::Reverted { .. }
        | Hold::RevertFailed { .. }
        | Hold::Frozen { .. } => None,
    }
}

pub fn wave_place(at: &Position<'_>, name: &str) -> Option<Location> {
    let app = at.manifest?;
    match &app.rollout.order {
        WaveOrder::Waves(rules) => {
            rules.iter().find(|rule| rule.name == name).map(|rule| rule.location.clone())
        }
        WaveOrder::Groups(_) => app.rollout.location.clone(),
        WaveOrder::Default => at.look.fleet.rings_location.clone(),
    }
}

fn after_place(at: &Position<'_>, app: &AppId) -> Option<Location> {
    let after = &at.manifest?.rollout.after;
    after.iter().find(|after| after.app == *app).map(|after| after.location.clone())
}

fn pin_place(at: &Position<'_>) -> Option<Location> {
    at.manifest?.pins.get(at.cluster?).map(|pin| pin.location.clone())
}

fn window_place(at: &Position<'_>, name: &str) -> Option<Location> {
    at.look.fleet.windows.iter().find(|window| window.name == name).map(|window| window.location.clone())
}

/// The place that sets the clusters of an app.
pub fn placement_place(app: &App) -> Location {
    let place = selector(app).and_then(|placement| placement.location.as_ref());
    place.unwrap_or(&app.location).clone()
}
