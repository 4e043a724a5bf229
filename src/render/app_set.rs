//! Merges an AppSet into the objects of its layers: pod template, labels, replicas.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::object_document::ObjectDocument;
use super::render_job::RenderJob;
use super::strategic_merge::{self, ListMergeRules};
use super::{codes, node_affinity};
use crate::manifest::read::is_label_value;
use crate::model::labels::CHART_LABELS;
use crate::model::{AppSet, DeployType, DerivedFact, Diagnostic};
use crate::schedule::AssignedPodSet;

/// Name, image and port of the pod template as values of the app layer, for templates.
pub fn template_values(app_set: &AppSet) -> Map<String, Value> {
    let mut values = Map::new();
    let container = container(app_set);
    let mut set = |key: &str, value: Option<&Value>| {
        values.extend(value.map(|value| (key.to_owned(), value.clone())));
    };
    set("container", container.and_then(|container| container.get("name")));
    set("image", container.and_then(|container| container.get("image")));
    let port = container.and_then(|container| container.get("ports")?.get(0)?.get("containerPort"));
    set("port", port);
    set("minReadySeconds", app_set.min_ready_seconds.map(|seconds| json!(seconds)).as_ref());
    values
}

fn container(app_set: &AppSet) -> Option<&Value> {
    app_set.template.as_ref()?.get("spec")?.get("containers")?.get(0)
}

/// Merges the AppSet into the workload of the podSet, and its labels into every object.
pub fn overlay(
    job: &RenderJob<'_>,
    app_set: &AppSet,
    pod_set: &AssignedPodSet,
    documents: &mut [ObjectDocument],
) -> Result<(), Box<Diagnostic>> {
    for document in documents.iter_mut() {
        add_labels(&mut document.object, &app_set.labels);
    }
    if app_set.deploy_type == DeployType::Helm {
        // Another label on the pods of a chart may put them behind another Service.
        let is_asked = wants_chart_labels(job)?;
        let derived = if is_asked { derived_labels(job, app_set, pod_set) } else { BTreeMap::new() };
        label_workloads(&derived, app_set, pod_set, documents);
        return Ok(());
    }
    let workload = documents.iter_mut().find(|document| is_workload(&document.object, &pod_set.name));
    let Some(workload) = workload else {
        // Templates need not render pods.
        if app_set.deploy_type == DeployType::Template && app_set.template.is_none() {
            return Ok(());
        }
        let kind = app_set.deploy_type.workload().map_or("workload", |workload| workload.kind);
        let message = format!("the layers render no {kind} {} to merge {} into", pod_set.name, job.app.id);
        let help = "a template of the workload layer must render one that is named podSet.name, or has that name \
                    in its label app.kubernetes.io/instance";
        return Err(job.error(codes::NO_WORKLOAD, message).at(pod_set.location.clone()).help(help).into());
    };
    let labels = derived_labels(job, app_set, pod_set);
    add_labels(&mut workload.object, &labels);
    let Some(template) = pod_template(&mut workload.object) else {
        let message = format!("the workload of {} has no pod template", pod_set.name);
        let mistake = job.error(codes::NO_WORKLOAD, message).at(workload.source.clone());
        return Err(mistake.help("add spec.template to the workload in the template of its layer").into());
    };
    add_labels(template, &app_set.labels);
    add_labels(template, &labels);
    if let Some(written) = &app_set.template {
        merge_template(job, written, template)?;
        set_image(template, app_set, pod_set);
    }
    add_variables(job, app_set, pod_set, template);
    pod_set.node_selector_term.iter().for_each(|term| node_affinity::add_required_term(template, term));
    check_selector(job, &workload.object, pod_set)
}

