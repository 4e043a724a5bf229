//! The settings of the senders of notifications.

use std::path::PathBuf;
use std::sync::Arc;

use super::RequestRewriter;
use crate::cluster::{HomeCluster, WritePermit};
use crate::controller::RepositoryGrants;
use crate::metrics::Metrics;
use crate::source::ConfigRepository;

#[derive(Debug)]
pub struct NotificationSettings {
    /// For the messages of commits.
    pub repository: Option<ConfigRepository>,
    pub home: HomeCluster,
    pub grants: Arc<RepositoryGrants>,
    pub permit: WritePermit,
    pub metrics: Metrics,
    /// The folder of the histories.
    pub folder: Option<PathBuf>,
    pub request_rewriter: RequestRewriter,
}
