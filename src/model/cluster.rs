//! A registered cluster.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{ClusterFacts, ClusterName, Digest, KubeVersion, Location, StoredKey};

/// What its file wants of it. Whether it answers is observed, not written here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum ClusterState {
    #[default]
    Ready,
    /// No writes.
    Maintaining,
    /// What it runs is taken down, and no app is placed there.
    Removed,
}

/// How to reach it: exactly one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Connection {
    /// A file, relative to the folder that the process was told (`kubeconfigs`).
    Kubeconfig { path: String, context: Option<String> },
    /// A Secret of the home cluster.
    KubeconfigSecret { at: StoredKey, context: Option<String> },
    /// A ConfigMap of the home cluster that registers it.
    ConfigMap {
        at: StoredKey,
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
    /// Declared, which wins over what the cluster itself says.
    pub version: Option<KubeVersion>,
    /// Declared API versions (`x.io/v1`, `x.io/v1/Kind`), beside those that the cluster itself tells of.
    pub capabilities: Vec<String>,
    #[serde(skip)]
    pub location: Location,
}

impl Cluster {
    pub fn facts<'a>(&'a self, ring: Option<&'a str>) -> ClusterFacts<'a> {
        ClusterFacts { name: self.name.as_str(), labels: &self.labels, ring }
    }
}
