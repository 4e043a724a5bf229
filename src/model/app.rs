//! Apps: the manifests of a team, whatever their kind.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    AppId, ChartRef, ClusterName, DriftMode, IgnoreRule, InstanceDefaults, Location, Patch, Placement,
    Project, PruneMode, Route, Taint, TaintEffect, Toleration, UpdateStrategy,
};

/// One app, whatever kind of manifest it came from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct App {
    pub id: AppId,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// tutti does not touch it, and reports that.
    pub unmanaged: bool,
    /// No writes, no deletes; observing continues.
    pub paused: bool,
    /// Existing objects of a person or a deploy tool are adopted.
    pub adopt: bool,
    /// `None`: the instance's default.
    pub prune: Option<PruneMode>,
    /// `None`: the instance's default.
    pub drift: Option<DriftMode>,
    /// Applies force the ownership of fields. `None`: the instance's default.
    pub force: Option<bool>,
    /// A missing namespace is created, and never deleted for that. `None`: the instance's default.
    pub create_namespace: Option<bool>,
    /// An object with a changed immutable field is deleted and created again.
    pub replace: bool,
    /// Fields that other managers may set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<IgnoreRule>,
    /// How a change of it reaches its units.
    pub rollout: UpdateStrategy,
    /// Apps of one namespace with one group are promoted together. `None`: alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promotion_group: Option<String>,
    pub spec: AppSpec,
    /// Its own, and those of Route manifests that name it or stand beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// The versions of its pins; they override the tags of its images.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pins: BTreeMap<ClusterName, Pin>,
    /// Of its manifest.
    #[serde(skip)]
    pub location: Location,
}

/// The version of an app on one cluster, by the ring that the cluster is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pin {
    pub version: String,
    /// Of the version.
    #[serde(skip)]
    pub location: Location,
}

impl App {
    /// The manifest's kind.
    pub fn kind(&self) -> &'static str {
        match self.spec {
            AppSpec::AppSet(_) => "AppSet",
            AppSpec::Component(_) => "Component",
            AppSpec::Objects(_) => "Objects",
            AppSpec::Project(_) => "Project",
        }
    }

    /// Whether a missing namespace is created. A project renders its own.
    pub fn creates_namespace(&self, defaults: &InstanceDefaults) -> bool {
        !self.is_project() && self.create_namespace.unwrap_or(defaults.create_namespace)
    }

    pub fn is_project(&self) -> bool {
        matches!(self.spec, AppSpec::Project(_))
    }

    /// Whether a Helm chart renders it.
    pub fn is_chart(&self) -> bool {
        matches!(&self.spec, AppSpec::AppSet(app_set) if app_set.deploy_type == DeployType::Helm)
    }

    /// For people: `Component shop/web`, `Project shop`.
    pub fn title(&self) -> String {
        match self.spec {
            AppSpec::Project(_) => format!("{} {}", self.kind(), self.id.name),
            _ => format!("{} {}", self.kind(), self.id),
        }
    }

    /// The first taint with this effect that the app does not tolerate. No taint applies to a project: its namespace holds no pods, and
    /// apps that tolerate the taint need it.
    pub fn blocking_taint<'a>(&self, taints: &'a [Taint], effect: TaintEffect) -> Option<&'a Taint> {
        if matches!(self.spec, AppSpec::Project(_)) {
            return None;
        }
        let mut felt = taints.iter().filter(|taint| taint.effect == effect);
        felt.find(|taint| !self.tolerations().iter().any(|it| it.tolerates(taint)))
    }

    pub fn tolerations(&self) -> &[Toleration] {
        match &self.spec {
            AppSpec::AppSet(app_set) => &app_set.tolerations,
            AppSpec::Component(component) => &component.placement.tolerations,
            AppSpec::Objects(objects) => &objects.placement.tolerations,
            AppSpec::Project(_) => &[],
        }
    }

    /// The folder of its manifest, with a final `/`; empty at the root.
    pub fn folder(&self) -> &str {
        self.location.file.rfind('/').map_or("", |slash| &self.location.file[..=slash])
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AppSpec {
    AppSet(AppSet),
    Component(Component),
    Objects(ObjectsApp),
    Project(Box<Project>),
}

/// The workload type that an app asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeployType {
    Deployment,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
    /// A CloneSet of OpenKruise.
    InPlaceSet,
    /// Whatever the templates of the other layers make.
    Template,
    /// A chart renders the app.
    Helm,
}

/// The Kubernetes kind of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadKind {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// It has replicas that an autoscaler may change.
    pub scales: bool,
}