/// Whether the workloads and pods of a chart get the derived labels.
fn wants_chart_labels(job: &RenderJob<'_>) -> Result<bool, Box<Diagnostic>> {
    match job.app.annotations.get(CHART_LABELS).map(String::as_str) {
        None => Ok(false),
        Some("apply") => Ok(true),
        Some(other) => {
            let message = format!("annotation {CHART_LABELS} of {} is {other:?}", job.app.id);
            let help =
                "apply adds the derived labels to the workloads and pods of its charts; remove it otherwise";
            Err(job.error(codes::CHART_LABELS, message).at(job.app.location.clone()).help(help).into())
        }
    }
}

/// A chart has any number of workloads with any names. Only missing labels are added, so that selectors keep matching.
fn label_workloads(
    derived: &BTreeMap<String, String>,
    app_set: &AppSet,
    pod_set: &AssignedPodSet,
    documents: &mut [ObjectDocument],
) {
    const OF_CHARTS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];
    for ObjectDocument { object, .. } in documents {
        if !object.get("kind").and_then(Value::as_str).is_some_and(|kind| OF_CHARTS.contains(&kind)) {
            continue;
        }
        add_labels(object, derived);
        if let Some(template) = pod_template(object) {
            add_labels(template, &app_set.labels);
            add_labels(template, derived);
            pod_set
                .node_selector_term
                .iter()
                .for_each(|term| node_affinity::add_required_term(template, term));
        }
    }
}

/// The kinds with a pod template.
const WORKLOADS: [&str; 6] = ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "CloneSet"];

/// Matches by name, or by the instance label if the template composes the name.
fn is_workload(object: &Map<String, Value>, name: &str) -> bool {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let metadata = object.get("metadata");
    let own = metadata.and_then(|metadata| metadata.get("name"));
    let instance = || metadata.and_then(|metadata| metadata.get("labels")?.get("app.kubernetes.io/instance"));
    WORKLOADS.contains(&kind)
        && (own.is_some_and(|own| own == name) || instance().is_some_and(|instance| instance == name))
}

fn pod_template(workload: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    let spec = workload.get_mut("spec")?;
    let spec =
        if spec.get("jobTemplate").is_some() { spec.get_mut("jobTemplate")?.get_mut("spec")? } else { spec };
    spec.get_mut("template")?.as_object_mut()
}

fn merge_template(
    job: &RenderJob<'_>,
    written: &Value,
    template: &mut Map<String, Value>,
) -> Result<(), Box<Diagnostic>> {
    let error = |message: String| job.error(codes::POD_TEMPLATE, message).at(job.app.location.clone());
    if let Some(directive) = strategic_merge::first_directive(written) {
        let message = format!("podSpec.template of {} uses {directive}, which is for patches", job.app.id);
        return Err(error(message)
            .help("to remove a field, set it to null; to do more, write a patch")
            .into());
    }
    let Value::Object(written) = written else {
        return Err(error(format!("podSpec.template of {} is not a map", job.app.id)).into());
    };
    for list in ["containers", "initContainers"] {
        let items = written.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array);
        let mut items = items.into_iter().flatten();
        if items.any(|item| item.get("name").and_then(Value::as_str).is_none()) {
            let message = format!("podSpec.template of {}: one of {list} has no name", job.app.id);
            return Err(error(message).help("containers are merged by name").into());
        }
    }
    strategic_merge::merge(template, written, ListMergeRules::Workload).map_err(|wrong| {
        error(format!("podSpec.template of {}: {}: {}", job.app.id, wrong.path, wrong.message)).into()
    })
}

/// The image of the podSet, in the first container of the pod template.
fn set_image(template: &mut Map<String, Value>, app_set: &AppSet, pod_set: &AssignedPodSet) {
    let (Some(image), Some(name)) =
        (&pod_set.image, container(app_set).and_then(|container| container.get("name")))
    else {
        return;
    };
    let containers = template.get_mut("spec").and_then(|spec| spec.get_mut("containers"));
    let containers = containers.and_then(Value::as_array_mut).into_iter().flatten();
    for container in containers.filter(|container| container.get("name") == Some(name)) {
        container["image"] = json!(image);
    }
}

