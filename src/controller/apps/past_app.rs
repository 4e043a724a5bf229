//! An app at an earlier commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fleet::Waves;
use crate::model::{Capabilities, ClusterName, RenderedTarget};
use crate::render::DiscoveredCapabilities;
use crate::rollout::CommitFacts;

/// An app at an earlier commit.
#[derive(Debug)]
pub struct PastApp {
    /// Clusters for which it could be rendered.
    pub renders: BTreeMap<ClusterName, Arc<RenderedTarget>>,
    pub facts: Arc<CommitFacts>,
    /// The waves of the head for which it was read.
    pub waves: Waves,
    /// The capabilities of the clusters at that time.
    pub(super) discovered: DiscoveredCapabilities,
}

impl PastApp {
    /// The capabilities of the cluster have changed.
    pub fn is_outdated(&self, cluster: &ClusterName, now: Option<&Arc<Capabilities>>) -> bool {
        let Some(now) = now else { return false };
        self.discovered.get(cluster).is_none_or(|then| !Arc::ptr_eq(then, now) && then != now)
    }
}
