//! Selects the cluster layers of a cluster, least specific first.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::layer_file::ForCharts;
use super::layers::{Layer, Layers};
use super::{Job, codes, layer_file, values};
use crate::fleet::layers::cluster_layers;
use crate::model::{Diagnostic, Location, Selector};

/// How specific a selector is: names before labels, more conditions before fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    by_name: bool,
    conditions: usize,
}

impl Rank {
    fn of(selector: &Selector) -> Self {
        let labels = selector.match_labels.len() + selector.match_expressions.len();
        Self { by_name: selector.names.is_some(), conditions: labels + usize::from(selector.ring.is_some()) }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    pub folder: String,
    pub charts: ForCharts,
    rank: Rank,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Selected {
    pub layers: Vec<Chosen>,
    /// Some layer, selected or not, selects by ring.
    pub by_ring: bool,
}

/// A cluster layer with its selector.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterLayer {
    folder: String,
    selector: Selector,
    charts: ForCharts,
}

const FOLDER: &str = "templates/cluster/";

pub fn read_all(job: &Job<'_>) -> Result<Vec<ClusterLayer>, Vec<Diagnostic>> {
    let (mut layers, mut mistakes) = (Vec::new(), Vec::new());
    for name in cluster_layers(job.snapshot) {
        let folder = format!("{FOLDER}{name}/");
        match read(job, &folder) {
            Ok((selector, charts)) => layers.push(ClusterLayer { folder, selector, charts }),
            Err(mut found) => mistakes.append(&mut found),
        }
    }
    if mistakes.is_empty() { Ok(layers) } else { Err(mistakes) }
}

/// The matching cluster layers, by rank, then by name.
pub fn select(job: &Job<'_>, all: &[ClusterLayer]) -> Selected {
    let facts = job.site.selectable();
    let fits = all.iter().filter(|layer| layer.selector.matches(facts));
    let chosen = |layer: &ClusterLayer| Chosen {
        folder: layer.folder.clone(),
        charts: layer.charts.clone(),
        rank: Rank::of(&layer.selector),
    };
    let mut layers: Vec<Chosen> = fits.map(chosen).collect();
    layers.sort_by(|one, other| (one.rank, &one.folder).cmp(&(other.rank, &other.folder)));
    Selected { layers, by_ring: all.iter().any(|layer| layer.selector.ring.is_some()) }
}

fn read(job: &Job<'_>, folder: &str) -> Result<(Selector, ForCharts), Vec<Diagnostic>> {
    let file = layer_file::read(job, folder, true)?;
    file.and_then(|file| Some((file.clusters?, file.charts))).ok_or_else(|| {
        let message = format!("the cluster layer {folder} has no layer.yaml");
        let help = "it says which clusters the layer is for: `clusters: {matchLabels: {zone: gz}}`";
        let place = Location::new(&format!("{folder}layer.yaml"), 1, 1);
        vec![job.error(codes::LAYER, message).at(place).help(help)]
    })
}

/// Layers of equal rank have no order, so they must not set the same thing.
pub fn no_ties(job: &Job<'_>, chosen: &[Chosen], layers: &Layers) -> Result<(), Vec<Diagnostic>> {
    let mut mistakes = Vec::new();
    for (index, one) in chosen.iter().enumerate() {
        for other in chosen.iter().skip(index + 1).filter(|other| other.rank == one.rank) {
            let (Some(layer), Some(other_layer)) =
                (layers.of_folder(&one.folder), layers.of_folder(&other.folder))
            else {
                continue;
            };
            for what in same(job, layer, other_layer)? {
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

fn same(job: &Job<'_>, one: &Layer, other: &Layer) -> Result<Vec<String>, Vec<Diagnostic>> {
    let mut both = Vec::new();
    let (values_one, values_other) = (values::of_layer(job, one)?, values::of_layer(job, other)?);
    same_values(&values_one, &values_other, "values", &mut both);
    for chart in one.charts.with_own().chain(other.charts.with_own()).collect::<BTreeSet<_>>() {
        let of_chart = |layer: &Layer, values: &Map<String, Value>| match layer.charts.own(chart) {
            Some(own) => own.clone(),
            None if layer.charts.reach(chart) => values.clone(),
            None => Map::new(),
        };
        let (one, other) = (of_chart(one, &values_one), of_chart(other, &values_other));
        same_values(&one, &other, &format!("charts.{chart}"), &mut both);
    }
    let templates = one.templates.keys().filter(|name| other.templates.contains_key(*name));
    both.extend(templates.map(|name| format!("the template {name}")));
    Ok(both)
}

fn same_values(one: &Map<String, Value>, other: &Map<String, Value>, path: &str, both: &mut Vec<String>) {
    for (key, value) in one {
        let path = format!("{path}.{key}");
        match (value, other.get(key)) {
            (_, None) => {}
            (Value::Object(one), Some(Value::Object(other))) => same_values(one, other, &path, both),
            (_, Some(_)) => both.push(path),
        }
    }
}
