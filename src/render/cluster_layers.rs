//! Selects the cluster layers of a cluster, least specific first.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::layer_chart_scope::LayerChartScope;
use super::render_job::RenderJob;
use super::template_layers::{TemplateLayer, TemplateLayers};
use super::{codes, layer_file, layer_values};
use crate::fleet::layers::cluster_layers;
use crate::model::{ClusterSelector, Diagnostic, Location};

/// How specific a selector is: names before labels, more conditions before fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ClusterLayerRank {
    by_name: bool,
    conditions: usize,
}

impl ClusterLayerRank {
    fn of(selector: &ClusterSelector) -> Self {
        let labels = selector.match_labels.len() + selector.match_expressions.len();
        Self { by_name: selector.names.is_some(), conditions: labels + usize::from(selector.ring.is_some()) }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SelectedClusterLayer {
    pub folder: String,
    pub charts: LayerChartScope,
    rank: ClusterLayerRank,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ClusterLayerSelection {
    pub layers: Vec<SelectedClusterLayer>,
    /// Some layer, selected or not, selects by ring.
    pub uses_ring: bool,
}

/// A cluster layer with its selector.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterLayer {
    folder: String,
    selector: ClusterSelector,
    charts: LayerChartScope,
}

const CLUSTER_LAYERS_FOLDER: &str = "templates/cluster/";

pub fn read_all(job: &RenderJob<'_>) -> Result<Vec<ClusterLayer>, Vec<Diagnostic>> {
    let (mut layers, mut mistakes) = (Vec::new(), Vec::new());
    for name in cluster_layers(job.snapshot) {
        let folder = format!("{CLUSTER_LAYERS_FOLDER}{name}/");
        match read(job, &folder) {
            Ok((selector, charts)) => layers.push(ClusterLayer { folder, selector, charts }),
            Err(mut found) => mistakes.append(&mut found),
        }
    }
    if mistakes.is_empty() { Ok(layers) } else { Err(mistakes) }
}

/// The matching cluster layers, by rank, then by name.
pub fn select(job: &RenderJob<'_>, all: &[ClusterLayer]) -> ClusterLayerSelection {
    let facts = job.cluster.untracked_facts();
    let fits = all.iter().filter(|layer| layer.selector.matches(facts));
    let chosen = |layer: &ClusterLayer| SelectedClusterLayer {
        folder: layer.folder.clone(),
        charts: layer.charts.clone(),
        rank: ClusterLayerRank::of(&layer.selector),
    };
    let mut layers: Vec<SelectedClusterLayer> = fits.map(chosen).collect();
    layers.sort_by(|one, other| (one.rank, &one.folder).cmp(&(other.rank, &other.folder)));
    ClusterLayerSelection { layers, uses_ring: all.iter().any(|layer| layer.selector.ring.is_some()) }
}

fn read(job: &RenderJob<'_>, folder: &str) -> Result<(ClusterSelector, LayerChartScope), Vec<Diagnostic>> {
    let file = layer_file::read(job, folder, true)?;
    file.and_then(|file| Some((file.clusters?, file.charts))).ok_or_else(|| {
        let message = format!("the cluster layer {folder} has no layer.yaml");
        let help = "add it with the clusters of the layer: `clusters: {matchLabels: {zone: gz}}`";
        let place = Location::new(&format!("{folder}layer.yaml"), 1, 1);
        vec![job.error(codes::LAYER, message).at(place).help(help)]
    })
}

/// Layers of equal rank have no order, so they must not set the same thing.
pub fn check_ties(
    job: &RenderJob<'_>,
    chosen: &[SelectedClusterLayer],
    layers: &TemplateLayers,
) -> Result<(), Vec<Diagnostic>> {
    let mut mistakes = Vec::new();
    for (index, one) in chosen.iter().enumerate() {
        for other in chosen.iter().skip(index + 1).filter(|other| other.rank == one.rank) {
            let (Some(layer), Some(other_layer)) =
                (layers.of_folder(&one.folder), layers.of_folder(&other.folder))
            else {
                continue;
            };
            for what in shared_settings(job, layer, other_layer)? {
                let message = format!(
                    "{} and {} both fit cluster {} equally well, and both set {what}",
                    one.folder, other.folder, job.target.cluster
                );
                let place = |folder: &str| Location::new(&format!("{folder}layer.yaml"), 1, 1);
                mistakes.push(
                    job.error(codes::TIE, message)
                        .at(place(&other.folder))
                        .help(
                            "make one selector more specific: names before labels, more labels before fewer",
                        )
                        .related(place(&one.folder), "the other layer"),
                );
            }
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

fn shared_settings(
    job: &RenderJob<'_>,
    one: &TemplateLayer,
    other: &TemplateLayer,
) -> Result<Vec<String>, Vec<Diagnostic>> {
    let mut both = Vec::new();
    let (values_one, values_other) =
        (layer_values::values_of_layer(job, one)?, layer_values::values_of_layer(job, other)?);
    collect_shared_values(&values_one, &values_other, "values", &mut both);
    for chart in
        one.charts.charts_with_values().chain(other.charts.charts_with_values()).collect::<BTreeSet<_>>()
    {
        let of_chart =
            |layer: &TemplateLayer, values: &Map<String, Value>| match layer.charts.values_for(chart) {
                Some(own) => own.clone(),
                None if layer.charts.includes(chart) => values.clone(),
                None => Map::new(),
            };
        let (one, other) = (of_chart(one, &values_one), of_chart(other, &values_other));
        collect_shared_values(&one, &other, &format!("charts.{chart}"), &mut both);
    }
    let templates = one.templates.keys().filter(|name| other.templates.contains_key(*name));
    both.extend(templates.map(|name| format!("the template {name}")));
    Ok(both)
}

fn collect_shared_values(
    one: &Map<String, Value>,
    other: &Map<String, Value>,
    path: &str,
    both: &mut Vec<String>,
) {
    for (key, value) in one {
        let path = format!("{path}.{key}");
        match (value, other.get(key)) {
            (_, None) => {}
            (Value::Object(one), Some(Value::Object(other))) => {
                collect_shared_values(one, other, &path, both)
            }
            (_, Some(_)) => both.push(path),
        }
    }
}
