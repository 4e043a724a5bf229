//! The settings of the service for pull requests.

use std::sync::Arc;

use tokio::sync::watch;

use crate::chart;
use crate::cluster::{HomeCluster, WritePermit};
use crate::controller::RepositoryGrants;
use crate::metrics::Metrics;
use crate::notification::PromotionPull;
use crate::source::ConfigRepository;

#[derive(Debug)]
pub struct PullServiceSettings {
    pub repository: ConfigRepository,
    /// `None`: the forge's default branch.
    pub branch: Option<String>,
    pub charts: Arc<chart::ChartService>,
    pub home: HomeCluster,
    pub grants: Arc<RepositoryGrants>,
    pub permit: WritePermit,
    pub metrics: Metrics,
    /// Receives the promotions, for notifications.
    pub promotions: watch::Sender<Option<Arc<Vec<PromotionPull>>>>,
}
