//! Secrets and ConfigMaps of the home cluster, and the registry of clusters that is kept there.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::Digest;

/// One key of a Secret or ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DataKeyRef {
    pub namespace: String,
    pub name: String,
    pub key: String,
}

/// `tutti/bj5, key kubeconfig`.
impl fmt::Display for DataKeyRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, key {}", self.namespace, self.name, self.key)
    }
}

/// Which ConfigMaps of the home cluster register a cluster each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapRegistry {
    pub namespace: String,
    /// All of them must be there.
    pub match_labels: BTreeMap<String, String>,
    /// What the kubeconfig stands under.
    pub key: String,
}

impl Default for ConfigMapRegistry {
    /// As symphony has them.
    fn default() -> Self {
        Self {
            namespace: "sym-admin".to_owned(),
            match_labels: BTreeMap::from([("ClusterOwner".to_owned(), "sym-admin".to_owned())]),
            key: "kubeconfig.yaml".to_owned(),
        }
    }
}

/// One such ConfigMap, without the kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredCluster {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub status: Option<String>,
    /// Of the kubeconfig: another one is another connection. `None`: it holds none.
    pub kubeconfig: Option<Digest>,
}

/// The contents of a registry at the last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryContents {
    /// By name.
    pub clusters: Vec<RegisteredCluster>,
    /// The error while the registry was never read: its clusters are unknown.
    pub problem: Option<String>,
}
