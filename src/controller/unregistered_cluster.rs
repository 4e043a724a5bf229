//! A cluster that is not registered any more.

use crate::model::{Cluster, Revision};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct UnregisteredCluster {
    /// The commit that removed its file; `None`: a ConfigMap had registered it.
    pub removed_by: Option<Revision>,
    /// Its last known manifest.
    pub last_manifest: Cluster,
}
