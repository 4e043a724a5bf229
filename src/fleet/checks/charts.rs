//! Checks that charts named by apps have a source.

use super::CheckInput;
use crate::fleet::charts::{ChartSourceError, chart_in_folder, chart_source};
use crate::fleet::codes;
use crate::model::{
    App, AppSet, AppSpec, ChartRef, ChartSource, DeployType, Diagnostic, DiagnosticScope, Location,
};

pub fn can_be_found(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let of_app = |app: &App| match &app.spec {
        AppSpec::AppSet(app_set) => chart_errors(app, app_set, facts),
        AppSpec::Component(_) | AppSpec::Objects(_) | AppSpec::Project(_) => Vec::new(),
    };
    facts.manifests.apps.iter().flat_map(|app| of_app(app)).collect()
}

fn chart_errors(app: &App, app_set: &AppSet, facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let error = |message: String, location: &Location| {
        Diagnostic::error(codes::CHART_DEPLOY_TYPE, message, DiagnosticScope::App(app.id.clone()))
            .at(location.clone())
    };
    let pod_sets = || app_set.clusters.iter().flat_map(|cluster| &cluster.pod_sets);
    let charts: Vec<&ChartRef> = app_set.charts().collect();
    if app_set.deploy_type != DeployType::Helm {
        let help = "write `deployType: helm` under podSpec, or remove it";
        let values = pod_sets().filter(|pod_set| pod_set.raw_values.is_some());
        let charts = charts.iter().map(|chart| (&chart.location, "chart"));
        let wrong = charts.chain(values.map(|pod_set| (&pod_set.location, "rawValues")));
        let placement = app_set.placement.as_ref().and_then(|placement| placement.location.as_ref());
        let wrong = wrong.chain(placement.map(|location| (location, "placement.clusters")));
        let message = |what| format!("AppSet {} has {what}, and its deployType is not helm", app.id);
        return wrong.map(|(location, what)| error(message(what), location).help(help)).collect();
    }
    let mut found: Vec<Diagnostic> =
        charts.iter().filter_map(|chart| missing_chart_error(app, chart, facts)).collect();
    if app_set.template.is_some() {
        let message = format!("AppSet {} is a chart, and has a podSpec.template as well", app.id);
        found.push(error(message, &app.location).help("remove the template: the chart has its own"));
    }
    if app_set.chart.is_none() {
        let without = pod_sets().filter(|pod_set| pod_set.chart.is_none());
        found.extend(without.map(|pod_set| {
            let message = format!("podSet {} of AppSet {} has no chart", pod_set.name, app.id);
            error(message, &pod_set.location).help("name one under podSpec.chart, for all podSets, or here")
        }));
        if let Some(placement) = &app_set.placement {
            let location = placement.location.as_ref().unwrap_or(&app.location);
            found.push(
                error(format!("AppSet {} has no chart", app.id), location)
                    .help("name one under podSpec.chart"),
            );
        }
    }
    found
}

fn missing_chart_error(app: &App, chart: &ChartRef, facts: &CheckInput<'_>) -> Option<Diagnostic> {
    let error = |code, message: String| {
        Diagnostic::error(code, message, DiagnosticScope::App(app.id.clone())).at(chart.location.clone())
    };
    let repositories = facts.manifests.instance.as_ref().map(|instance| instance.charts.as_slice());
    match chart_source(chart, repositories.unwrap_or_default()) {
        Ok(ChartSource::Folder { name, version }) => {
            let failure = chart_in_folder(&name, version.as_deref(), facts.snapshot).err()?;
            let diagnostic = error(codes::NO_SUCH_CHART, failure.message);
            Some(match failure.help {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            })
        }
        Ok(_) => None,
        Err(ChartSourceError::UnknownRepository { help }) => {
            let message = format!("AppSet {} names a chart repository that is not known", app.id);
            Some(error(codes::UNKNOWN_REPOSITORY, message).help(help))
        }
        Err(ChartSourceError::NoVersion) => {
            let message = format!("the chart of AppSet {} has no chartVersion", app.id);
            let help = "name one exact version, so that the fetched chart never changes";
            Some(error(codes::CHART_DEPLOY_TYPE, message).help(help))
        }
    }
}