impl DeployType {
    /// The name of its workload layer; a template has none.
    pub fn layer(self) -> Option<&'static str> {
        match self {
            Self::Deployment => Some("deployment"),
            Self::StatefulSet => Some("statefulset"),
            Self::DaemonSet => Some("daemonset"),
            Self::Job => Some("job"),
            Self::CronJob => Some("cronjob"),
            Self::InPlaceSet => Some("inplaceset"),
            Self::Helm => Some("helm"),
            Self::Template => None,
        }
    }

    /// What its workload layer renders.
    pub fn workload(self) -> Option<WorkloadKind> {
        let kind = |api_version, kind, scales| Some(WorkloadKind { api_version, kind, scales });
        match self {
            Self::Deployment => kind("apps/v1", "Deployment", true),
            Self::StatefulSet => kind("apps/v1", "StatefulSet", true),
            Self::DaemonSet => kind("apps/v1", "DaemonSet", false),
            Self::Job => kind("batch/v1", "Job", false),
            Self::CronJob => kind("batch/v1", "CronJob", false),
            Self::InPlaceSet => kind("apps.kruise.io/v1alpha1", "CloneSet", true),
            Self::Template | Self::Helm => None,
        }
    }
}

/// The short form of an app: everything else comes from the layers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    pub workload_type: DeployType,
    /// Name of the language layer, lower case.
    pub language: String,
    /// Name of the run type layer, lower case.
    pub run_type: String,
    pub placement: Placement,
    /// Its fields (image, port, replicas, env, resources, probes) as values of the app layer.
    pub values: Map<String, Value>,
    /// After those of all layers.
    pub patches: Vec<Patch>,
}

/// Plain Kubernetes manifests as an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectsApp {
    pub placement: Placement,
    /// Paths or patterns from the root of the repository, each with where it is written.
    pub files: Vec<(String, Location)>,
}

/// Groups of pods, cluster by cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppSet {
    /// Over all clusters; `None`: the sum of the podSets.
    pub replicas: Option<u32>,
    /// For errors about the sum.
    #[serde(skip)]
    pub replicas_location: Option<Location>,
    pub deploy_type: DeployType,
    /// From labels of the manifest; `None` skips the layer.
    pub language: Option<String>,
    pub run_type: Option<String>,
    pub service_name: Option<String>,
    /// `spec.labels`: copied to the rendered objects.
    pub labels: BTreeMap<String, String>,
    pub meta: BTreeMap<String, String>,
    pub min_ready_seconds: Option<u32>,
    /// A PodTemplateSpec, merged over what the layers give.
    pub template: Option<Value>,
    /// What `deployType: helm` renders; a podSet may have its own.
    pub chart: Option<ChartRef>,
    pub clusters: Vec<TopologyCluster>,
    /// Of a chart, in place of `clusters`: one release of the app's name on each of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Box<Placement>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
}

impl AppSet {
    /// Its own chart, and those of its podSets.
    pub fn charts(&self) -> impl Iterator<Item = &ChartRef> {
        let pod_sets = self.clusters.iter().flat_map(|cluster| &cluster.pod_sets);
        self.chart.iter().chain(pod_sets.filter_map(|pod_set| pod_set.chart.as_ref()))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyCluster {
    pub name: ClusterName,
    pub meta: BTreeMap<String, String>,
    pub pod_sets: Vec<PodSet>,
    #[serde(skip)]
    pub location: Location,
}

/// One group of identical pods in one cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSet {
    pub name: String,
    /// `None`: a fair share of what the others leave.
    pub replicas: Option<Replicas>,
    pub version: Option<String>,
    pub image: Option<String>,
    /// Instead of the AppSet's.
    pub chart: Option<ChartRef>,
    /// Values of a chart over all others; null deletes.
    pub raw_values: Option<Map<String, Value>>,
    /// Its pods run only on nodes that fit it.
    pub node_selector_term: Option<Value>,
    pub meta: BTreeMap<String, String>,
    #[serde(skip)]
    pub location: Location,
}

impl PodSet {
    /// `meta.sym-group`, else the suffix of its name, else `default`.
    pub fn group(&self) -> &str {
        if let Some(group) = self.meta.get("sym-group") {
            return group;
        }
        ["canary", "blue", "green"]
            .into_iter()
            .find(|group| self.name.strip_suffix(group).is_some_and(|rest| rest.ends_with('-')))
            .unwrap_or("default")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Replicas {
    Count(u32),
    /// Of the AppSet's replicas, rounded down; what is left goes one by one in file order.
    Percent(u32),
}
