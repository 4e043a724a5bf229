//! The settings of the process.

use std::sync::Arc;
use std::time::Duration;

use super::grants::RepositoryGrants;
use super::load::ManifestOrigin;
use crate::chart;
use crate::cluster::{ClusterLink, HomeCluster, WritePermit};
use crate::metrics::Metrics;
use crate::model::{Cluster, DecryptionKeys, InstanceMode};

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunUntil {
    Stopped,
    /// When nothing is left to do or to wait for, or at the timeout.
    Settled {
        timeout: Duration,
    },
    /// When the plans are known, or at the timeout.
    Planned {
        timeout: Duration,
    },
    /// Like `Planned`, and the causes of unhealthy objects are known.
    Explained {
        timeout: Duration,
    },
}

/// Finds the connection of a cluster from its manifest.
pub type LinkResolver = Arc<dyn Fn(&Cluster) -> ClusterLink + Send + Sync>;

/// The settings of the process.
pub struct ControllerSettings {
    pub origin: ManifestOrigin,
    pub link_resolver: LinkResolver,
    /// The home cluster: it keeps secrets and registers clusters.
    pub home: HomeCluster,
    pub grants: Arc<RepositoryGrants>,
    pub charts: Arc<chart::ChartService>,
    /// Keys for encrypted files.
    pub keys: DecryptionKeys,
    pub until: RunUntil,
    /// Overrides the mode of the instance: `plan` and similar commands observe, whatever Git says.
    pub mode: Option<InstanceMode>,
    /// Plans are also sent as dry runs to the clusters; for a run that only observes.
    pub dry_runs: bool,
    pub posts_statuses: bool,
    /// The permit of this process. Revoking it stops all writes, and nothing is started after that.
    pub permit: WritePermit,
    /// Another process writes; this one observes until it is elected.
    pub is_standby: bool,
    pub metrics: Metrics,
}

impl std::fmt::Debug for ControllerSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerSettings")
            .field("origin", &self.origin)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}
