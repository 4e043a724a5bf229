//! Starts the controller with everything around it: repository, poll and webhook wakeups, leader election, HTTP servers, pull
//! requests, notifications, analyses, signals. All commands that need clusters run a [`Session`].

mod errors;

use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;

pub use self::errors::{RepositoryNotRead, RepositoryUnreadable, SourceError, exit_of, help_of};
use super::connections::ClusterConnections;
use super::exit::Exit;
use super::hook_secrets::HookSecrets;
use super::leadership::LeaderElection;
use super::output::tell;
use super::process::ProcessSettings;
use super::removed_clusters::add_removed_clusters;
use super::repository::{self, manifest_folder, repository_of_folder};
use super::trigger_tokens::TriggerTokens;
use crate::analysis;
use crate::api::{self, ApiState, ApiV1, DeliveryQueue, HooksState};
use crate::chart::ChartHosts;
use crate::cluster::HomeCluster;
use crate::controller::{
    self, ConfigHead, ControllerInputs, ControllerOutputs, ControllerSettings, ManifestOrigin,
    RepositoryGrants, RunEnding, RunUntil,
};
use crate::fleet::Fleet;
use crate::forge::WebhookHint;
use crate::manifest;
use crate::metrics::Metrics;
use crate::model::{DecryptionKeys, Digest, Instance, InstanceMode, redacted_address};
use crate::notification;
use crate::pulls;
use crate::report::Overview;
use crate::source::{self, ConfigRepository, WatchControl};

/// Hints that may wait; further ones say the same.
const MAX_PENDING_HINTS: usize = 1024;
const MAX_PENDING_CALLS: usize = 64;
/// Interval of reading a missing secret again.
const SECRET_RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// Set while a foreground program has the terminal: signals are for it.
static FOREGROUND_PROGRAM: AtomicBool = AtomicBool::new(false);

/// Runs an interactive program, which handles signals itself.
pub fn run_foreground(command: &mut Command) -> std::io::Result<ExitStatus> {
    FOREGROUND_PROGRAM.store(true, Ordering::Relaxed);
    let status = command.status();
    FOREGROUND_PROGRAM.store(false, Ordering::Relaxed);
    status
}

#[derive(Debug)]
pub struct RunOptions {
    pub until: RunUntil,
    pub mode: Option<InstanceMode>,
    /// Whether clusters are asked for dry runs of the plans.
    pub foresee: bool,
    /// Servers, statuses and hooks; `None` for commands that only read.
    pub serve: Option<ListenOptions>,
    /// Read the folder on disk instead of the last commit.
    pub worktree: bool,
}

impl RunOptions {
    /// Observe mode: writes nothing.
    pub const fn observe_only(until: RunUntil) -> Self {
        Self { until, mode: Some(InstanceMode::Observe), foresee: false, serve: None, worktree: false }
    }
}

#[derive(Clone, Debug)]
pub struct ListenOptions {
    pub listen: String,
    pub hooks_listen: String,
    pub api_token: Option<SecretString>,
}

#[derive(Debug)]
pub struct Session {
    pub overview: watch::Receiver<Arc<Overview>>,
    head: watch::Receiver<Option<Arc<ConfigHead>>>,
    pub stop: CancellationToken,
    election: Option<LeaderElection>,
    task: tokio::task::JoinHandle<(RunEnding, Arc<Overview>)>,
}

