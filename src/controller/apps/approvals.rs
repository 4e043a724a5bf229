//! Warnings about Approvals of rollouts for another version than the head's: they have no effect.

use super::{AppAtCommit, AppHead};
use crate::fleet::{Fleet, Waves, codes};
use crate::model::{
    ChartProvider, Diagnostic, DiagnosticScope, Digest, RolloutAction, RolloutApproval, Snapshot,
};
use crate::render::{FleetRenderer, Renders};

/// For all apps in waves. An app that cannot be rendered everywhere has no known digest.
pub fn approvals_of_other_versions(
    fleet: &Fleet,
    snapshot: &Snapshot,
    charts: &dyn ChartProvider,
    renders: &Renders,
) -> Vec<Diagnostic> {
    let declared =
        FleetRenderer::new(fleet, snapshot, charts).with_defined_kinds(renders.defined_kinds().clone());
    let mut found = Vec::new();
    for (id, approvals) in &fleet.rollout_approvals {
        let (Some(app), Some(renders)) = (fleet.apps.get(id), renders.apps.get(id)) else { continue };
        let is_whole = renders.values().all(|(_, render)| render.is_ok());
        let (at, waves) = (AppAtCommit { fleet, app, renders }, Waves::of(fleet, app));
        let is_decided = || at.is_in_waves(&waves) || at.is_selected();
        if app.unmanaged || !is_whole || !is_decided() {
            continue;
        }
        // A missing wave is reported elsewhere.
        let is_of_a_wave = |approval: &&RolloutApproval| match &approval.action {
            RolloutAction::Open { through } => waves.position(through).is_some(),
            RolloutAction::Retry | RolloutAction::Override { .. } => true,
        };
        let approvals: Vec<&RolloutApproval> = approvals.iter().filter(is_of_a_wave).collect();
        let head = at.head(waves, &declared);
        let others = approvals.into_iter().filter(|approval| !head.has_version(&approval.digest));
        found.extend(others.map(|approval| warning(approval, &head)));
    }
    found
}

impl AppHead {
    /// The digest of the app, or of one ring whose pin moves alone.
    pub fn has_version(&self, digest: &Digest) -> bool {
        self.digest == *digest || self.facts.waves.contains(digest)
    }
}

fn warning(approval: &RolloutApproval, head: &AppHead) -> Diagnostic {
    let RolloutApproval { name, app, digest, places, location, .. } = approval;
    let message = format!(
        "Approval {name} is for version {} of {app}, which is {} now: it does nothing",
        digest.short(),
        head.digest.short()
    );
    let flag = match &approval.action {
        RolloutAction::Open { .. } => String::new(),
        RolloutAction::Retry => " --retry".to_owned(),
        RolloutAction::Override { window } => format!(" --override {window}"),
    };
    let help = format!("delete the file, or write a new one with `tutti approve rollout {app}{flag}`");
    let scope = location
        .as_ref()
        .map_or(DiagnosticScope::App(app.clone()), |at| DiagnosticScope::File(at.file.clone()));
    let warning = Diagnostic::warning(codes::APPROVAL_OTHER_VERSION, message, scope).help(help);
    match places.digest.as_ref().or(location.as_ref()) {
        Some(place) => warning.at(place.clone()),
        None => warning,
    }
}
