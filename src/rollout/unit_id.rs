//! Names a unit of an app.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::model::ClusterName;

/// A unit of an app: a podSet on a cluster, or the app on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitId {
    pub cluster: ClusterName,
    /// The podSet; empty if the app is one unit.
    #[serde(serialize_with = "as_text")]
    pub pod_set: Arc<str>,
}

fn as_text<S: serde::Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

impl UnitId {
    pub fn new(cluster: &str, pod_set: &str) -> Self {
        Self { cluster: ClusterName::from(cluster), pod_set: pod_set.into() }
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.pod_set {
            "" => write!(f, "{}", self.cluster),
            pod_set => write!(f, "{pod_set} on {}", self.cluster),
        }
    }
}
