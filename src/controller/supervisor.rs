//! Keeps one cluster connected: connects, takes the inventory of its objects, probes, and reconnects.
//!
//! A probe runs every 5 s. After three failures in a row, refusals included, the cluster is Offline. After two successes in a row
//! it is resynced in full, which starts a new epoch. A cluster that does not answer is never removed from the state.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::api_discovery::{ApiWatch, KnownApis};
use super::event::{ClusterNews, Event, InventoryResult};
use super::expiry_warnings::ExpiryWarnings;
use super::jitter::jittered;
use super::kubeconfig_watch::KubeconfigWatch;
use crate::cluster::{Catalog, Client, ClusterLink, Credential, Error, KindsInUse, WritePermit};
use crate::model::{ClusterName, GroupVersionKind};

const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// A cluster whose watches deliver events is probed only this often. The probe reads its version and checks the credentials.
const MAX_PROBE_INTERVAL: Duration = Duration::from_secs(30);
const FAILURES_TO_OFFLINE: u32 = 3;
const ANSWERS_TO_READY: u32 = 2;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Interval between inventories over all kinds, including kinds without a watch.
const INVENTORY_INTERVAL: Duration = Duration::from_secs(12 * 3600);
/// Pauses are up to a fifth longer, so that a thousand clusters behind one broken router do not send at the same moment.
const JITTER: u32 = 20;

/// Runs until the queue closes or the task is aborted.
pub struct ClusterSupervisor {
    pub cluster: ClusterName,
    pub link: ClusterLink,
    pub instance: String,
    pub events: mpsc::Sender<Event>,
    /// Counts requests to discover the APIs again.
    pub rediscover: watch::Receiver<u64>,
    /// The first epoch of this supervisor.
    pub first_epoch: u64,
    /// About how often the kubeconfig is compared with that of the connection.
    pub kubeconfig_poll_interval: Duration,
    pub permit: WritePermit,
}

impl std::fmt::Debug for ClusterSupervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClusterSupervisor({})", self.cluster)
    }
}

/// The event queue is closed because the controller has stopped.
struct EventQueueClosed;

struct ClusterConnection {
    client: Client,
    /// Kinds whose list failed for the moment. Objects of this instance of these kinds are unknown until a list succeeds.
    unlisted: Vec<GroupVersionKind>,
}

impl From<KindsInUse> for InventoryResult {
    fn from(found: KindsInUse) -> Self {
        Self { unlisted: found.retryable_kinds(), denied: found.denied_kinds(), in_use: found.kinds }
    }
}

/// State that outlives a connection.
#[derive(Default)]
struct SupervisorState {
    apis: KnownApis,
    /// The last client, until the controller is informed that its kubeconfig was replaced.
    last_client: Option<Client>,
    expiry: Arc<Mutex<ExpiryWarnings>>,
}

impl ClusterSupervisor {
    /// How often a kubeconfig is read again. It is also read after each refusal by the cluster.
    pub const KUBECONFIG_POLL_INTERVAL: Duration = Duration::from_secs(300);

    pub async fn run(mut self) {
        let mut epoch = self.first_epoch;
        let mut unanswered = 0;
        let mut kept = SupervisorState::default();
        loop {
            epoch += 1;
            let Ok(connected) = self.connect(epoch, unanswered, &mut kept).await else { return };
            match self.monitor(epoch, connected, &mut kept).await {
                Ok(failures) => unanswered = failures,
                Err(EventQueueClosed) => return,
            }
        }
    }