impl Session {
    /// Opens the repository and starts the controller.
    pub async fn start(process: &ProcessSettings, wish: RunOptions) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let (origin, repository) = open_origin(process, wish.worktree).await?;
        let of_pulls = repository.clone().filter(|_| wish.until == RunUntil::Stopped);
        let (wake, wakes) = mpsc::channel(1);
        let (hint, mut received) = mpsc::channel(MAX_PENDING_HINTS);
        let (forward, hints) = mpsc::channel(MAX_PENDING_HINTS);
        let (share, _) = broadcast::channel(MAX_PENDING_HINTS);
        let shared = share.clone();
        let (overview, seen) = watch::channel(Arc::new(Overview::default()));
        let (instance, instances) = watch::channel(None::<Arc<Instance>>);
        let (head, heads) = watch::channel(None);
        // Without a receiver, calls are answered 503.
        let (call, calls) = mpsc::channel(MAX_PENDING_CALLS);
        let mut leading = match &process.lease {
            Some(lease) if wish.serve.is_some() => {
                let (home, repository) = (&process.connections.home, redacted_address(&process.source.url));
                let leading =
                    LeaderElection::start(home, lease, &repository, hint.clone(), stop.clone()).await?;
                if wish.until != RunUntil::Stopped {
                    leading.wait_until_leader().await?;
                }
                Some(leading)
            }
            _ => None,
        };

