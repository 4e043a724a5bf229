//! Selects the app that a command names, and its part of the overview.

use std::collections::BTreeSet;

use anyhow::bail;

use crate::manifest::read::nearest;
use crate::model::{AppId, Diagnostic, DiagnosticScope};
use crate::report::{DeletionReport, Overview, RolloutReport, TargetPhase, TargetReport};

/// The part of an overview that concerns one app, or all of it.
#[derive(Default)]
pub struct AppSelection<'o> {
    pub app: Option<AppId>,
    pub targets: Vec<&'o TargetReport>,
    pub deletions: Vec<&'o DeletionReport>,
    pub held: Vec<&'o DeletionReport>,
    pub orphans: Vec<&'o DeletionReport>,
    pub rollouts: Vec<&'o RolloutReport>,
}

impl<'o> AppSelection<'o> {
    pub fn of(overview: &'o Overview, app: Option<AppId>) -> Self {
        let is_of_it = |it: &AppId| app.as_ref().is_none_or(|app| app == it);
        let of = |all: &'o [DeletionReport]| -> Vec<&'o DeletionReport> {
            all.iter().filter(|it| is_of_it(&it.app)).collect()
        };
        Self {
            targets: overview.targets.iter().filter(|it| is_of_it(&it.app)).collect(),
            deletions: of(&overview.deletions),
            held: of(&overview.held),
            orphans: of(&overview.orphans),
            rollouts: overview.rollouts.iter().filter(|it| is_of_it(&it.app)).collect(),
            app,
        }
    }

    pub fn held_units(&self) -> usize {
        self.rollouts.iter().map(|rollout| rollout.holds().count()).sum()
    }
}

/// The selection for a plan. It is empty when the app may be in a file with a mistake.
pub fn select_app<'o>(overview: &'o Overview, name: Option<&str>) -> anyhow::Result<AppSelection<'o>> {
    let Some(name) = name else { return Ok(AppSelection::of(overview, None)) };
    let is_unknown = !known_apps(overview).into_iter().any(|app| matches_name(name, app));
    if is_unknown && overview.has_errors() {
        return Ok(AppSelection::default());
    }
    Ok(AppSelection::of(overview, Some(app_named(overview, name)?)))
}

/// Apps that are rendered, and apps with remaining objects.
fn known_apps(overview: &Overview) -> BTreeSet<&AppId> {
    let gone = overview.deletions.iter().chain(&overview.held).chain(&overview.orphans);
    overview.targets.iter().map(|target| &target.app).chain(gone.map(|it| &it.app)).collect()
}

fn matches_name(name: &str, app: &AppId) -> bool {
    *app.name == *name || app.to_string() == name
}

/// Finds an app by `NAMESPACE/NAME`, or by its name if that is unique.
pub fn app_named(overview: &Overview, name: &str) -> anyhow::Result<AppId> {
    let known = known_apps(overview);
    let fitting: Vec<&AppId> = known.iter().copied().filter(|app| matches_name(name, app)).collect();
    match fitting[..] {
        [app] => Ok(app.clone()),
        [] => {
            if let Some(error) = overview.diagnostics.iter().find(|it| it.is_error()) {
                bail!("app {name} cannot be read: {error}");
            }
            let names: Vec<String> = known.iter().map(ToString::to_string).collect();
            let bare = known.iter().map(|app| &*app.name);
            let all: Vec<&str> = names.iter().map(String::as_str).chain(bare).collect();
            match nearest(name, &all) {
                Some(near) => bail!("no app {name} here; did you mean {near}?"),
                None if names.is_empty() => bail!("no app {name} here; there are none"),
                None => bail!("no app {name} here; there are {}", names.join(", ")),
            }
        }
        _ => {
            let names: Vec<String> = fitting.iter().map(ToString::to_string).collect();
            bail!("{name} is the name of several apps: {}", names.join(", "))
        }
    }
}

pub fn rollout_named<'o>(overview: &'o Overview, name: &str) -> anyhow::Result<&'o RolloutReport> {
    let app = app_named(overview, name)?;
    if let Some(rollout) = overview.rollouts.iter().find(|rollout| rollout.app == app) {
        return Ok(rollout);
    }
    if let Some(error) = app_error(overview, &app) {
        bail!("the waves of {app} cannot be read: {error}");
    }
    bail!(
        "{app} has no waves: a commit reaches all its clusters at once; rings.yaml, `waves` or `upgradeType` give it some"
    )
}

/// The mistake because of which an app is not known at the head.
pub fn app_error<'o>(overview: &'o Overview, app: &AppId) -> Option<&'o Diagnostic> {
    let errors = || overview.diagnostics.iter().filter(|it| it.is_error());
    let is_of_it = |it: &&Diagnostic| match &it.scope {
        DiagnosticScope::Instance => true,
        DiagnosticScope::App(of) | DiagnosticScope::Target(of, _) => of == app,
        DiagnosticScope::Cluster(_) | DiagnosticScope::File(_) => false,
    };
    let is_invalid = overview.targets.iter().any(|it| it.app == *app && it.phase == TargetPhase::Invalid);
    errors().find(is_of_it).or_else(|| errors().next().filter(|_| is_invalid))
}
