//! The clusters that an app runs on.

use serde::Serialize;

use super::{ClusterSelector, Location, Toleration};

/// Where an app runs; absent in the manifest means every cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Placement {
    pub clusters: ClusterSelector,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Where it is written, for errors about clusters that do not exist.
    #[serde(skip)]
    pub location: Option<Location>,
}
