//! Keeps one cluster connected: connects, takes its inventory, probes, and connects again.
//!
//! Probes every 5 s. Three failures in a row and the cluster is Offline; two good answers and it is
//! taken up again with a full resync, which is a new epoch. A cluster that does not answer is never
//! forgotten.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::event::{ClusterNews, Event};
use crate::cluster::{Client, Error, Link};
use crate::model::ClusterName;

const PROBE_EVERY: Duration = Duration::from_secs(5);
const FAILURES_TO_OFFLINE: u32 = 3;
const ANSWERS_TO_READY: u32 = 2;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Runs until the queue closes or the task is aborted.
pub struct Supervisor {
    pub cluster: ClusterName,
    pub link: Link,
    pub instance: String,
    pub events: mpsc::Sender<Event>,
    /// Counts requests to ask again what the cluster serves.
    pub rediscover: watch::Receiver<u64>,
    /// Epochs count on from here.
    pub first_epoch: u64,
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Supervisor({})", self.cluster)
    }
}

/// The queue was closed: the controller has stopped.
struct Closed;

impl Supervisor {
    pub async fn run(mut self) {
        let mut epoch = self.first_epoch;
        let mut was_offline = false;
        loop {
            epoch += 1;
            let Ok(client) = self.connect(epoch, was_offline).await else { return };
            if self.stay(epoch, &client).await.is_err() {
                return;
            }
            was_offline = true;
        }
    }

    /// Until the cluster has answered everything that a start needs.
    async fn connect(&mut self, epoch: u64, was_offline: bool) -> Result<Client, Closed> {
        let mut attempts = 0;
        let mut pause = FIRST_PAUSE;
        loop {
            match self.take_inventory(was_offline).await {
                Ok((client, news)) => {
                    self.tell(epoch, news).await?;
                    return Ok(client);
                }
                Err(error) => {
                    attempts += 1;
                    let lasting = matches!(error, Error::Connection { .. } | Error::Denied { .. });
                    self.tell(epoch, ClusterNews::Down { detail: detail(&error), attempts, lasting }).await?;
                }
            }
            tokio::time::sleep(jittered(pause)).await;
            // A cluster that was here a moment ago is likely back soon: it is asked every 5 s.
            pause = (pause * 2).min(if was_offline { PROBE_EVERY } else { LONGEST_PAUSE });
        }
    }

    async fn take_inventory(&self, was_offline: bool) -> Result<(Client, ClusterNews), Error> {
        let client = Client::connect(self.cluster.clone(), &self.link).await?;
        if was_offline {
            for _ in 1..ANSWERS_TO_READY {
                client.probe().await?;
            }
        }
        let catalog = client.discover().await?;
        let in_use = client.kinds_in_use(&catalog, &self.instance).await?;
        let news = ClusterNews::Up { client: client.clone(), catalog: Arc::new(catalog), in_use };
        Ok((client, news))
    }

    /// Until the cluster has not answered three times in a row.
    async fn stay(&mut self, epoch: u64, client: &Client) -> Result<(), Closed> {
        let mut failures = 0;
        loop {
            let asked = tokio::time::timeout(PROBE_EVERY, self.rediscover.changed()).await;
            match asked {
                Ok(Ok(())) => {
                    if let Ok(catalog) = client.discover().await {
                        self.tell(epoch, ClusterNews::Serves(Arc::new(catalog))).await?;
                    }
                    continue;
                }
                Ok(Err(_)) => return Err(Closed),
                Err(_) => {}
            }
            match client.probe().await {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    tracing::debug!(cluster = %self.cluster, %error, failures, "a probe failed");
                    if failures >= FAILURES_TO_OFFLINE || !error.is_transient() {
                        let news =
                            ClusterNews::Down { detail: detail(&error), attempts: failures, lasting: false };
                        self.tell(epoch, news).await?;
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn tell(&self, epoch: u64, news: ClusterNews) -> Result<(), Closed> {
        let event = Event::Cluster { cluster: self.cluster.clone(), epoch, news };
        self.events.send(event).await.map_err(|_| Closed)
    }
}

/// Without "failed to reach cluster x": whoever shows it has named the cluster.
fn detail(error: &Error) -> String {
    match error {
        Error::Connection { detail, .. } | Error::Unreachable { detail, .. } => detail.clone(),
        Error::Denied { detail, .. } => format!("not allowed: {detail}"),
        other => other.to_string(),
    }
}

/// Up to a fifth longer, so that a thousand clusters behind one broken router do not ask at once.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(1.0 + rand::random::<f64>() / 5.0)
}
