//! Kind AppSet: groups of pods, cluster by cluster.

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNode;
use super::update_strategy;
use super::wave::WaveUnitKind;
use super::{app_fields, chart, node_selector, placement, read_envelope, route, spec_fields, taint};
use crate::model::labels::{LANGUAGE, RUN_TYPE};
use crate::model::{
    App, AppSet, AppSpec, ChartRef, ClusterName, DeployType, Location, Placement, PodSet, Replicas,
    Toleration, TopologyCluster,
};
use serde_json::Value as Json;

pub fn read(root: &YamlNode, default_namespace: &str, reading: &mut ReadContext<'_>) -> Option<App> {
    let (metadata, spec) = read_envelope(root, NameRule::Label, true, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let mut common = app_fields::read_common(&mut fields, reading);
    common.create_namespace = app_fields::create_namespace(&mut fields, reading);
    common.promotion_group = app_fields::promotion_group(&mut fields, reading);
    let replicas = fields.optional("replicas", reading);
    let replicas_location = replicas.as_ref().map(|replicas| reading.location(replicas.node));
    let replicas = replicas.and_then(|replicas| reading.count(&replicas, 0..=1_000_000));
    let service_name = fields.optional("serviceName", reading).and_then(|name| reading.word(&name));
    let labels = fields.optional("labels", reading).and_then(|labels| reading.labels(&labels));
    let meta = fields.optional("meta", reading).and_then(|meta| reading.text_map(&meta));
    let pod_spec = match fields.optional("podSpec", reading) {
        Some(pod_spec) => read_pod_spec(&pod_spec, reading),
        None => Some((DeployType::Deployment, None, None)),
    };
    let namespace = metadata.as_ref().map_or(default_namespace, |it| it.namespace_or(default_namespace));
    let strategy = fields
        .optional("updateStrategy", reading)
        .and_then(|strategy| update_strategy::read(&strategy, WaveUnitKind::PodSets, namespace, reading))
        .unwrap_or_default();
    let placement = fields.optional_selector("placement", reading);
    let is_placed = placement.as_ref().is_some_and(|it| it.node.get("clusters").is_some());
    let placement = placement.map_or(Some((None, Vec::new())), |it| read_placement(&it, reading));
    let clusters = if is_placed {
        for name in ["clusterTopology", "replicas"] {
            if let Some(both) = fields.optional(name, reading) {
                refuse_with_placement(name, &both, reading);
            }
        }
        if let Some(canary) = strategy.canary_clusters.as_ref().filter(|list| !list.is_empty()) {
            refuse_with_placement("canaryClusters", canary, reading);
        }
        Some(Vec::new())
    } else {
        fields.required("clusterTopology", reading).and_then(|it| read_topology(&it, reading))
    };
    if replicas_location.is_none()
        && let Some(location) = clusters.iter().flatten().find_map(percent_location)
    {
        let (place, path) = (fields.location().clone(), fields.path_of("replicas"));
        reading
            .mistake(
                codes::MISSING_FIELD,
                "`replicas` is missing, and a podSet has a share of it",
                place,
                &path,
            )
            .related(location, "this podSet");
    }
    let name = metadata.as_ref().map_or("", |metadata| metadata.name.as_str());
    let routes = route::list(&mut fields, name, reading);
    fields.finish(reading);
    let (metadata, (deploy_type, template, chart)) = (metadata?, pod_spec?);
    let (placement, tolerations) = placement?;
    common.paused |= strategy.paused;
    common.rollout = strategy.rollout;
    let layer = |label: &str| metadata.labels.get(label).map(|name| name.to_lowercase());
    let spec = AppSpec::AppSet(AppSet {
        replicas,
        replicas_location,
        deploy_type,
        language: layer(LANGUAGE),
        run_type: layer(RUN_TYPE),
        service_name,
        labels: labels.unwrap_or_default(),
        meta: meta.unwrap_or_default(),
        min_ready_seconds: strategy.min_ready_seconds,
        template,
        chart,
        clusters: clusters?,
        placement: placement.map(Box::new),
        tolerations,
    });
    Some(App { routes, ..app_fields::build_app(metadata, &common, spec, default_namespace) })
}

fn refuse_with_placement(name: &str, value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) {
    let place = reading.location(value.node);
    let message = format!("`{name}` cannot be used with `placement.clusters`");
    let help = "a chart is placed by a selector, or its podSets are named cluster by cluster";
    reading.mistake(codes::BAD_VALUE, message, place, &value.path).help(help);
}

/// `clusters`, which stands in place of the topology, and `tolerations`.
fn read_placement(
    value: &ManifestValue<'_>,
    reading: &mut ReadContext<'_>,
) -> Option<(Option<Placement>, Vec<Toleration>)> {
    let mut fields = ManifestFields::of(value, reading)?;
    if fields.optional_selector("clusters", reading).is_some() {
        let placement = placement::read(value, reading)?;
        let tolerations = placement.tolerations.clone();
        return Some((Some(placement), tolerations));
    }
    let tolerations = fields.optional("tolerations", reading).map(|list| taint::tolerations(&list, reading));
    fields.finish(reading);
    let tolerations = tolerations.unwrap_or_else(|| Some(Vec::new()))?;
    Some((None, tolerations))
}

fn percent_location(cluster: &TopologyCluster) -> Option<Location> {
    let is_percent = |pod_set: &&PodSet| matches!(pod_set.replicas, Some(Replicas::Percent(_)));
    cluster.pod_sets.iter().find(is_percent).map(|pod_set| pod_set.location.clone())
}

type PodSpecFields = (DeployType, Option<Json>, Option<ChartRef>);

fn read_pod_spec(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<PodSpecFields> {
    let mut fields = ManifestFields::of(value, reading)?;
    let deploy_type = match fields.optional("deployType", reading) {
        Some(deploy_type) => app_fields::deploy_type_or_chart(&deploy_type, reading),
        None => Some(DeployType::Deployment),
    };
    let template = fields.optional("template", reading).map(|template| {
        // A PodTemplateSpec: what is in its two fields is the API server's to judge.
        let mut parts = ManifestFields::of(&template, reading)?;
        for name in ["metadata", "spec"] {
            if let Some(part) = parts.optional(name, reading)
                && part.node.as_map().is_none()
            {
                reading.wrong_type(&part, "a map");
            }
        }
        parts.finish(reading);
        Some(template.node.to_json())
    });
    let chart = fields.optional("chart", reading).map(|chart| chart::read(&chart, reading));
    fields.refuse_planned(&["selector"], reading);
    fields.finish(reading);
    let template = template.map_or(Some(None), |template| template.map(Some))?;
    Some((deploy_type?, template, chart.map_or(Some(None), |chart| chart.map(Some))?))
}

fn read_topology(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<TopologyCluster>> {
    let mut fields = ManifestFields::of(value, reading)?;
    let list = fields.required("clusters", reading).and_then(|list| reading.list(&list));
    fields.finish(reading);
    let mut clusters: Vec<(TopologyCluster, ManifestValue<'_>)> = Vec::new();
    for item in list? {
        let Some((cluster, name)) = read_cluster(&item, reading) else { continue };
        if let Some((_, first)) = clusters.iter().find(|(known, _)| known.name == cluster.name) {
            reading.duplicate(cluster.name.as_str(), &name, first);
        }
        clusters.push((cluster, name));
    }
    Some(clusters.into_iter().map(|(cluster, _)| cluster).collect())
}

fn read_cluster<'v>(
    value: &ManifestValue<'v>,
    reading: &mut ReadContext<'_>,
) -> Option<(TopologyCluster, ManifestValue<'v>)> {
    let mut fields = ManifestFields::of(value, reading)?;
    let place = fields.required("name", reading);
    let name = place.as_ref().and_then(|name| reading.name(name, NameRule::Subdomain));
    let meta = fields.optional("meta", reading).and_then(|meta| reading.text_map(&meta));
    let list = fields.required("podSets", reading).and_then(|list| reading.list(&list));
    fields.finish(reading);
    let mut pod_sets: Vec<(PodSet, ManifestValue<'_>)> = Vec::new();
    for item in list.unwrap_or_default() {
        let Some((pod_set, name)) = read_pod_set(&item, reading) else { continue };
        if let Some((_, first)) = pod_sets.iter().find(|(known, _)| known.name == pod_set.name) {
            reading.duplicate(&pod_set.name, &name, first);
        }
        pod_sets.push((pod_set, name));
    }
    let place = place?;
    let cluster = TopologyCluster {
        name: ClusterName::from(name?.as_str()),
        meta: meta.unwrap_or_default(),
        pod_sets: pod_sets.into_iter().map(|(pod_set, _)| pod_set).collect(),
        location: reading.location(place.node),
    };
    Some((cluster, place))
}

fn read_pod_set<'v>(
    value: &ManifestValue<'v>,
    reading: &mut ReadContext<'_>,
) -> Option<(PodSet, ManifestValue<'v>)> {
    let mut fields = ManifestFields::of(value, reading)?;
    let place = fields.required("name", reading);
    let name = place.as_ref().and_then(|name| reading.name(name, NameRule::Label));
    let replicas =
        fields.optional("replicas", reading).and_then(|replicas| read_replicas(&replicas, reading));
    let version = fields.optional("version", reading).and_then(|version| reading.label_value(&version));
    let image = fields.optional("image", reading).and_then(|image| reading.word(&image));
    let meta = fields.optional("meta", reading).and_then(|meta| reading.text_map(&meta));
    let chart = fields.optional("chart", reading).and_then(|chart| chart::read(&chart, reading));
    let raw_values = fields.optional("rawValues", reading).and_then(|raw| chart::values(&raw, reading));
    let nodes = fields
        .optional_selector("nodeSelectorTerm", reading)
        .and_then(|term| node_selector::read(&term, reading));
    fields.finish(reading);
    let place = place?;
    let location = reading.location(place.node);
    let (name, meta) = (name?, meta.unwrap_or_default());
    let node_selector_term = nodes;
    Some((
        PodSet { name, replicas, version, image, chart, raw_values, node_selector_term, meta, location },
        place,
    ))
}

/// A number, or a share of the AppSet's replicas such as `10%`.
fn read_replicas(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Replicas> {
    let Some(text) = value.node.as_str() else {
        return reading.count(value, 0..=1_000_000).map(Replicas::Count);
    };
    let percent =
        text.strip_suffix('%').and_then(|number| number.parse().ok()).filter(|percent| *percent <= 100);
    if percent.is_none() {
        let help = "write a whole number, or a share from 0% to 100% of spec.replicas";
        reading.bad_value(value, format!("`replicas` cannot be {text:?}"), help);
    }
    percent.map(Replicas::Percent)
}
