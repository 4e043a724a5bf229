//! A registered cluster.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{ClusterFacts, ClusterName, DataKeyRef, Digest, KubeVersion, Location, Taint};

/// The state that its file sets. Whether the cluster is reachable is observed elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum ClusterState {
    #[default]
    Ready,
    /// No writes.
    Maintaining,
    /// Its objects are deleted, and no app is placed there.
    Removed,
}

/// How to reach it: exactly one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Connection {
    /// A file, relative to the folder of the `kubeconfigs` setting.
    Kubeconfig { path: String, context: Option<String> },
    /// A Secret of the home cluster.
    KubeconfigSecret { at: DataKeyRef, context: Option<String> },
    /// A ConfigMap of the home cluster that registers it.
    ConfigMap {
        at: DataKeyRef,
        /// Of what it holds: another kubeconfig is another connection.
        digest: Option<Digest>,
    },
    /// The cluster that tutti itself runs in.
    InCluster,
    /// An embedded cluster.
    Sandbox,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    pub name: ClusterName,
    pub labels: BTreeMap<String, String>,
    pub connection: Connection,
    pub state: ClusterState,
    pub vip: Option<String>,
    /// Free facts for templates.
    pub meta: Map<String, Value>,
    /// Declared version, which overrides the discovered one.
    pub version: Option<KubeVersion>,
    /// Declared API versions (`x.io/v1`, `x.io/v1/Kind`), added to the discovered ones.
    pub capabilities: Vec<String>,
    pub taints: Vec<Taint>,
    #[serde(skip)]
    pub location: Location,
}

impl Cluster {
    pub fn facts<'a>(&'a self, ring: Option<&'a str>) -> ClusterFacts<'a> {
        ClusterFacts { name: self.name.as_str(), labels: &self.labels, ring }
    }
}
