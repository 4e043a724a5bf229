//! Checks that analyses of waves and rings exist and that their expressions compile.

use super::CheckInput;
use crate::cel::{CelProgram, ExpressionNames};
use crate::fleet::codes;
use crate::fleet::text_locations::location_in_text;
use crate::manifest::read::suggest;
use crate::model::{
    AnalysisSpec, CelExpression, Diagnostic, DiagnosticScope, Location, WaveLimits, WaveOrder,
};

const HELP: &str = "docs/reference/analysis.md lists what expressions can name, with examples";

/// Every expression compiles.
pub fn can_be_evaluated(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for analysis in &facts.manifests.analyses {
        let Some(spec) = &analysis.spec else { continue };
        let expressions = [Some(&spec.success), spec.failure.as_ref()].into_iter().flatten();
        found.extend(expressions.flat_map(|it| expression_errors(&analysis.name, spec, it, facts)));
    }
    found
}

fn expression_errors(
    name: &str,
    spec: &AnalysisSpec,
    expression: &CelExpression,
    facts: &CheckInput<'_>,
) -> Vec<Diagnostic> {
    let names = ExpressionNames { roots: spec.probe.expression_roots(), refused: &[], variables: &[] };
    let mistakes = CelProgram::of(&expression.text, names).err().unwrap_or_default();
    let told = mistakes.into_iter().map(|mistake| {
        let message = format!("an expression of analysis {name} cannot be used: {}", mistake.message);
        let place = location_in_text(&expression.location, mistake.line, mistake.column, facts.snapshot);
        let scope = DiagnosticScope::File(expression.location.file.clone());
        let error = Diagnostic::error(codes::ANALYSIS_EXPRESSION, message, scope);
        error.at(place).in_path(expression.path.clone()).help(HELP)
    });
    told.collect()
}

/// Every analysis that a wave or ring names exists. A missing analysis would need a person's decision at every version.
pub fn analyses_exist(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let mut limits: Vec<(String, &WaveLimits, &Location)> = Vec::new();
    if let Some(rings) = &facts.manifests.rings {
        limits
            .extend(rings.rings.iter().map(|it| (format!("ring {}", it.name), &it.limits, &rings.location)));
    }
    for app in &facts.manifests.apps {
        match &app.rollout.order {
            WaveOrder::Default => {}
            WaveOrder::Groups(groups) => {
                let place = app.rollout.location.as_ref().unwrap_or(&app.location);
                limits.push((format!("updateStrategy of {}", app.title()), &groups.limits, place));
            }
            WaveOrder::Waves(waves) => limits.extend(
                waves
                    .iter()
                    .map(|it| (format!("wave {} of {}", it.name, app.title()), &it.limits, &it.location)),
            ),
        }
    }
    limits.iter().flat_map(|(who, limits, place)| limit_errors(who, limits, place, facts)).collect()
}

fn limit_errors(who: &str, limits: &WaveLimits, place: &Location, facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let scope = || DiagnosticScope::File(place.file.clone());
    let known: Vec<&str> = facts.manifests.analyses.iter().map(|it| it.name.as_str()).collect();
    let unknown = limits.analysis.iter().filter(|name| !known.contains(&name.as_str()));
    let unknown = unknown.map(|name| {
        let message = format!("{who} names analysis {name}, which does not exist");
        let help = match known.len() {
            0 => "write it below policies/, as docs/reference/analysis.md shows".to_owned(),
            _ => suggest(name, &known, &known),
        };
        Diagnostic::error(codes::UNKNOWN_ANALYSIS, message, scope()).at(place.clone()).help(help)
    });
    let mut found: Vec<Diagnostic> = unknown.collect();
    let Some(instance) = &facts.manifests.instance else { return found };
    let mut refuse = |message: String, help: &str| {
        found
            .push(Diagnostic::error(codes::IMPOSSIBLE_STATUS, message, scope()).at(place.clone()).help(help));
    };
    if let (Some(status), None) = (limits.statuses.first(), &instance.forge) {
        let message = format!("{who} waits for the commit status {status}, and tutti.yaml names no forge");
        refuse(message, "add `forge` to tutti.yaml, or remove `statuses`");
    }
    let prefix = format!("{}/", instance.status_prefix);
    for own in limits.statuses.iter().filter(|context| context.starts_with(&prefix)) {
        let message = format!("{who} waits for the commit status {own}, which tutti writes itself");
        refuse(message, "name the status of another program; waves follow each other without it");
    }
    found
}
