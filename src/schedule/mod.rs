//! Computes replicas, version, image and group of each podSet on each cluster, from the manifests alone.
//!
//! Pure arithmetic; it ignores capacity, and neither renders nor reads layers. If neither a podSet nor its app gives replicas,
//! `None` leaves them to the values of the layers. `render` uses the result.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::fleet::{Fleet, ReplicaDivision, Target, divide_replicas};
use crate::model::{App, AppSet, AppSpec, ChartRef, ClusterName, Component, Location, image_tag, retag};

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AssignedPodSet {
    pub name: String,
    /// `None`: from the layers (`values.replicas`).
    pub replicas: Option<u32>,
    /// `None`: the tag of the image that the layers give.
    pub version: Option<String>,
    /// `None`: the app's.
    pub image: Option<String>,
    /// `canary`, `blue`, `green`, `default`, or what `sym-group` says.
    pub group: String,
    /// Of the podSet, over its cluster's entry, over the app's.
    pub meta: BTreeMap<String, String>,
    /// Of the podSet, else the app's.
    #[serde(skip)]
    pub chart: Option<ChartRef>,
    #[serde(skip)]
    pub raw_values: Option<Map<String, Value>>,
    #[serde(skip)]
    pub node_selector_term: Option<Value>,
    #[serde(skip)]
    pub location: Location,
}

/// The podSets of every target, in file order. An Objects app has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assignment {
    pub targets: BTreeMap<Target, Vec<AssignedPodSet>>,
}

pub fn schedule(fleet: &Fleet) -> Assignment {
    let pod_sets = |target: &Target| fleet.apps.get(&target.app).map(|app| assign(app, &target.cluster));
    let targets = fleet.targets().into_iter();
    Assignment {
        targets: targets.filter_map(|target| pod_sets(&target).map(|pod_sets| (target, pod_sets))).collect(),
    }
}

pub fn assign(app: &App, cluster: &ClusterName) -> Vec<AssignedPodSet> {
    let mut pod_sets = match &app.spec {
        AppSpec::AppSet(app_set) if app_set.placement.is_some() => vec![assign_placed_chart(app, app_set)],
        AppSpec::AppSet(app_set) => assign_app_set(app_set, cluster),
        AppSpec::Component(component) => vec![assign_component(app, component)],
        AppSpec::Objects(_) | AppSpec::Project(_) => Vec::new(),
    };
    if let Some(pin) = app.pins.get(cluster) {
        for pod_set in &mut pod_sets {
            pod_set.image = pod_set.image.as_deref().map(|image| retag(image, &pin.version));
            pod_set.version = Some(pin.version.clone());
        }
    }
    pod_sets
}

fn assign_app_set(app_set: &AppSet, cluster: &ClusterName) -> Vec<AssignedPodSet> {
    let shares = match divide_replicas(app_set) {
        ReplicaDivision::Divided(shares) => shares,
        // `fleet` has removed such an app.
        ReplicaDivision::Mismatch { .. } | ReplicaDivision::PercentWithoutTotal(_) => return Vec::new(),
    };
    let pod_sets =
        app_set.clusters.iter().flat_map(|entry| entry.pod_sets.iter().map(move |set| (entry, set)));
    pod_sets
        .zip(shares)
        .filter(|((entry, _), _)| entry.name == *cluster)
        .map(|((entry, pod_set), replicas)| {
            let mut meta = app_set.meta.clone();
            meta.extend(entry.meta.clone());
            meta.extend(pod_set.meta.clone());
            AssignedPodSet {
                name: pod_set.name.clone(),
                replicas,
                version: pod_set.version.clone(),
                image: pod_set.image.clone(),
                group: pod_set.group().to_owned(),
                meta,
                chart: pod_set.chart.clone().or_else(|| app_set.chart.clone()),
                raw_values: pod_set.raw_values.clone(),
                node_selector_term: pod_set.node_selector_term.clone(),
                location: pod_set.location.clone(),
            }
        })
        .collect()
}

/// A chart that is placed by a selector is one podSet.
fn assign_placed_chart(app: &App, app_set: &AppSet) -> AssignedPodSet {
    AssignedPodSet {
        name: app.id.name.to_string(),
        replicas: None,
        version: None,
        image: None,
        group: "default".to_owned(),
        meta: app_set.meta.clone(),
        chart: app_set.chart.clone(),
        raw_values: None,
        node_selector_term: None,
        location: app.location.clone(),
    }
}

fn assign_component(app: &App, component: &Component) -> AssignedPodSet {
    let value = |key: &str| component.values.get(key);
    let image = value("image").and_then(Value::as_str);
    AssignedPodSet {
        name: app.id.name.to_string(),
        replicas: value("replicas").and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok()),
        version: image.and_then(image_tag).map(str::to_owned),
        image: image.map(str::to_owned),
        group: "default".to_owned(),
        meta: BTreeMap::new(),
        chart: None,
        raw_values: None,
        node_selector_term: None,
        location: app.location.clone(),
    }
}
