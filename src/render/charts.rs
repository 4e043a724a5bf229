//! Renders the Helm charts of a target into documents.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::documents;
use super::hooks::{self, HookDecision, HookMode};
use super::object_document::{self, ObjectDocument};
use super::render_job::RenderJob;
use super::template_layers::TemplateLayers;
use super::{chart_values, codes, object_lists, template_mistakes};
use crate::fleet::charts::{chart_in_folder, chart_source, folder_of};
use crate::model::labels::PRUNE;
use crate::model::{
    AppSpec, Chart, ChartCapabilities, ChartFailure, ChartFailureKind, ChartObject, ChartRef, ChartRequest,
    ChartSource, DeployType, Diagnostic, Location,
};
use crate::schedule::{AssignedPodSet, assign};

/// The chart folders of the repository that the target uses.
pub fn chart_folders(job: &RenderJob<'_>) -> BTreeSet<String> {
    let charts = assign(job.app, &job.target.cluster).into_iter().filter_map(|pod_set| pod_set.chart);
    charts.filter_map(|chart| folder_of(&chart, &job.fleet.instance.charts)).collect()
}

/// The documents of the podSet's chart; none if the app is no chart.
pub fn documents(
    job: &RenderJob<'_>,
    layers: &TemplateLayers,
    pod_set: &AssignedPodSet,
) -> Result<Vec<ObjectDocument>, Vec<Diagnostic>> {
    match (&job.app.spec, &pod_set.chart) {
        (AppSpec::AppSet(app_set), Some(named)) if app_set.deploy_type == DeployType::Helm => {
            chart_documents(job, layers, pod_set, named)
        }
        _ => Ok(Vec::new()),
    }
}

fn chart_documents(
    job: &RenderJob<'_>,
    layers: &TemplateLayers,
    pod_set: &AssignedPodSet,
    named: &ChartRef,
) -> Result<Vec<ObjectDocument>, Vec<Diagnostic>> {
    let chart = find(job, named).map_err(|failure| vec![chart_diagnostic(job, named, None, &failure)])?;
    let given = chart_values::value_layers(job, layers, pod_set, &chart)?;
    let request = ChartRequest {
        values: given.iter().map(|given| given.values.clone()).collect(),
        release: pod_set.name.clone(),
        namespace: job.app.id.namespace.to_string(),
        capabilities: chart_capabilities(job),
        chart: Arc::clone(&chart),
    };
    let output = job.time_slice.run_part(|wait| job.charts.render(&request, wait)).map_err(|failure| {
        if failure.fault == ChartFailureKind::Awaited {
            return vec![template_mistakes::awaited_render(job)];
        }
        let mistake = chart_diagnostic(job, named, Some(&chart), &failure);
        let value = failure.value.as_deref().filter(|_| failure.fault == ChartFailureKind::Values);
        let place = value.and_then(|path| chart_values::locate_value(job, &given, pod_set, &chart, path));
        vec![match place {
            Some(place) => {
                let named = mistake.location.clone();
                let mistake = mistake.at(place);
                named.into_iter().fold(mistake, |it, named| it.related(named, "the chart is named here"))
            }
            None => mistake,
        }]
    })?;
    let wanted = hooks::hook_mode(job).map_err(|mistake| vec![*mistake])?;
    let (mut documents, mut mistakes) = (Vec::new(), Vec::new());
    for object in &output.objects {
        match documents_of_object(job, &chart, object, wanted) {
            Ok(mut made) => documents.append(&mut made),
            Err(mistake) => mistakes.push(*mistake),
        }
    }
    if mistakes.is_empty() { Ok(documents) } else { Err(mistakes) }
}

