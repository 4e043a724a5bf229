//! Checks that rollout approvals name an existing app, wave or window.

use std::collections::{BTreeMap, BTreeSet};

use super::CheckInput;
use crate::fleet::{Waves, codes};
use crate::manifest::read::{nearest, suggest};
use crate::model::{App, AppId, Diagnostic, DiagnosticScope, Location, RolloutAction, RolloutApproval};

/// Whether an approval fits the version is checked where the version is rolled out.
pub fn rollout_approvals_fit(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let approvals = &facts.manifests.rollout_approvals;
    if approvals.is_empty() {
        return Vec::new();
    }
    let named = facts.app_names();
    let apps: BTreeMap<&AppId, &App> = facts.manifests.apps.iter().map(|app| (&app.id, &**app)).collect();
    let check = |approval: &RolloutApproval| match apps.get(&approval.app) {
        Some(app) => no_such_wave(approval, app, facts).or_else(|| no_such_window(approval, facts)),
        None if named.contains(&approval.app) => None,
        None => no_such_app(approval, &named),
    };
    approvals.iter().filter_map(check).collect()
}

fn no_such_app(approval: &RolloutApproval, named: &BTreeSet<&AppId>) -> Option<Diagnostic> {
    let message = format!("Approval {} is of {}, which does not exist", approval.name, approval.app);
    let names: Vec<String> = named.iter().map(ToString::to_string).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let help = match nearest(&approval.app.to_string(), &names) {
        Some(name) => format!("did you mean `{name}`? Else delete the file"),
        None => "delete the file, or write namespace/name of the app".to_owned(),
    };
    warning(approval, approval.places.app.as_ref(), message, help)
}

fn no_such_wave(approval: &RolloutApproval, app: &App, facts: &CheckInput<'_>) -> Option<Diagnostic> {
    let RolloutAction::Open { through } = &approval.action else { return None };
    let (name, title, through_place) = (&approval.name, app.title(), approval.places.through.as_ref());
    let defaults = facts.manifests.instance.as_ref().map(|instance| instance.defaults.rollout);
    let waves = Waves::from_parts(app, facts.rings, defaults.unwrap_or_default());
    if waves.is_single() {
        let message = format!("Approval {name} opens wave {through}, and {title} has no waves");
        return warning(approval, through_place, message, "delete the file: nothing waits for it".to_owned());
    }
    let waves: Vec<&str> = waves.list().iter().map(|wave| wave.name.as_str()).collect();
    if waves.contains(&through.as_str()) {
        return None;
    }
    let message = format!("Approval {name} opens wave {through}, which {title} does not have");
    warning(approval, through_place, message, suggest(through, &waves, &waves))
}

fn no_such_window(approval: &RolloutApproval, facts: &CheckInput<'_>) -> Option<Diagnostic> {
    let RolloutAction::Override { window } = &approval.action else { return None };
    let names: Vec<&str> = facts.manifests.windows.iter().map(|it| it.name.as_str()).collect();
    if names.contains(&window.as_str()) {
        return None;
    }
    let message = format!("Approval {} is for window {window}, which does not exist", approval.name);
    let help = match names[..] {
        [] => "delete the file: no window holds anything".to_owned(),
        _ => suggest(window, &names, &names),
    };
    warning(approval, approval.places.window.as_ref(), message, help)
}

fn warning(
    approval: &RolloutApproval,
    place: Option<&Location>,
    message: String,
    help: String,
) -> Option<Diagnostic> {
    let location = place.or(approval.location.as_ref())?;
    let warning = Diagnostic::warning(
        codes::APPROVAL_UNKNOWN_ROLLOUT,
        message,
        DiagnosticScope::File(location.file.clone()),
    );
    Some(warning.at(location.clone()).help(help))
}
