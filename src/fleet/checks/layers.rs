//! Checks that the layers named by apps exist.

use std::collections::BTreeSet;

use super::Facts;
use crate::fleet::codes;
use crate::fleet::layers::{Level, layers_of};
use crate::manifest::read::suggest;
use crate::model::{App, AppSpec, Diagnostic, Scope};

pub fn exist(facts: &Facts<'_>) -> Vec<Diagnostic> {
    let known =
        [Level::Workload, Level::Language, Level::RunType].map(|level| layers_of(level, facts.snapshot));
    facts.manifests.apps.iter().flat_map(|app| missing(app, &known)).collect()
}

/// `known` holds the layers of each level, in the order of the levels.
fn missing(app: &App, known: &[BTreeSet<String>; 3]) -> Vec<Diagnostic> {
    let named = match &app.spec {
        AppSpec::AppSet(app_set) => [
            (Level::Workload, app_set.deploy_type.layer()),
            (Level::Language, app_set.language.as_deref()),
            (Level::RunType, app_set.run_type.as_deref()),
        ],
        AppSpec::Component(component) => [
            (Level::Workload, component.workload_type.layer()),
            (Level::Language, Some(component.language.as_str())),
            (Level::RunType, Some(component.run_type.as_str())),
        ],
        AppSpec::Objects(_) | AppSpec::Project(_) => return Vec::new(),
    };
    let check = |((level, name), known): ((Level, Option<&str>), &BTreeSet<String>)| {
        let name = name?;
        if known.contains(name) {
            return None;
        }
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let message =
            format!("{} {} names {} {name}, and there is no such layer", app.kind(), app.id, level.words());
        let help = format!("{}; or add the folder {}{name}/", suggest(name, &known, &known), level.folder());
        let error = Diagnostic::error(codes::UNKNOWN_LAYER, message, Scope::App(app.id.clone()));
        Some(error.at(app.location.clone()).help(help))
    };
    named.into_iter().zip(known).filter_map(check).collect()
}
