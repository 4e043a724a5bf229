//! Checks that the layers named by apps exist.

use std::collections::BTreeSet;

use super::CheckInput;
use crate::fleet::codes;
use crate::fleet::layers::{LayerLevel, layers_of};
use crate::manifest::read::suggest;
use crate::model::{App, AppSpec, Diagnostic, DiagnosticScope};

pub fn layers_exist(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let known = [LayerLevel::Workload, LayerLevel::Language, LayerLevel::RunType]
        .map(|level| layers_of(level, facts.snapshot));
    facts.manifests.apps.iter().flat_map(|app| missing_layers(app, &known)).collect()
}

/// `known` holds the layers of each level, in the order of the levels.
fn missing_layers(app: &App, known: &[BTreeSet<String>; 3]) -> Vec<Diagnostic> {
    let named = match &app.spec {
        AppSpec::AppSet(app_set) => [
            (LayerLevel::Workload, app_set.deploy_type.layer()),
            (LayerLevel::Language, app_set.language.as_deref()),
            (LayerLevel::RunType, app_set.run_type.as_deref()),
        ],
        AppSpec::Component(component) => [
            (LayerLevel::Workload, component.workload_type.layer()),
            (LayerLevel::Language, Some(component.language.as_str())),
            (LayerLevel::RunType, Some(component.run_type.as_str())),
        ],
        AppSpec::Objects(_) | AppSpec::Project(_) => return Vec::new(),
    };
    let check = |((level, name), known): ((LayerLevel, Option<&str>), &BTreeSet<String>)| {
        let name = name?;
        if known.contains(name) {
            return None;
        }
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let message =
            format!("{} {} names {} {name}, and there is no such layer", app.kind(), app.id, level.title());
        let help = format!("{}; or add the folder {}{name}/", suggest(name, &known, &known), level.folder());
        let error = Diagnostic::error(codes::UNKNOWN_LAYER, message, DiagnosticScope::App(app.id.clone()));
        Some(error.at(app.location.clone()).help(help))
    };
    named.into_iter().zip(known).filter_map(check).collect()
}
