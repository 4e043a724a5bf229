//! Renders the Helm charts of a target into documents.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::documents::{self, Document};
use super::hooks::{self, Taken, Wanted};
use super::layers::Layers;
use super::{Job, chart_values, codes, lists, mistakes};
use crate::fleet::charts::{folder_of, in_folder, source};
use crate::model::labels::PRUNE;
use crate::model::{
    AppSpec, Chart, ChartCapabilities, ChartFailure, ChartFault, ChartObject, ChartRef, ChartRequest,
    ChartSource, DeployType, Diagnostic, Location,
};
use crate::schedule::{AssignedPodSet, assign};

/// The chart folders of the repository that the target uses.
pub fn folders(job: &Job<'_>) -> BTreeSet<String> {
    let charts = assign(job.app, &job.target.cluster).into_iter().filter_map(|pod_set| pod_set.chart);
    charts.filter_map(|chart| folder_of(&chart, &job.fleet.instance.charts)).collect()
}

/// The documents of the podSet's chart; none if the app is no chart.
pub fn documents(
    job: &Job<'_>,
    layers: &Layers,
    pod_set: &AssignedPodSet,
) -> Result<Vec<Document>, Vec<Diagnostic>> {
    match (&job.app.spec, &pod_set.chart) {
        (AppSpec::AppSet(app_set), Some(named)) if app_set.deploy_type == DeployType::Helm => {
            of_chart(job, layers, pod_set, named)
        }
        _ => Ok(Vec::new()),
    }
}

fn of_chart(
    job: &Job<'_>,
    layers: &Layers,
    pod_set: &AssignedPodSet,
    named: &ChartRef,
) -> Result<Vec<Document>, Vec<Diagnostic>> {
    let chart = find(job, named).map_err(|failure| vec![explain(job, named, None, &failure)])?;
    let given = chart_values::layered(job, layers, pod_set, &chart)?;
    let request = ChartRequest {
        values: given.iter().map(|given| given.values.clone()).collect(),
        release: pod_set.name.clone(),
        namespace: job.app.id.namespace.to_string(),
        capabilities: capabilities(job),
        chart: Arc::clone(&chart),
    };
    let output = job.turn.part(|wait| job.charts.render(&request, wait)).map_err(|failure| {
        if failure.fault == ChartFault::Awaited {
            return vec![mistakes::not_yet(job)];
        }
        let mistake = explain(job, named, Some(&chart), &failure);
        let value = failure.value.as_deref().filter(|_| failure.fault == ChartFault::Values);
        let place = value.and_then(|path| chart_values::place_of(job, &given, pod_set, &chart, path));
        vec![match place {
            Some(place) => {
                let named = mistake.location.clone();
                let mistake = mistake.at(place);
                named.into_iter().fold(mistake, |it, named| it.related(named, "the chart is named here"))
            }
            None => mistake,
        }]
    })?;
    let wanted = hooks::wanted(job).map_err(|mistake| vec![*mistake])?;
    let (mut documents, mut mistakes) = (Vec::new(), Vec::new());
    for object in &output.objects {
        match take(job, &chart, object, wanted) {
            Ok(mut made) => documents.append(&mut made),
            Err(mistake) => mistakes.push(*mistake),
        }
    }
    if mistakes.is_empty() { Ok(documents) } else { Err(mistakes) }
}

/// The capabilities of the cluster. Before discovery only the declared ones: then a chart sees what `helm template` would.
fn capabilities(job: &Job<'_>) -> ChartCapabilities {
    let known = job.site.capabilities();
    if known.asked {
        return ChartCapabilities {
            kube_version: Some(known.version.git_version.clone()),
            api_versions: known.api_versions.clone(),
            complete: true,
        };
    }
    let cluster = job.site.declared();
    ChartCapabilities {
        kube_version: cluster.version.as_ref().map(|version| version.git_version.clone()),
        api_versions: cluster.capabilities.clone(),
        complete: false,
    }
}

fn find(job: &Job<'_>, named: &ChartRef) -> Result<Arc<Chart>, ChartFailure> {
    match source(named, &job.fleet.instance.charts) {
        Ok(ChartSource::Folder { name, version }) => {
            in_folder(&name, version.as_deref(), job.snapshot).map(Arc::new)
        }
        Ok(source) => job.charts.chart(&source),
        // The fleet already excluded such an app.
        Err(_) => Err(ChartFailure::new(ChartFault::Missing, "the chart has no source")),
    }
}

/// The documents of one object: several for a list, none for a skipped hook.
fn take(
    job: &Job<'_>,
    chart: &Chart,
    object: &ChartObject,
    wanted: Wanted,
) -> Result<Vec<Document>, Box<Diagnostic>> {
    let source = Location::new(&format!("{}{}", chart.origin, object.file), 1, 1);
    let what = || format!("an object of {}{}", chart.origin, object.file);
    let mut documents = Vec::new();
    for item in lists::items(object.object.clone()) {
        let Taken::As(hook) = hooks::take(object.hook.as_ref(), &item, wanted) else { continue };
        let mut document = documents::object(job, item, source.clone(), &what)?;
        document.hook = hook;
        document.is_of_chart = true;
        if object.definition {
            documents::annotate(&mut document.object, PRUNE, "keep");
        }
        documents.push(document);
    }
    Ok(documents)
}

/// A chart failure as a diagnostic: at its template if that is a file of this repository, else where the chart is named.
fn explain(
    job: &Job<'_>,
    named: &ChartRef,
    chart: Option<&Arc<Chart>>,
    failure: &ChartFailure,
) -> Diagnostic {
    let code = match failure.fault {
        ChartFault::NoRenderer => codes::NO_RENDERER,
        ChartFault::Missing => codes::NO_CHART,
        ChartFault::Awaited => codes::AWAITED,
        ChartFault::Malformed => codes::MALFORMED_CHART,
        ChartFault::Values => codes::CHART_VALUES,
        ChartFault::Template => codes::CHART_TEMPLATE,
        ChartFault::Output => codes::CHART_OUTPUT,
        ChartFault::Limit => codes::CHART_LIMIT,
        ChartFault::Renderer => codes::CHART_RENDERER,
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
