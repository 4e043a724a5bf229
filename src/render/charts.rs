//! Helm charts as a source of documents.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::documents::{self, Document};
use super::hooks::{self, Taken, Wanted};
use super::layers::{Layers, SHIPPED};
use super::{Job, codes, lists, values};
use crate::fleet::charts::{folder_of, in_folder, source};
use crate::manifest::yaml;
use crate::model::labels::{HELM_RESOURCE_POLICY, PRUNE};
use crate::model::sealed::{self, CIPHERTEXT};
use crate::model::{
    AppSpec, Chart, ChartCapabilities, ChartFailure, ChartFault, ChartObject, ChartRef, ChartRequest,
    ChartSource, DeployType, Diagnostic, Location,
};
use crate::schedule::{AssignedPodSet, assign, retag};

/// The folders of charts that the target is made of.
pub fn folders(job: &Job<'_>) -> BTreeSet<String> {
    let charts = assign(job.app, &job.target.cluster).into_iter().filter_map(|pod_set| pod_set.chart);
    charts.filter_map(|chart| folder_of(&chart, &job.fleet.instance.charts)).collect()
}

/// What the chart of a podSet makes; nothing when the app is no chart.
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
    let request = ChartRequest {
        values: layered(job, layers, pod_set, &chart)?,
        release: pod_set.name.clone(),
        namespace: job.app.id.namespace.to_string(),
        capabilities: capabilities(job),
        chart: Arc::clone(&chart),
    };
    let output =
        job.charts.render(&request).map_err(|failure| vec![explain(job, named, Some(&chart), &failure)])?;
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

/// What the cluster says of itself. While that is not known, only what is declared: else a chart sees what `helm template`
/// shows it.
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
        // The fleet has taken such an app out.
        Err(_) => Err(ChartFailure::new(ChartFault::Missing, "the chart has no source")),
    }
}

/// Values over those of the chart: the layers of the repository, what the podSet says of itself, its rawValues. The
/// shipped layers speak to the shipped templates, not to charts.
fn layered(
    job: &Job<'_>,
    layers: &Layers,
    pod_set: &AssignedPodSet,
    chart: &Chart,
) -> Result<Vec<Map<String, Value>>, Vec<Diagnostic>> {
    let (mut list, mut mistakes) = (Vec::new(), Vec::new());
    let ours = |path: &str| !path.starts_with(SHIPPED);
    for layer in layers.list.iter().filter(|layer| layer.values.as_ref().is_some_and(|file| ours(&file.path)))
    {
        match values::of_layer(job, layer) {
            Ok(values) => list.push(values),
            Err(mut found) => mistakes.append(&mut found),
        }
    }
    mistakes.extend(
        encrypted_values(chart)
            .map(|name| values::encrypted(job, Location::new(&format!("{}{name}", chart.origin), 1, 1))),
    );
    list.push(own(pod_set, chart));
    list.extend(pod_set.raw_values.clone());
    list.retain(|values| !values.is_empty());
    if mistakes.is_empty() { Ok(list) } else { Err(mistakes) }
}

/// The values of the chart, and of the charts in it, that somebody encrypted.
fn encrypted_values(chart: &Chart) -> impl Iterator<Item = &str> {
    let values = |name: &str| name == "values.yaml" || name.ends_with("/values.yaml");
    let encrypted = |text: &str| {
        // What is not read here may be read by Helm.
        text.contains(CIPHERTEXT)
            && yaml::parse_values("values.yaml", text).map_or(true, |map| sealed::ciphertext(&map).is_some())
    };
    let names = chart.files.iter().map(|(name, _)| name.as_str()).filter(move |name| values(name));
    names.filter(move |name| chart.text(name).is_some_and(encrypted))
}

/// Replicas, image and version of the podSet under the names that `helm create` gives them, as far as the chart has a value
/// of that name.
fn own(pod_set: &AssignedPodSet, chart: &Chart) -> Map<String, Value> {
    let defaults = chart.text("values.yaml").map(|text| yaml::parse_values("values.yaml", text));
    let defaults = defaults.and_then(Result::ok).unwrap_or_default();
    let mut own = Map::new();
    let count = ["replicaCount", "replicas"].into_iter().find(|key| defaults.contains_key(*key));
    if let (Some(key), Some(replicas)) = (count, pod_set.replicas) {
        own.insert(key.to_owned(), json!(replicas));
    }
    let (image, version) = (pod_set.image.as_deref(), pod_set.version.as_deref());
    match defaults.get("image") {
        Some(Value::Object(parts)) => {
            let image = image_parts(parts, image, version);
            if !image.is_empty() {
                own.insert("image".to_owned(), Value::Object(image));
            }
        }
        Some(Value::String(default)) => {
            let image = image.map(str::to_owned).or_else(|| version.map(|version| retag(default, version)));
            own.extend(image.map(|image| ("image".to_owned(), json!(image))));
        }
        _ => {}
    }
    own
}

fn image_parts(parts: &Map<String, Value>, image: Option<&str>, version: Option<&str>) -> Map<String, Value> {
    let mut made = Map::new();
    let (name, tag) = match image.map(|image| (image, crate::schedule::tag(image))) {
        Some((image, Some(tag))) => (image.strip_suffix(&format!(":{tag}")), Some(tag)),
        Some((image, None)) => (Some(image), version),
        None => (None, version),
    };
    if let Some(name) = name {
        let host = name.split_once('/').filter(|(host, _)| host.contains(['.', ':']) || *host == "localhost");
        match host.filter(|_| parts.contains_key("registry")) {
            Some((host, path)) => {
                made.insert("registry".to_owned(), json!(host));
                made.insert("repository".to_owned(), json!(path));
            }
            None => {
                made.insert("repository".to_owned(), json!(name));
            }
        }
    }
    made.extend(tag.map(|tag| ("tag".to_owned(), json!(tag))));
    made
}

/// The documents of one object: several of a list, none of a hook that is left out.
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
        if object.definition || is_kept(&document.object) {
            documents::annotate(&mut document.object, PRUNE, "keep");
        }
        documents.push(document);
    }
    Ok(documents)
}

fn is_kept(object: &Map<String, Value>) -> bool {
    let annotations = object.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let policy =
        annotations.and_then(|annotations| annotations.get(HELM_RESOURCE_POLICY)).and_then(Value::as_str);
    policy.is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
}

/// A failure of a chart: where its template fails when that is a file of this repository, else where the chart is named.
fn explain(
    job: &Job<'_>,
    named: &ChartRef,
    chart: Option<&Arc<Chart>>,
    failure: &ChartFailure,
) -> Diagnostic {
    let code = match failure.fault {
        ChartFault::NoRenderer => codes::NO_RENDERER,
        ChartFault::Missing => codes::NO_CHART,
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
