//! Checks that charts named by apps have a source.

use super::Facts;
use crate::fleet::charts::{NoSource, in_folder, source};
use crate::fleet::codes;
use crate::model::{App, AppSet, AppSpec, ChartRef, ChartSource, DeployType, Diagnostic, Location, Scope};

pub fn can_be_found(facts: &Facts<'_>) -> Vec<Diagnostic> {
    let of_app = |app: &App| match &app.spec {
        AppSpec::AppSet(app_set) => of_app_set(app, app_set, facts),
        AppSpec::Component(_) | AppSpec::Objects(_) | AppSpec::Project(_) => Vec::new(),
    };
    facts.manifests.apps.iter().flat_map(|app| of_app(app)).collect()
}

fn of_app_set(app: &App, app_set: &AppSet, facts: &Facts<'_>) -> Vec<Diagnostic> {
    let error = |message: String, location: &Location| {
        Diagnostic::error(codes::CHART, message, Scope::App(app.id.clone())).at(location.clone())
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
    let mut found: Vec<Diagnostic> = charts.iter().filter_map(|chart| missing(app, chart, facts)).collect();
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

fn missing(app: &App, chart: &ChartRef, facts: &Facts<'_>) -> Option<Diagnostic> {
    let error = |code, message: String| {
        Diagnostic::error(code, message, Scope::App(app.id.clone())).at(chart.location.clone())
    };
    let repositories = facts.manifests.instance.as_ref().map(|instance| instance.charts.as_slice());
    match source(chart, repositories.unwrap_or_default()) {
        Ok(ChartSource::Folder { name, version }) => {
            let failure = in_folder(&name, version.as_deref(), facts.snapshot).err()?;
            let diagnostic = error(codes::NO_SUCH_CHART, failure.message);
            Some(match failure.help {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            })
        }
        Ok(_) => None,
        Err(NoSource::UnknownRepository { help }) => {
            let message = format!("AppSet {} names a chart repository that is not known", app.id);
            Some(error(codes::UNKNOWN_REPOSITORY, message).help(help))
        }
        Err(NoSource::NoVersion) => {
            let message = format!("the chart of AppSet {} has no chartVersion", app.id);
            let help = "name one version: what is fetched must not change by itself";
            Some(error(codes::CHART, message).help(help))
        }
    }
}
