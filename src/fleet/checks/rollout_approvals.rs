//! Approvals of rollouts: of an app that is there, and of one of its waves.

use super::Facts;
use crate::fleet::codes;
use crate::manifest::read::suggest;
use crate::model::{
    App, DefaultRollout, Diagnostic, Rollout, RolloutAction, RolloutApproval, Scope, WaveOrder,
};

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
    let waves = waves(app, facts);
    if waves.is_empty() {
        let message = format!("Approval {name} opens wave {through}, and {} has no waves", app.title());
        return warn(message, "delete the file: nothing waits for it".to_owned());
    }
    if waves.contains(&through.as_str()) {
        return None;
    }
    let message = format!("Approval {name} opens wave {through}, which {} does not have", app.title());
    warn(message, suggest(through, &waves, &waves))
}

/// The names of the waves that an app may have.
fn waves<'a>(app: &'a App, facts: &Facts<'a>) -> Vec<&'a str> {
    let defaults = facts.manifests.instance.as_ref().map(|instance| instance.defaults.rollout);
    let mut names: Vec<&str> = match &app.rollout.order {
        WaveOrder::Default if defaults == Some(DefaultRollout::Together) => Vec::new(),
        WaveOrder::Default => facts.rings.iter().map(|ring| ring.name.as_str()).collect(),
        WaveOrder::Groups(order) => {
            let groups = order.groups.iter().map(|group| group.as_str());
            std::iter::once(Rollout::FIRST).chain(groups).collect()
        }
        WaveOrder::Waves(waves) => waves.iter().map(|wave| wave.name.as_str()).collect(),
    };
    if !names.is_empty() {
        names.push(Rollout::REST);
    }
    names
}