        let mut waker = None;
        if let (Some(repository), RunUntil::Stopped) = (repository, wish.until) {
            let mut watch = repository.watch(Instance::default().poll, rand::random());
            waker = Some(watch.control());
            tokio::spawn(async move {
                loop {
                    watch.next().await;
                    if wake.send(()).await.is_err() {
                        return;
                    }
                }
            });
        }
        let (hooked, branch, known) = (waker.clone(), process.source.branch.clone(), instances.clone());
        let pass_on = leading.as_ref().map(LeaderElection::hint_forwarder);
        tokio::spawn(async move {
            while let Some(hint) = received.recv().await {
                let instance = known.borrow().clone();
                let route = hint_route(&hint, branch.as_deref(), instance.as_deref());
                if let Some(pass_on) = &pass_on
                    && (route.is_for_controller || route.is_for_others && hint.pull.is_some())
                {
                    pass_on(&hint);
                }
                if route.is_for_others {
                    // There may be no subscriber.
                    let _ = shared.send(hint.clone());
                }
                if !route.is_for_controller {
                    let WebhookHint { receiver, repository, reference, kind, .. } = &hint;
                    tracing::debug!(
                        receiver,
                        repository,
                        reference,
                        ?kind,
                        "a webhook that moves no branch of this repository"
                    );
                    continue;
                }
                // Polling is slower while hooks arrive.
                if let Some(waker) = &hooked {
                    waker.record_hook();
                }
                // A full channel loses nothing, and must not block the next hint.
                if let Err(TrySendError::Closed(_)) = forward.try_send(hint) {
                    return;
                }
            }
        });
        let metrics = Metrics::default();
        // Embedded clusters say nothing about the commit: no statuses.
        let report = wish.serve.is_some() && !process.connections.all_are_sandbox();
        let of_people = of_pulls.clone();
        let of_pulls =
            of_pulls.filter(|_| report).map(|repository| (repository, open_delivery_queue(process)));
        if let Some(doors) = &wish.serve {
            let (home, grants) = (process.connections.home.clone(), Arc::clone(&process.grants));
            let standing = leading.as_ref().map(LeaderElection::leadership_state);
            let mut hooks = HooksState::new(hint, metrics.clone()).standing(standing.clone());
            if let Some((_, deliveries)) = &of_pulls {
                hooks = hooks.triggers(heads.clone(), deliveries.clone());
            }
            let api = ApiV1::new(doors.api_token.as_ref(), heads.clone(), call);
            if doors.api_token.is_some() {
                tokio::spawn(refresh_trigger_tokens(
                    api.clone(),
                    heads.clone(),
                    home.clone(),
                    Arc::clone(&grants),
                ));
            }
            let status = ApiState { overview: seen.clone(), hooks, metrics: metrics.clone(), standing, api };
            let served = serve(doors, status, (instances.clone(), home, grants), waker, stop.clone()).await;
            if served.is_err()
                && let Some(leading) = leading.take()
            {
                // The error of the start says more than the lease's.
                let _ = leading.release().await;
            }
            served?;
            tokio::spawn(publish_metrics(metrics.clone(), seen.clone()));
        }
        let permit = leading.as_ref().map(LeaderElection::permit).unwrap_or_default();
        metrics.watch_permit(permit.clone());
        let head_seen = heads.clone();
        let settings = ControllerSettings {
            origin,
            link_resolver: process.connections.links(),
            home: process.connections.home.clone(),
            grants: Arc::clone(&process.grants),
            charts: Arc::new(repository::chart_service(process.chart_sites.clone())),
            keys: process.keys.clone(),
            until: wish.until,
            mode: wish.mode,
            dry_runs: wish.foresee,
            posts_statuses: report,
            permit,
            is_standby: leading.is_some(),
            metrics,
        };
        let is_alone = leading.is_none();
        let elected = leading.as_ref().map(|leading| leading.elected.clone()).unwrap_or_default();
        if is_alone {
            elected.cancel();
        }
        let (promote, promotions) = watch::channel(None);
        if report && wish.until == RunUntil::Stopped {
            let of_notifications = notification::NotificationSettings {
                repository: of_people,
                home: settings.home.clone(),
                grants: Arc::clone(&settings.grants),
                permit: settings.permit.clone(),
                metrics: settings.metrics.clone(),
                folder: Some(state_subfolder(process, "notifications")),
                request_rewriter: notification::RequestRewriter::default(),
            };
            let inputs = notification::NotificationInputs {
                head: heads.clone(),
                overview: seen.clone(),
                promotions,
                elected: elected.clone(),
                stop: stop.clone(),
            };
            tokio::spawn(notification::run(of_notifications, inputs));
        }
        if let Some((repository, deliveries)) = of_pulls {
            let of_pulls = pulls::PullServiceSettings {
                repository,
                branch: process.source.branch.clone(),
                charts: Arc::clone(&settings.charts),
                home: settings.home.clone(),
                grants: Arc::clone(&settings.grants),
                permit: settings.permit.clone(),
                metrics: settings.metrics.clone(),
                promotions: promote,
            };
            let inputs = pulls::PullServiceInputs {
                instance: instances,
                head: heads.clone(),
                overview: seen.clone(),
                hints: share.subscribe(),
                calls,
                deliveries,
                elected: elected.clone(),
                stop: stop.clone(),
            };
            tokio::spawn(pulls::run(of_pulls, inputs));
        }
        let (measure, measured) = watch::channel(Arc::default());
        if wish.serve.is_some() && wish.until == RunUntil::Stopped {
            let of_analysis = analysis::AnalysisSettings {
                home: settings.home.clone(),
                grants: Arc::clone(&settings.grants),
                metrics: settings.metrics.clone(),
            };
            let inputs = analysis::AnalysisInputs {
                head: heads,
                overview: seen.clone(),
                outcomes: measure,
                elected: elected.clone(),
                stop: stop.clone(),
            };
            tokio::spawn(analysis::run(of_analysis, inputs));
        }
        let inputs = ControllerInputs { wakes, hints, measurements: measured, elected, stop: stop.clone() };
        let task =
            tokio::spawn(controller::run(settings, inputs, ControllerOutputs { overview, instance, head }));
        if wish.serve.is_some() {
            let (ways, mut read) = (process.connections.clone(), seen.clone());
            tokio::spawn(async move {
                let read = read.wait_for(|now| now.revision.is_some()).await;
                // Only a warning: a cluster may have left the repository.
                if let Some(slip) = read.ok().and_then(|overview| unknown_cluster_override(&ways, &overview))
                {
                    tell!("warning: {slip}");
                }
            });
        }
        Ok(Self { overview: seen, head: head_seen, stop, election: leading, task })
    }

    pub fn wait_until_leader(&self) -> impl Future<Output = ()> + Send + use<> {
        let elected = self.election.as_ref().map(|leading| leading.elected.clone());
        async move {
            if let Some(elected) = elected {
                elected.cancelled().await;
            }
        }
    }

    /// Waits for the end. The first signal stops in order, the second at once.
    pub async fn finish(self) -> anyhow::Result<(RunEnding, Arc<Overview>)> {
        let (stop, over) = (self.stop.clone(), CancellationToken::new());
        let ended = over.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                result = wait_for_signal() => if result.is_ok() {
                    stop.cancel();
                    tell!("stopping: requests under way are finished first; send the signal again to stop at \
                           once");
                }
            }
            // Also after the run: with handlers installed signals do not end the process.
            while wait_for_signal().await.is_ok() {
                if !FOREGROUND_PROGRAM.load(Ordering::Relaxed) {
                    tell!("stopped at once: requests that were sent may still take effect");
                    std::process::exit(Exit::Interrupted as i32);
                }
            }
        });
        let result = self
            .task
            .await
            .context("the controller ended unexpectedly, which is a fault of tutti: report it with the log");
        if let Some(leading) = self.election {
            leading.release().await?;
        }
        over.cancel();
        result
    }
}