    /// Retries until the cluster has answered all requests of a start. `attempts` continues the count of failed probes.
    async fn connect(
        &mut self,
        epoch: u64,
        mut attempts: u32,
        kept: &mut SupervisorState,
    ) -> Result<ClusterConnection, EventQueueClosed> {
        let was_offline = attempts > 0;
        let mut pause = FIRST_PAUSE;
        // A client whose attempt got no answer is used again, so that no credential plug-in runs a second time.
        let mut unanswered = None;
        loop {
            let opened = self.open(unanswered.take(), kept.last_client.as_ref()).await;
            if let (Ok(client), Some(before)) = (&opened, &kept.last_client)
                && !client.has_same_kubeconfig(before)
            {
                self.report_kubeconfig_change(epoch, kept).await?;
            }
            let taken = match opened {
                Ok(client) => {
                    let taken = self.take_inventory(client.clone(), was_offline).await;
                    let is_away =
                        |error: &Error| matches!(error, Error::Unreachable { .. } | Error::OverBound { .. });
                    unanswered = taken.as_ref().is_err_and(is_away).then_some(client);
                    taken
                }
                Err(error) => Err(error),
            };
            match taken {
                Ok((client, catalog, found)) => {
                    kept.apis.reset(catalog);
                    kept.last_client = Some(client.clone());
                    let catalog = Arc::clone(&kept.apis.catalog);
                    let connected =
                        ClusterConnection { client: client.clone(), unlisted: found.retryable_kinds() };
                    let looked = InventoryResult::from(found);
                    self.send_news(epoch, ClusterNews::Up { client, catalog, looked }).await?;
                    return Ok(connected);
                }
                Err(error) => {
                    attempts += 1;
                    let lasting = matches!(error, Error::Connection { .. } | Error::Denied { .. });
                    let credential = match error {
                        Error::Denied { .. } => self.link.credential(&self.cluster).await.ok(),
                        _ => None,
                    };
                    let detail = with_expiry(&error, credential.as_ref());
                    self.send_news(epoch, ClusterNews::Down { detail, attempts, lasting }).await?;
                }
            }
            tokio::time::sleep(jittered(pause, JITTER, &self.cluster, attempts)).await;
            // A cluster that answered a moment ago is likely back soon, so it is tried every 5 s.
            pause = (pause * 2).min(if was_offline { PROBE_INTERVAL } else { LONGEST_PAUSE });
        }
    }

    /// Opens a connection from the current kubeconfig, or reuses `unanswered` if that matches it. If the home cluster that keeps
    /// the kubeconfig does not answer, the client from `before` is tried again.
    async fn open(&self, unanswered: Option<Client>, before: Option<&Client>) -> Result<Client, Error> {
        if let Some(client) = unanswered {
            match client.is_outdated(&self.link).await {
                Err(error) if !error.is_unreachable() => return Err(error),
                Ok(true) => {}
                _ => return Ok(client),
            }
        }
        let opened = Client::connect_under(self.cluster.clone(), &self.link, self.permit.clone());
        match (opened.await, before) {
            (Err(error), Some(before)) if error.is_unreachable() => Ok(before.clone()),
            (opened, _) => opened,
        }
    }

    /// Reports that the kubeconfig was replaced. No request may start over the old connection after that.
    async fn report_kubeconfig_change(
        &self,
        epoch: u64,
        kept: &mut SupervisorState,
    ) -> Result<(), EventQueueClosed> {
        kept.last_client = None;
        self.send_news(epoch, ClusterNews::KubeconfigChanged).await
    }

    async fn take_inventory(
        &self,
        client: Client,
        was_offline: bool,
    ) -> Result<(Client, Catalog, KindsInUse), Error> {
        if was_offline {
            for _ in 1..ANSWERS_TO_READY {
                client.probe().await?;
            }
        }
        let catalog = client.discover().await?;
        let found = client.kinds_in_use(&catalog, &self.instance).await?;
        log_hidden_kinds(&self.cluster, &found.unlistable);
        Ok((client, catalog, found))
    }