/// The capabilities of the cluster. Before discovery only the declared ones: then a chart sees what `helm template` would.
fn chart_capabilities(job: &RenderJob<'_>) -> ChartCapabilities {
    let known = job.cluster.capabilities();
    if known.asked {
        return ChartCapabilities {
            kube_version: Some(known.version.git_version.clone()),
            api_versions: known.api_versions.clone(),
            complete: true,
        };
    }
    let cluster = job.cluster.declared();
    ChartCapabilities {
        kube_version: cluster.version.as_ref().map(|version| version.git_version.clone()),
        api_versions: cluster.capabilities.clone(),
        complete: false,
    }
}

fn find(job: &RenderJob<'_>, named: &ChartRef) -> Result<Arc<Chart>, ChartFailure> {
    match chart_source(named, &job.fleet.instance.charts) {
        Ok(ChartSource::Folder { name, version }) => {
            chart_in_folder(&name, version.as_deref(), job.snapshot).map(Arc::new)
        }
        Ok(source) => job.charts.chart(&source),
        // The fleet already excluded such an app.
        Err(_) => Err(ChartFailure::new(ChartFailureKind::Missing, "the chart has no source")),
    }
}

/// The documents of one object: several for a list, none for a skipped hook.
fn documents_of_object(
    job: &RenderJob<'_>,
    chart: &Chart,
    object: &ChartObject,
    wanted: HookMode,
) -> Result<Vec<ObjectDocument>, Box<Diagnostic>> {
    let source = Location::new(&format!("{}{}", chart.origin, object.file), 1, 1);
    let what = || format!("an object of {}{}", chart.origin, object.file);
    let mut documents = Vec::new();
    for item in object_lists::list_items(object.object.clone()) {
        let HookDecision::Keep(hook) = hooks::decide_hook(object.hook.as_ref(), &item, wanted) else {
            continue;
        };
        let mut document = documents::object_document(job, item, source.clone(), &what)?;
        document.hook = hook;
        document.is_from_chart = true;
        if object.definition {
            object_document::annotate(&mut document.object, PRUNE, "keep");
        }
        documents.push(document);
    }
    Ok(documents)
}

/// A chart failure as a diagnostic: at its template if that is a file of this repository, else where the chart is named.
fn chart_diagnostic(
    job: &RenderJob<'_>,
    named: &ChartRef,
    chart: Option<&Arc<Chart>>,
    failure: &ChartFailure,
) -> Diagnostic {
    let code = match failure.fault {
        ChartFailureKind::NoRenderer => codes::NO_RENDERER,
        ChartFailureKind::Missing => codes::NO_CHART,
        ChartFailureKind::Awaited => codes::AWAITED,
        ChartFailureKind::Malformed => codes::MALFORMED_CHART,
        ChartFailureKind::Values => codes::CHART_VALUES,
        ChartFailureKind::Template => codes::CHART_TEMPLATE,
        ChartFailureKind::Output => codes::CHART_OUTPUT,
        ChartFailureKind::Limit => codes::CHART_LIMIT,
        ChartFailureKind::Renderer => codes::CHART_RENDERER,
    };
    let origin = chart.map(|chart| chart.origin.as_str()).unwrap_or_default();
    let value = failure.value.as_ref().map(|value| format!(" ({value})")).unwrap_or_default();
    let message = match (&failure.place, origin.is_empty()) {
        (Some((file, line, _)), _) => format!("{origin}{file} line {line}: {}{value}", failure.message),
        (None, false) => format!("chart {}: {}{value}", origin.trim_end_matches('/'), failure.message),
        (None, true) => format!("{}{value}", failure.message),
    };
    let place = failure.place.as_ref().filter(|_| chart.is_some_and(|chart| chart.folder));
    let place = place.map(|(file, line, column)| Location::new(&format!("{origin}{file}"), *line, *column));
    let diagnostic = job.error(code, message);
    let diagnostic = match place.filter(|place| job.snapshot.files.contains_key(&place.file)) {
        Some(place) => diagnostic.at(place).related(named.location.clone(), "the chart is named here"),
        None => diagnostic.at(named.location.clone()),
    };
    match &failure.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}