/// A `--cluster` override for an unknown cluster is probably a typo.
fn unknown_cluster_override(ways: &ClusterConnections, overview: &Overview) -> Option<String> {
    // Dropped clusters are not connected.
    let known = overview.clusters.iter().filter(|cluster| !cluster.is_unregistered());
    let known: Vec<&str> = known.map(|cluster| cluster.name.as_str()).collect();
    let names = ways.unknown_overrides(&known);
    let name = names.first()?;
    Some(format!("--cluster {name}=…: no cluster {name}; there are {}", known.join(", ")))
}

/// Runs once in observe mode.
pub async fn observe(
    process: &ProcessSettings,
    until: RunUntil,
    worktree: bool,
) -> anyhow::Result<(RunEnding, Arc<Overview>)> {
    observe_with_dry_run(process, until, worktree, false).await
}

/// As [`observe`]; `foresee`: also with dry runs of the plans.
pub async fn observe_with_dry_run(
    process: &ProcessSettings,
    until: RunUntil,
    worktree: bool,
    foresee: bool,
) -> anyhow::Result<(RunEnding, Arc<Overview>)> {
    let ObserveResult { ending, overview, .. } = observe_with_head(process, until, worktree, foresee).await?;
    Ok((ending, overview))
}

#[derive(Debug)]
pub struct ObserveResult {
    pub ending: RunEnding,
    pub overview: Arc<Overview>,
    pub head: Option<Arc<ConfigHead>>,
}

/// As [`observe_with_dry_run`], with the config repository that was read.
pub async fn observe_with_head(
    process: &ProcessSettings,
    until: RunUntil,
    worktree: bool,
    foresee: bool,
) -> anyhow::Result<ObserveResult> {
    let wish = RunOptions { foresee, worktree, ..RunOptions::observe_only(until) };
    let session = Session::start(process, wish).await?;
    let heads = session.head.clone();
    let (ways, stop, mut read) =
        (process.connections.clone(), session.stop.clone(), session.overview.clone());
    let slip = tokio::spawn(async move {
        // An error means an early end, which `ending` explains.
        let read = read.wait_for(|now| now.revision.is_some()).await.ok()?;
        // A cluster with an invalid manifest is unknown too: errors come first.
        let slip = unknown_cluster_override(&ways, &read).filter(|_| !read.has_errors())?;
        stop.cancel();
        Some(slip)
    });
    let (ending, mut overview) = session.finish().await?;
    if let Ok(Some(slip)) = slip.await {
        bail!(slip);
    }
    if let RunEnding::Unreadable(error) = ending {
        return Err(RepositoryUnreadable(error).into());
    }
    if overview.revision.is_none() {
        return Err(RepositoryNotRead { interrupted: matches!(ending, RunEnding::Stopped) }.into());
    }
    if worktree {
        add_removed_clusters(Arc::make_mut(&mut overview), process).await;
    }
    let head = heads.borrow().clone();
    Ok(ObserveResult { ending, overview, head })
}