    /// Runs until three probes in a row failed, and returns the number of failures.
    async fn monitor(
        &mut self,
        epoch: u64,
        mut connected: ClusterConnection,
        kept: &mut SupervisorState,
    ) -> Result<u32, EventQueueClosed> {
        let client = connected.client.clone();
        let mut failures = 0;
        let mut serving = ApiWatch::of(&client, &kept.apis.catalog);
        if kept.apis.catalog.missing().next().is_some() {
            serving.schedule_recheck();
        }
        let mut probed_at = Instant::now();
        let mut probe_at = probed_at + PROBE_INTERVAL;
        let expiry = Arc::clone(&kept.expiry);
        let (link, poll_interval) = (self.link.clone(), self.kubeconfig_poll_interval);
        let mut another =
            pin!(KubeconfigWatch { client: client.clone(), link, poll_interval, expiry }.wait_for_change());
        // When to discover the APIs again, and the delay after that.
        let is_known = !kept.apis.catalog.has_stale() && connected.unlisted.is_empty();
        let mut again = (!is_known).then(|| self.jittered_retry(FIRST_PAUSE));
        let mut look_at = self.next_inventory();
        // Whether a caller waits for the discovery.
        let mut asked = false;
        loop {
            // The probe comes first: a stream of requests must not delay it.
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(probe_at) => {
                    let began = Instant::now();
                    let is_well = failures == 0 && !kept.apis.is_version_unconfirmed();
                    let is_heard = is_well && client.has_events_since(began - PROBE_INTERVAL, probed_at);
                    if is_heard && began < probed_at + MAX_PROBE_INTERVAL {
                        probe_at = began + PROBE_INTERVAL;
                        continue;
                    }
                    match client.probe().await {
                        Ok(version) => {
                            failures = 0;
                            if kept.apis.update_version(version) {
                                serving.schedule_discovery();
                            }
                        }
                        Err(error) => {
                            failures += 1;
                            tracing::debug!(cluster = %self.cluster, %error, failures, "a probe failed");
                            if failures >= FAILURES_TO_OFFLINE {
                                let detail = with_expiry(&error, Some(&client.credential()));
                                let news = ClusterNews::Down { detail, attempts: failures, lasting: false };
                                self.send_news(epoch, news).await?;
                                return Ok(failures);
                            }
                            // The kubeconfig may have been replaced. If not, the authenticator of the cluster may have failed for
                            // a moment.
                            let is_refused = matches!(error, Error::Denied { .. });
                            if is_refused && client.is_outdated(&self.link).await.unwrap_or(false) {
                                tracing::info!(cluster = %self.cluster, "the cluster denied the login, and \
                                    its kubeconfig has changed: reconnecting");
                                self.report_kubeconfig_change(epoch, kept).await?;
                                return Ok(0);
                            }
                        }
                    }
                    probed_at = Instant::now();
                    probe_at = probed_at + PROBE_INTERVAL;
                }
                () = &mut another => {
                    self.report_kubeconfig_change(epoch, kept).await?;
                    return Ok(0);
                }
                request = self.rediscover.changed() => {
                    request.map_err(|_| EventQueueClosed)?;
                    // One discovery answers all requests that wait for it.
                    if !asked {
                        asked = true;
                        again = Some((Instant::now(), again.map_or(FIRST_PAUSE, |(_, pause)| pause)));
                    }
                }
                () = serving.wait_until_due(&kept.apis.catalog) => {
                    if !self.rediscover_apis(epoch, &mut connected, &mut kept.apis, &mut serving, &mut asked).await? {
                        again = again.or_else(|| Some(self.jittered_retry(FIRST_PAUSE)));
                    }
                }
                () = tokio::time::sleep_until(look_at) => {
                    look_at = self.next_inventory();
                    // For some kinds no watch reports that they are served.
                    let is_said = self.rediscover_apis(epoch, &mut connected, &mut kept.apis, &mut serving, &mut asked).await?;
                    let is_seen = self.retake_inventory(epoch, &mut connected, &kept.apis.catalog).await?;
                    if !is_said || !is_seen {
                        again = again.or_else(|| Some(self.jittered_retry(FIRST_PAUSE)));
                    }
                }
                pause = wait_for_retry(again) => {
                    let is_said = self.rediscover_apis(epoch, &mut connected, &mut kept.apis, &mut serving, &mut asked).await?;
                    again = (!is_said).then(|| self.jittered_retry(pause));
                }
            }
        }
    }

    /// Discovers the APIs and sends the result. Returns whether the discovery was complete.
    async fn rediscover_apis(
        &self,
        epoch: u64,
        connected: &mut ClusterConnection,
        known: &mut KnownApis,
        serving: &mut ApiWatch,
        asked: &mut bool,
    ) -> Result<bool, EventQueueClosed> {
        let found = match connected.client.discover().await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(cluster = %self.cluster, %error, "failed to read the served kinds");
                return Ok(false);
            }
        };
        let before = Arc::clone(&known.catalog);
        let is_news = known.update(found);
        if known.catalog.missing().next().is_some() {
            serving.schedule_recheck();
        }
        // A kind that was hidden at the connection was never searched for objects of this instance. Nothing is deleted before
        // that.
        let revealed: Vec<GroupVersionKind> = known.catalog.newly_visible_kinds(&before).cloned().collect();
        if !revealed.is_empty() {
            connected.unlisted.extend(revealed);
            let looked =
                InventoryResult { unlisted: connected.unlisted.clone(), ..InventoryResult::default() };
            self.send_news(epoch, ClusterNews::InventoryTaken(looked)).await?;
        }
        let is_asked = std::mem::take(asked);
        if is_news || is_asked {
            self.send_news(epoch, ClusterNews::ApisChanged(Arc::clone(&known.catalog))).await?;
        }
        self.retry_unlisted_kinds(epoch, connected, &known.catalog).await?;
        Ok(!known.catalog.has_stale() && connected.unlisted.is_empty())
    }

    fn next_inventory(&self) -> Instant {
        Instant::now() + jittered(INVENTORY_INTERVAL, JITTER, &self.cluster, 0)
    }

    /// Takes the inventory again, as at the connection. Returns whether all kinds could be listed. A late write of an earlier
    /// process, or a restored backup, may have brought objects of kinds that no app renders any more, and these kinds have no
    /// watch.
    async fn retake_inventory(
        &self,
        epoch: u64,
        connected: &mut ClusterConnection,
        catalog: &Catalog,
    ) -> Result<bool, EventQueueClosed> {
        match connected.client.kinds_in_use(catalog, &self.instance).await {
            Ok(found) => {
                connected.unlisted = found.retryable_kinds();
                self.send_news(epoch, ClusterNews::InventoryTaken(InventoryResult::from(found))).await?;
                Ok(connected.unlisted.is_empty())
            }
            // The next regular inventory is soon enough.
            Err(error) => {
                tracing::debug!(cluster = %self.cluster, %error, "failed to list the objects of tutti");
                Ok(true)
            }
        }
    }

    /// Lists the kinds whose list failed at the connection.
    async fn retry_unlisted_kinds(
        &self,
        epoch: u64,
        connected: &mut ClusterConnection,
        catalog: &Catalog,
    ) -> Result<(), EventQueueClosed> {
        if connected.unlisted.is_empty() {
            return Ok(());
        }
        // A kind whose preferred version was unknown at the connection was listed in another version.
        let preferred = |unlisted: &GroupVersionKind| {
            let found = catalog.preferred().find(|it| it.is_same_group_kind(unlisted)).cloned();
            found.or_else(|| catalog.has_stale().then(|| unlisted.clone()))
        };
        let kinds: Vec<GroupVersionKind> = connected.unlisted.iter().filter_map(preferred).collect();
        match connected.client.kinds_in_use_of(&kinds, catalog, &self.instance).await {
            Ok(found) => {
                let unlisted = found.retryable_kinds();
                if unlisted == connected.unlisted {
                    return Ok(());
                }
                connected.unlisted = unlisted;
                self.send_news(epoch, ClusterNews::InventoryTaken(InventoryResult::from(found))).await
            }
            Err(error) => {
                tracing::debug!(cluster = %self.cluster, %error, "failed again to list some kinds");
                Ok(())
            }
        }
    }

    /// The time of the next try after this pause, with jitter, and the pause after it.
    fn jittered_retry(&self, pause: Duration) -> (Instant, Duration) {
        let number = u32::try_from(pause.as_secs()).unwrap_or(u32::MAX);
        (Instant::now() + jittered(pause, JITTER, &self.cluster, number), (pause * 2).min(LONGEST_PAUSE))
    }

    async fn send_news(&self, epoch: u64, news: ClusterNews) -> Result<(), EventQueueClosed> {
        let event = Event::Cluster { cluster: self.cluster.clone(), epoch, news };
        self.events.send(event).await.map_err(|_| EventQueueClosed)
    }
}

