//! Approvals of rollouts: of an app that is there, and of one of its waves.

use super::Facts;
use crate::fleet::{Waves, codes};
use crate::manifest::read::suggest;
use crate::model::{Diagnostic, RolloutAction, RolloutApproval, Scope};

/// Whether one fits the version that is rolled out shows only where that is known.
pub fn fit(facts: &Facts<'_>) -> Vec<Diagnostic> {
    facts.manifests.rollout_approvals.iter().filter_map(|approval| check(approval, facts)).collect()
}

fn check(approval: &RolloutApproval, facts: &Facts<'_>) -> Option<Diagnostic> {
    let location = approval.location.as_ref()?;
    let warn = |message: String, help: String| {
        let warning =
            Diagnostic::warning(codes::NO_SUCH_ROLLOUT, message, Scope::File(location.file.clone()));
        Some(warning.at(location.clone()).help(help))
    };
    let name = &approval.name;
    let Some(app) = facts.manifests.apps.iter().find(|app| app.id == approval.app) else {
        if facts.has_app(&approval.app) {
            return None;
        }
        let message = format!("Approval {name} is of {}, which does not exist", approval.app);
        return warn(message, "delete the file, or write namespace/name of the app".to_owned());
    };
    let RolloutAction::Open { through } = &approval.action else { return None };
    let defaults = facts.manifests.instance.as_ref().map(|instance| instance.defaults.rollout);
    let waves = Waves::from_parts(app, facts.rings, defaults.unwrap_or_default());
    if waves.is_one() {
        let message = format!("Approval {name} opens wave {through}, and {} has no waves", app.title());
        return warn(message, "delete the file: nothing waits for it".to_owned());
    }
    let waves: Vec<&str> = waves.list().iter().map(|wave| wave.name.as_str()).collect();
    if waves.contains(&through.as_str()) {
        return None;
    }
    let message = format!("Approval {name} opens wave {through}, which {} does not have", app.title());
    warn(message, suggest(through, &waves, &waves))
}