async fn open_origin(
    process: &ProcessSettings,
    worktree: bool,
) -> anyhow::Result<(ManifestOrigin, Option<ConfigRepository>)> {
    if worktree {
        // The folder may be no repository.
        let history = repository_of_folder(process).await.ok();
        return Ok((ManifestOrigin::Folder { path: manifest_folder(&process.source), history }, None));
    }
    let repository = ConfigRepository::open(process.source.clone()).await.map_err(SourceError)?;
    Ok((ManifestOrigin::Repository(repository.clone()), Some(repository)))
}

/// Accepted deliveries for triggers that are not written yet.
fn open_delivery_queue(process: &ProcessSettings) -> DeliveryQueue {
    DeliveryQueue::open(state_subfolder(process, "deliveries"))
}

/// A subfolder of the state folder for this repository.
fn state_subfolder(process: &ProcessSettings, what: &str) -> PathBuf {
    let source::SourceOptions { url, state_folder: state, .. } = &process.source;
    state.join(what).join(Digest::of(redacted_address(url).as_bytes()).short())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HintRoute {
    /// The deployed branch may have moved.
    is_for_controller: bool,
    /// Of our repository: for pull requests and triggers.
    is_for_others: bool,
}

/// Unknown values match. One receiver may get events of all repositories of an owner, and of all branches.
fn hint_route(hint: &WebhookHint, branch: Option<&str>, instance: Option<&Instance>) -> HintRoute {
    let repository = instance.and_then(|instance| instance.forge.as_ref()).map(|forge| &forge.repository);
    let same_repository = match (&hint.repository, repository) {
        (Some(hinted), Some(ours)) => hinted.eq_ignore_ascii_case(ours),
        _ => true,
    };
    let same_branch = match (hint.branch(), branch) {
        (Some(hinted), Some(ours)) => hinted == ours,
        _ => true,
    };
    HintRoute {
        is_for_controller: hint.kind.is_of_branch() && same_repository && same_branch,
        is_for_others: same_repository,
    }
}

/// Updates metrics from overviews, beside the controller: it takes time for a large fleet.
async fn publish_metrics(metrics: Metrics, mut overviews: watch::Receiver<Arc<Overview>>) {
    while overviews.changed().await.is_ok() {
        let (metrics, overview) = (metrics.clone(), Arc::clone(&overviews.borrow_and_update()));
        if let Err(error) = tokio::task::spawn_blocking(move || metrics.publish(&overview)).await {
            tracing::error!(%error, "the metrics of the fleet are not up to date, which is a fault of tutti");
        }
    }
}

async fn serve(
    doors: &ListenOptions,
    status: ApiState,
    (mut instances, home, grants): (
        watch::Receiver<Option<Arc<Instance>>>,
        HomeCluster,
        Arc<RepositoryGrants>,
    ),
    waker: Option<WatchControl>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let hooks = TcpListener::bind(&doors.hooks_listen)
        .await
        .with_context(|| format!("failed to listen for webhooks on {}", doors.hooks_listen))?;
    let listener = TcpListener::bind(&doors.listen)
        .await
        .with_context(|| format!("failed to listen on {}", doors.listen))?;
    tracing::info!(hooks = %hooks.local_addr()?, status = %listener.local_addr()?, "listening");

    let state = status.hooks.clone();
    let (hooks_stop, status_stop) = (stop.clone().cancelled_owned(), stop.cancelled_owned());
    tokio::spawn(api::serve(hooks, api::hooks_router(state.clone()), hooks_stop));
    tokio::spawn(api::serve(listener, api::status_router(status), status_stop));
    tokio::spawn(async move {
        let (mut secrets, mut are_settled) = (HookSecrets::default(), true);
        loop {
            tokio::select! {
                changed = instances.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(SECRET_RETRY_INTERVAL), if !are_settled => {}
            }
            let instance = instances.borrow_and_update().clone();
            let Some(instance) = instance else { continue };
            let found;
            (found, are_settled) = secrets.receivers(&instance, &home, &grants).await;
            state.set_receivers(found);
            if let Some(waker) = &waker {
                waker.set_interval(instance.poll);
            }
        }
    });
    Ok(())
}

async fn refresh_trigger_tokens(
    api: ApiV1,
    mut heads: watch::Receiver<Option<Arc<ConfigHead>>>,
    home: HomeCluster,
    grants: Arc<RepositoryGrants>,
) {
    let (mut tokens, mut are_settled) = (TriggerTokens::default(), true);
    let mut read_for: Option<Arc<Fleet>> = None;
    loop {
        tokio::select! {
            changed = heads.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(SECRET_RETRY_INTERVAL), if !are_settled => {}
        }
        let head = heads.borrow_and_update().clone();
        let Some(head) = head else { continue };
        // A head with the same fleet names the same tokens.
        if are_settled && read_for.as_ref().is_some_and(|known| Arc::ptr_eq(known, &head.fleet)) {
            continue;
        }
        read_for = Some(Arc::clone(&head.fleet));
        let found;
        (found, are_settled) = tokens.read(&head.fleet, &home, &grants).await;
        api.set_trigger_tokens(found);
    }
}

/// Waits for SIGINT or SIGTERM.
async fn wait_for_signal() -> std::io::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result,
        _ = terminate.recv() => Ok(()),
    }
}

