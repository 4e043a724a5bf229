//! Watches the kubeconfig of a connection: whether it was replaced, and when its credential expires.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::expiry_warnings::ExpiryWarnings;
use super::jitter::jittered;
use crate::cluster::{Client, ClusterLink, Credential};

/// Pauses are up to a fifth longer, so that a thousand clusters do not read the home cluster at the same moment.
const JITTER: u32 = 20;
/// The shortest pause, also when a credential is about to expire.
const MIN_PAUSE: Duration = Duration::from_secs(15);

#[derive(Clone, Debug)]
pub struct KubeconfigWatch {
    pub client: Client,
    pub link: ClusterLink,
    /// About how often it is read.
    pub poll_interval: Duration,
    pub expiry: Arc<Mutex<ExpiryWarnings>>,
}

impl KubeconfigWatch {
    /// Returns when the kubeconfig has another server or another credential.
    pub async fn wait_for_change(self) {
        let cluster = self.client.name();
        let mut number = 0;
        loop {
            let (credential, now) = (self.client.renewed_credential().await, Timestamp::now());
            self.expiry.lock().log_new_stage(cluster, &credential, now);
            number += 1;
            let pause = jittered(self.poll_interval, JITTER, cluster, number);
            tokio::time::sleep(
                time_until_warning(&credential, now).map_or(pause, |doubtful| pause.min(doubtful)),
            )
            .await;
            match self.client.is_outdated(&self.link).await {
                Ok(true) => {
                    tracing::info!(%cluster, "the kubeconfig of the cluster has changed: reconnecting");
                    return;
                }
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%cluster, %error, "its kubeconfig cannot be read again; the connection stays");
                }
            }
        }
    }
}

/// Time until the next warning about the expiry.
fn time_until_warning(credential: &Credential, now: Timestamp) -> Option<Duration> {
    let left = credential.recheck_from()?.duration_since(now);
    // A credential that is expired or close to it is checked in the normal interval and logged in stages.
    left.is_positive().then(|| Duration::try_from(left).unwrap_or(MIN_PAUSE).max(MIN_PAUSE))
}