/// Logs kinds that cannot be listed. An account with minimal rights may not list kinds that no app renders, so this is one line.
fn log_hidden_kinds(cluster: &ClusterName, hidden: &[(GroupVersionKind, Error)]) {
    let (denied, down): (Vec<_>, Vec<_>) =
        hidden.iter().partition(|(_, error)| matches!(error, Error::Denied { .. }));
    for (kind, error) in down {
        tracing::warn!(
            %cluster, %kind, %error,
            "a kind cannot be listed: objects of tutti of this kind are neither seen nor pruned"
        );
    }
    if !denied.is_empty() {
        let mut kinds: Vec<String> = denied.iter().map(|(kind, _)| kind.to_string()).collect();
        kinds.sort();
        tracing::warn!(
            %cluster, kinds = kinds.len(),
            "tutti may not list some kinds: its objects of these kinds are neither seen nor pruned"
        );
        tracing::debug!(%cluster, kinds = kinds.join(", "), "kinds that may not be listed");
    }
}

/// Waits for the next try, if there is one, and returns the pause after it.
async fn wait_for_retry(again: Option<(Instant, Duration)>) -> Duration {
    match again {
        Some((at, pause)) => {
            tokio::time::sleep_until(at).await;
            pause
        }
        None => std::future::pending().await,
    }
}

/// Adds the expiry of the credential, because an expired login is refused too.
fn with_expiry(error: &Error, credential: Option<&Credential>) -> String {
    let detail = error_detail(error);
    let warning = credential.and_then(|credential| credential.warning(Timestamp::now()));
    match warning.filter(|_| matches!(error, Error::Denied { .. })) {
        Some(warning) => format!("{detail}; {warning}"),
        None => detail,
    }
}

/// The error without "failed to reach cluster x": the caller names the cluster.
fn error_detail(error: &Error) -> String {
    match error {
        Error::Connection { detail, .. }
        | Error::Unreachable { detail, .. }
        | Error::OverBound { detail, .. } => detail.clone(),
        Error::Denied { detail, .. } => format!("not allowed: {detail}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