/// Settings for commands that get only a path or URL.
pub fn default_process(url: String, ways: ClusterConnections) -> ProcessSettings {
    ProcessSettings {
        source: source::SourceOptions {
            url,
            branch: None,
            path: ".".to_owned(),
            outside_file_lister: manifest::listed_beside,
            credentials: source::GitCredentials::None,
            state_folder: std::env::temp_dir().join("tutti"),
        },
        listen: None,
        hooks_listen: None,
        api_token: None,
        lease: None,
        connections: ways,
        keys: DecryptionKeys::default(),
        grants: Arc::default(),
        chart_sites: ChartHosts::from_environment(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::WebhookHintKind;
    use crate::model::{ForgeSettings, UncomparedLocation};

    #[test]
    fn hints_are_routed_by_repository_and_branch() {
        let forge = ForgeSettings {
            url: "https://gitea.example.com".to_owned(),
            repository: "team/config".to_owned(),
            token: None,
            written: UncomparedLocation::default(),
        };
        let instance = Instance { forge: Some(forge), ..Instance::default() };
        let hint = |repository: Option<&str>, reference: Option<&str>, kind: WebhookHintKind| WebhookHint {
            receiver: "gitea".to_owned(),
            repository: repository.map(ToOwned::to_owned),
            reference: reference.map(ToOwned::to_owned),
            kind,
            ..WebhookHint::default()
        };
        let check = |hint: &WebhookHint, is_for_controller: bool, is_for_others: bool| {
            let expected = HintRoute { is_for_controller, is_for_others };
            assert_eq!(hint_route(hint, Some("main"), Some(&instance)), expected, "{hint:?}");
            let unknown = HintRoute { is_for_controller: hint.kind.is_of_branch(), is_for_others: true };
            assert_eq!(hint_route(hint, None, None), unknown, "nothing is known yet: {hint:?}");
        };
        check(&hint(Some("Team/Config"), Some("refs/heads/main"), WebhookHintKind::Push), true, true);
        check(&hint(Some("team/other"), Some("refs/heads/main"), WebhookHintKind::Push), false, false);
        check(&hint(Some("team/config"), Some("refs/heads/main-2"), WebhookHintKind::Push), false, true);
        check(&hint(None, None, WebhookHintKind::BranchCreated), true, true);
        for kind in
            [WebhookHintKind::Pull, WebhookHintKind::Review, WebhookHintKind::Comment, WebhookHintKind::Label]
        {
            check(&hint(Some("team/config"), None, kind), false, true);
            check(&hint(Some("team/other"), None, kind), false, false);
        }
    }
}