/// Labels of the podSet's workload and pods. Facts without a valid label value are skipped.
fn derived_labels(
    job: &RenderJob<'_>,
    app_set: &AppSet,
    pod_set: &AssignedPodSet,
) -> BTreeMap<String, String> {
    let table = job.fleet.instance.labels.labels.iter();
    let row = |(key, fact): (&String, &DerivedFact)| {
        Some((
            key.clone(),
            fact_of(job, app_set, pod_set, fact).filter(|value| is_label_value(value))?.to_owned(),
        ))
    };
    table.filter_map(row).collect()
}

fn fact_of<'a>(
    job: &'a RenderJob<'_>,
    app_set: &'a AppSet,
    pod_set: &'a AssignedPodSet,
    fact: &DerivedFact,
) -> Option<&'a str> {
    let value = match fact {
        DerivedFact::AppName => Some(&*job.app.id.name),
        DerivedFact::AppNamespace => Some(&*job.app.id.namespace),
        DerivedFact::ServiceName => app_set.service_name.as_deref(),
        DerivedFact::PodSetName => Some(pod_set.name.as_str()),
        DerivedFact::Version => pod_set.version.as_deref(),
        DerivedFact::Group => Some(pod_set.group.as_str()).filter(|group| *group != "default"),
        DerivedFact::Meta(key) => {
            let of_cluster = || job.cluster.meta(key).and_then(Value::as_str);
            pod_set.meta.get(key).map(String::as_str).or_else(of_cluster)
        }
        DerivedFact::ClusterName => Some(job.cluster.name()),
        DerivedFact::ClusterLabel(key) => job.cluster.label(key),
        DerivedFact::Vip => job.cluster.vip(),
        DerivedFact::Ring => job.cluster.ring(),
    };
    value.filter(|value| !value.is_empty())
}

/// Adds missing variables to the first container, which is the app's.
fn add_variables(
    job: &RenderJob<'_>,
    app_set: &AppSet,
    pod_set: &AssignedPodSet,
    template: &mut Map<String, Value>,
) {
    let container =
        template.get_mut("spec").and_then(|spec| spec.get_mut("containers")?.get_mut(0)?.as_object_mut());
    let Some(container) = container else { return };
    for (name, fact) in &job.fleet.instance.labels.env {
        let Some(value) = fact_of(job, app_set, pod_set, fact) else { continue };
        let env = container.entry("env").or_insert_with(|| json!([]));
        if let Some(env) = env.as_array_mut()
            && !env.iter().any(|variable| variable.get("name").is_some_and(|known| known == name))
        {
            env.push(json!({"name": name, "value": value}));
        }
    }
}

/// Adds labels that are not there yet.
fn add_labels(object: &mut Map<String, Value>, labels: &BTreeMap<String, String>) {
    if labels.is_empty() {
        return;
    }
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else { return };
    let present = metadata.entry("labels").or_insert_with(|| json!({}));
    if let Some(present) = present.as_object_mut() {
        for (key, value) in labels {
            present.entry(key.clone()).or_insert_with(|| json!(value));
        }
    }
}

/// The API server refuses such a Deployment too, without naming the label.
fn check_selector(
    job: &RenderJob<'_>,
    workload: &Map<String, Value>,
    pod_set: &AssignedPodSet,
) -> Result<(), Box<Diagnostic>> {
    let spec = workload.get("spec");
    let at = |path: &[&str]| path.iter().try_fold(spec?, |value, key| value.get(key))?.as_object();
    let labels = at(&["template", "metadata", "labels"]);
    for (key, value) in at(&["selector", "matchLabels"]).into_iter().flatten() {
        if labels.and_then(|labels| labels.get(key)) != Some(value) {
            let message = format!(
                "the pods of {} do not have the label {key}: {value} that the workload of {} selects",
                job.app.id, pod_set.name
            );
            let help = format!("remove {key} from metadata.labels of podSpec.template");
            return Err(job.error(codes::SELECTOR, message).at(job.app.location.clone()).help(help).into());
        }
    }
    Ok(())
}
