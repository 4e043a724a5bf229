//! Starts the controller with everything around it: repository, poll and webhook wakeups, leader election, HTTP servers, pull
//! requests, notifications, analyses, signals. All commands that need clusters run a [`Session`].

use std::fmt;
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

use super::exit::{self, Exit};
use super::hook_secrets::HookSecrets;
use super::leading::{Leading, Lost};
use super::output::tell;
use super::process::Process;
use super::trigger_tokens::TriggerTokens;
use super::ways::Ways;
use super::{repository, taken_away};
use crate::analysis;
use crate::api::{self, Api, DeliveryQueue, HooksState, Status};
use crate::chart::Sites;
use crate::cluster::Home;
use crate::controller::{
    self, ConfigHead, Ending, Grants, Inputs, LoadError, Origin, Outputs, Settings, Until,
};
use crate::fleet::Fleet;
use crate::forge::{self, Hint};
use crate::manifest;
use crate::metrics::Metrics;
use crate::model::{Digest, Instance, Keys, Mode, shown_address};
use crate::notification;
use crate::pulls;
use crate::report::Overview;
use crate::source::{self, ErrorKind, Repository, Waker};

/// Hints that may wait; further ones say the same.
const HINTS: usize = 1024;
const CALLS: usize = 64;
/// Interval of reading a missing secret again.
const MISSING_AGAIN: Duration = Duration::from_secs(60);

/// Set while a foreground program has the terminal: signals are for it.
static IS_ANOTHERS: AtomicBool = AtomicBool::new(false);

/// Runs an interactive program, which handles signals itself.
pub fn wait_for(command: &mut Command) -> std::io::Result<ExitStatus> {
    IS_ANOTHERS.store(true, Ordering::Relaxed);
    let status = command.status();
    IS_ANOTHERS.store(false, Ordering::Relaxed);
    status
}

#[derive(Debug)]
pub struct Wish {
    pub until: Until,
    pub mode: Option<Mode>,
    /// Whether clusters are asked for dry runs of the plans.
    pub foresee: bool,
    /// Servers, statuses and hooks; `None` for commands that only read.
    pub serve: Option<Doors>,
    /// Read the folder on disk instead of the last commit.
    pub worktree: bool,
}

impl Wish {
    /// Observe mode: writes nothing.
    pub const fn look(until: Until) -> Self {
        Self { until, mode: Some(Mode::Observe), foresee: false, serve: None, worktree: false }
    }
}

#[derive(Clone, Debug)]
pub struct Doors {
    pub listen: String,
    pub hooks_listen: String,
    pub api_token: Option<SecretString>,
}

#[derive(Debug)]
pub struct Session {
    pub overview: watch::Receiver<Arc<Overview>>,
    head: watch::Receiver<Option<Arc<ConfigHead>>>,
    pub stop: CancellationToken,
    leading: Option<Leading>,
    task: tokio::task::JoinHandle<(Ending, Arc<Overview>)>,
}

impl Session {
    /// Opens the repository and starts the controller.
    pub async fn start(process: &Process, wish: Wish) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let (origin, repository) = open(process, wish.worktree).await?;
        let of_pulls = repository.clone().filter(|_| wish.until == Until::Stopped);
        let (wake, wakes) = mpsc::channel(1);
        let (hint, mut received) = mpsc::channel(HINTS);
        let (forward, hints) = mpsc::channel(HINTS);
        let (share, _) = broadcast::channel(HINTS);
        let shared = share.clone();
        let (overview, seen) = watch::channel(Arc::new(Overview::default()));
        let (instance, instances) = watch::channel(None::<Arc<Instance>>);
        let (head, heads) = watch::channel(None);
        // Without a receiver, calls are answered 503.
        let (call, calls) = mpsc::channel(CALLS);
        let mut leading = match &process.lease {
            Some(lease) if wish.serve.is_some() => {
                let (home, repository) = (&process.ways.home, shown_address(&process.source.url));
                let leading = Leading::start(home, lease, &repository, hint.clone(), stop.clone()).await?;
                if wish.until != Until::Stopped {
                    leading.leads().await?;
                }
                Some(leading)
            }
            _ => None,
        };

        let mut waker = None;
        if let (Some(repository), Until::Stopped) = (repository, wish.until) {
            let mut watch = repository.watch(Instance::default().poll, rand::random());
            waker = Some(watch.waker());
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
        let pass_on = leading.as_ref().map(Leading::passes_on);
        tokio::spawn(async move {
            while let Some(hint) = received.recv().await {
                let instance = known.borrow().clone();
                let route = routed(&hint, branch.as_deref(), instance.as_deref());
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
                    let Hint { receiver, repository, reference, kind, .. } = &hint;
                    tracing::debug!(
                        receiver,
                        repository,
                        reference,
                        ?kind,
                        "a hint that moves no branch of ours"
                    );
                    continue;
                }
                // Polling is slower while hooks arrive.
                if let Some(waker) = &hooked {
                    waker.hook_seen();
                }
                // A full channel loses nothing, and must not block the next hint.
                if let Err(TrySendError::Closed(_)) = forward.try_send(hint) {
                    return;
                }
            }
        });
        let metrics = Metrics::default();
        // Embedded clusters say nothing about the commit: no statuses.
        let report = wish.serve.is_some() && !process.ways.all_are_sandbox();
        let of_people = of_pulls.clone();
        let of_pulls = of_pulls.filter(|_| report).map(|repository| (repository, accepted(process)));
        if let Some(doors) = &wish.serve {
            let (home, grants) = (process.ways.home.clone(), Arc::clone(&process.grants));
            let standing = leading.as_ref().map(Leading::standing);
            let mut hooks = HooksState::new(hint, metrics.clone()).standing(standing.clone());
            if let Some((_, deliveries)) = &of_pulls {
                hooks = hooks.triggers(heads.clone(), deliveries.clone());
            }
            let api = Api::new(doors.api_token.as_ref(), heads.clone(), call);
            if doors.api_token.is_some() {
                tokio::spawn(keep_tokens(api.clone(), heads.clone(), home.clone(), Arc::clone(&grants)));
            }
            let status = Status { overview: seen.clone(), hooks, metrics: metrics.clone(), standing, api };
            let served = serve(doors, status, (instances.clone(), home, grants), waker, stop.clone()).await;
            if served.is_err()
                && let Some(leading) = leading.take()
            {
                // The error of the start says more than the lease's.
                let _ = leading.end().await;
            }
            served?;
            tokio::spawn(measure(metrics.clone(), seen.clone()));
        }
        let permit = leading.as_ref().map(Leading::permit).unwrap_or_default();
        metrics.watch_permit(permit.clone());
        let head_seen = heads.clone();
        let settings = Settings {
            origin,
            links: process.ways.links(),
            home: process.ways.home.clone(),
            grants: Arc::clone(&process.grants),
            charts: Arc::new(repository::renderers(process.sites.clone())),
            keys: process.keys.clone(),
            until: wish.until,
            mode: wish.mode,
            foresee: wish.foresee,
            report,
            permit,
            stands_by: leading.is_some(),
            metrics,
        };
        let is_alone = leading.is_none();
        let elected = leading.as_ref().map(|leading| leading.elected.clone()).unwrap_or_default();
        if is_alone {
            elected.cancel();
        }
        let (promote, promotions) = watch::channel(None);
        if report && wish.until == Until::Stopped {
            let of_notifications = notification::Settings {
                repository: of_people,
                home: settings.home.clone(),
                grants: Arc::clone(&settings.grants),
                permit: settings.permit.clone(),
                metrics: settings.metrics.clone(),
                folder: Some(state_of(process, "notifications")),
                through: notification::Through::default(),
            };
            let inputs = notification::Inputs {
                head: heads.clone(),
                overview: seen.clone(),
                promotions,
                elected: elected.clone(),
                stop: stop.clone(),
            };
            tokio::spawn(notification::run(of_notifications, inputs));
        }
        if let Some((repository, deliveries)) = of_pulls {
            let of_pulls = pulls::Settings {
                repository,
                branch: process.source.branch.clone(),
                charts: Arc::clone(&settings.charts),
                home: settings.home.clone(),
                grants: Arc::clone(&settings.grants),
                permit: settings.permit.clone(),
                metrics: settings.metrics.clone(),
                promotions: promote,
            };
            let inputs = pulls::Inputs {
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
        if wish.serve.is_some() && wish.until == Until::Stopped {
            let of_analysis = analysis::Settings {
                home: settings.home.clone(),
                grants: Arc::clone(&settings.grants),
                metrics: settings.metrics.clone(),
            };
            let inputs = analysis::Inputs {
                head: heads,
                overview: seen.clone(),
                measured: measure,
                elected: elected.clone(),
                stop: stop.clone(),
            };
            tokio::spawn(analysis::run(of_analysis, inputs));
        }
        let inputs = Inputs { wakes, hints, measured, elected, stop: stop.clone() };
        let task = tokio::spawn(controller::run(settings, inputs, Outputs { overview, instance, head }));
        if wish.serve.is_some() {
            let (ways, mut read) = (process.ways.clone(), seen.clone());
            tokio::spawn(async move {
                let read = read.wait_for(|now| now.revision.is_some()).await;
                // Only a warning: a cluster may have left the repository.
                if let Some(slip) = read.ok().and_then(|overview| unmatched(&ways, &overview)) {
                    tell!("warning: {slip}");
                }
            });
        }
        Ok(Self { overview: seen, head: head_seen, stop, leading, task })
    }

    pub fn leads(&self) -> impl Future<Output = ()> + Send + use<> {
        let elected = self.leading.as_ref().map(|leading| leading.elected.clone());
        async move {
            if let Some(elected) = elected {
                elected.cancelled().await;
            }
        }
    }

    /// Waits for the end. The first signal stops in order, the second at once.
    pub async fn finish(self) -> anyhow::Result<(Ending, Arc<Overview>)> {
        let (stop, over) = (self.stop.clone(), CancellationToken::new());
        let ended = over.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                result = signal() => if result.is_ok() {
                    stop.cancel();
                    tell!("stopping: what is under way comes to its end; once more to stop at once");
                }
            }
            // Also after the run: with handlers installed signals do not end the process.
            while signal().await.is_ok() {
                if !IS_ANOTHERS.load(Ordering::Relaxed) {
                    tell!("stopped at once: requests that were sent may still take effect");
                    std::process::exit(Exit::Interrupted as i32);
                }
            }
        });
        let result = self.task.await.context("the controller ended unexpectedly");
        if let Some(leading) = self.leading {
            leading.end().await?;
        }
        over.cancel();
        result
    }
}

/// A `--cluster` override for an unknown cluster is probably a typo.
fn unmatched(ways: &Ways, overview: &Overview) -> Option<String> {
    // Dropped clusters are not connected.
    let known = overview.clusters.iter().filter(|cluster| !cluster.is_dropped());
    let known: Vec<&str> = known.map(|cluster| cluster.name.as_str()).collect();
    let names = ways.unmatched(&known);
    let name = names.first()?;
    Some(format!("--cluster {name}=…: no cluster {name}; there are {}", known.join(", ")))
}

/// Runs once in observe mode.
pub async fn look(
    process: &Process,
    until: Until,
    worktree: bool,
) -> anyhow::Result<(Ending, Arc<Overview>)> {
    look_for(process, until, worktree, false).await
}

/// As [`look`]; `foresee`: also with dry runs of the plans.
pub async fn look_for(
    process: &Process,
    until: Until,
    worktree: bool,
    foresee: bool,
) -> anyhow::Result<(Ending, Arc<Overview>)> {
    let Looked { ending, overview, .. } = look_with_head(process, until, worktree, foresee).await?;
    Ok((ending, overview))
}

#[derive(Debug)]
pub struct Looked {
    pub ending: Ending,
    pub overview: Arc<Overview>,
    pub head: Option<Arc<ConfigHead>>,
}

/// As [`look_for`], with the config repository that was read.
pub async fn look_with_head(
    process: &Process,
    until: Until,
    worktree: bool,
    foresee: bool,
) -> anyhow::Result<Looked> {
    let wish = Wish { foresee, worktree, ..Wish::look(until) };
    let session = Session::start(process, wish).await?;
    let heads = session.head.clone();
    let (ways, stop, mut read) = (process.ways.clone(), session.stop.clone(), session.overview.clone());
    let slip = tokio::spawn(async move {
        // An error means an early end, which `ending` explains.
        let read = read.wait_for(|now| now.revision.is_some()).await.ok()?;
        // A cluster with an invalid manifest is unknown too: errors come first.
        let slip = unmatched(&ways, &read).filter(|_| !read.has_errors())?;
        stop.cancel();
        Some(slip)
    });
    let (ending, mut overview) = session.finish().await?;
    if let Ok(Some(slip)) = slip.await {
        bail!(slip);
    }
    if let Ending::Unreadable(error) = ending {
        return Err(Unreadable(error).into());
    }
    if overview.revision.is_none() {
        return Err(NotRead { interrupted: matches!(ending, Ending::Stopped) }.into());
    }
    if worktree {
        taken_away::tell(Arc::make_mut(&mut overview), process).await;
    }
    let head = heads.borrow().clone();
    Ok(Looked { ending, overview, head })
}

async fn open(process: &Process, worktree: bool) -> anyhow::Result<(Origin, Option<Repository>)> {
    if worktree {
        // The folder may be no repository.
        let history = repository_of_folder(process).await.ok();
        return Ok((Origin::Folder { path: folder(&process.source), history }, None));
    }
    let repository = Repository::open(process.source.clone()).await.map_err(Source)?;
    Ok((Origin::Repository(repository.clone()), Some(repository)))
}

/// Accepted deliveries for triggers that are not written yet.
fn accepted(process: &Process) -> DeliveryQueue {
    DeliveryQueue::open(state_of(process, "deliveries"))
}

/// A subfolder of the state folder for this repository.
fn state_of(process: &Process, what: &str) -> PathBuf {
    let source::Options { url, state, .. } = &process.source;
    state.join(what).join(Digest::of(shown_address(url).as_bytes()).short())
}

/// The folder's repository, at its checked out branch.
pub async fn repository_of_folder(process: &Process) -> Result<Repository, source::Error> {
    Repository::open(source::Options { branch: None, ..process.source.clone() }).await
}

pub fn folder(source: &source::Options) -> PathBuf {
    let names = source.path.split('/').filter(|name| !name.is_empty() && *name != ".");
    names.fold(PathBuf::from(&source.url), |folder, name| folder.join(name))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Routed {
    /// The deployed branch may have moved.
    is_for_controller: bool,
    /// Of our repository: for pull requests and triggers.
    is_for_others: bool,
}

/// Unknown values match. One receiver may get events of all repositories of an owner, and of all branches.
fn routed(hint: &Hint, branch: Option<&str>, instance: Option<&Instance>) -> Routed {
    let repository = instance.and_then(|instance| instance.forge.as_ref()).map(|forge| &forge.repository);
    let same_repository = match (&hint.repository, repository) {
        (Some(hinted), Some(ours)) => hinted.eq_ignore_ascii_case(ours),
        _ => true,
    };
    let same_branch = match (hint.branch(), branch) {
        (Some(hinted), Some(ours)) => hinted == ours,
        _ => true,
    };
    Routed {
        is_for_controller: hint.kind.is_of_branch() && same_repository && same_branch,
        is_for_others: same_repository,
    }
}

/// Updates metrics from overviews, beside the controller: it takes time for a large fleet.
async fn measure(metrics: Metrics, mut overviews: watch::Receiver<Arc<Overview>>) {
    while overviews.changed().await.is_ok() {
        let (metrics, overview) = (metrics.clone(), Arc::clone(&overviews.borrow_and_update()));
        if let Err(error) = tokio::task::spawn_blocking(move || metrics.publish(&overview)).await {
            tracing::error!(%error, "the metrics of the fleet are not up to date, which is a fault of tutti");
        }
    }
}

async fn serve(
    doors: &Doors,
    status: Status,
    (mut instances, home, grants): (watch::Receiver<Option<Arc<Instance>>>, Home, Arc<Grants>),
    waker: Option<Waker>,
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
                () = tokio::time::sleep(MISSING_AGAIN), if !are_settled => {}
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

async fn keep_tokens(
    api: Api,
    mut heads: watch::Receiver<Option<Arc<ConfigHead>>>,
    home: Home,
    grants: Arc<Grants>,
) {
    let (mut tokens, mut are_settled) = (TriggerTokens::default(), true);
    let mut read_for: Option<Arc<Fleet>> = None;
    loop {
        tokio::select! {
            changed = heads.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(MISSING_AGAIN), if !are_settled => {}
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
async fn signal() -> std::io::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result,
        _ = terminate.recv() => Ok(()),
    }
}

/// The repository could not be opened.
#[derive(Debug)]
pub struct Source(pub source::Error);

/// The repository could not be read.
#[derive(Debug)]
pub struct Unreadable(pub LoadError);

/// The run ended before the repository was read.
#[derive(Debug)]
pub struct NotRead {
    interrupted: bool,
}

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.interrupted {
            true => "stopped before the config repository was read",
            false => "the config repository was not read in time; --timeout gives it more",
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for NotRead {}
impl std::error::Error for Source {}
impl std::error::Error for Unreadable {}

fn kind_of(error: &anyhow::Error) -> Option<ErrorKind> {
    let opened = error.downcast_ref::<Source>().map(|error| error.0.kind());
    opened.or_else(|| error.downcast_ref::<Unreadable>().map(|error| error.0.kind))
}

pub fn help_of(error: &anyhow::Error) -> Option<String> {
    let opened = error.downcast_ref::<Source>().and_then(|error| error.0.help().map(ToOwned::to_owned));
    let of_forge =
        || error.downcast_ref::<forge::Error>().and_then(|error| error.help()).map(ToOwned::to_owned);
    let unreadable = || error.downcast_ref::<Unreadable>().and_then(|error| error.0.help.clone());
    opened.or_else(unreadable).or_else(of_forge)
}

pub fn exit_of(error: &anyhow::Error) -> Exit {
    if let Some(NotRead { interrupted }) = error.downcast_ref() {
        return if *interrupted { Exit::Interrupted } else { Exit::TimedOut };
    }
    if error.is::<Lost>() {
        return Exit::Denied;
    }
    if let Some(error) = error.downcast_ref::<forge::Error>() {
        return exit::of_forge(error);
    }
    match kind_of(error) {
        Some(ErrorKind::Authentication) => Exit::Denied,
        Some(ErrorKind::Unreachable | ErrorKind::Transient) => Exit::Unreachable,
        Some(ErrorKind::Configuration) | None => Exit::Configuration,
    }
}

/// Settings for commands that get only a path or URL.
pub fn process_of(url: String, ways: Ways) -> Process {
    Process {
        source: source::Options {
            url,
            branch: None,
            path: ".".to_owned(),
            listed: manifest::listed_beside,
            credentials: source::Credentials::None,
            state: std::env::temp_dir().join("tutti"),
        },
        listen: None,
        hooks_listen: None,
        api_token: None,
        lease: None,
        ways,
        keys: Keys::default(),
        grants: Arc::default(),
        sites: Sites::of_environment(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::HintKind;
    use crate::model::{Forge, Written};

    #[test]
    fn hints_are_routed_by_repository_and_branch() {
        let forge = Forge {
            url: "https://gitea.example.com".to_owned(),
            repository: "team/config".to_owned(),
            token: None,
            written: Written::default(),
        };
        let instance = Instance { forge: Some(forge), ..Instance::default() };
        let hint = |repository: Option<&str>, reference: Option<&str>, kind: HintKind| Hint {
            receiver: "gitea".to_owned(),
            repository: repository.map(ToOwned::to_owned),
            reference: reference.map(ToOwned::to_owned),
            kind,
            ..Hint::default()
        };
        let check = |hint: &Hint, is_for_controller: bool, is_for_others: bool| {
            let expected = Routed { is_for_controller, is_for_others };
            assert_eq!(routed(hint, Some("main"), Some(&instance)), expected, "{hint:?}");
            let unknown = Routed { is_for_controller: hint.kind.is_of_branch(), is_for_others: true };
            assert_eq!(routed(hint, None, None), unknown, "nothing is known yet: {hint:?}");
        };
        check(&hint(Some("Team/Config"), Some("refs/heads/main"), HintKind::Push), true, true);
        check(&hint(Some("team/other"), Some("refs/heads/main"), HintKind::Push), false, false);
        check(&hint(Some("team/config"), Some("refs/heads/main-2"), HintKind::Push), false, true);
        check(&hint(None, None, HintKind::BranchCreated), true, true);
        for kind in [HintKind::Pull, HintKind::Review, HintKind::Comment, HintKind::Label] {
            check(&hint(Some("team/config"), None, kind), false, true);
            check(&hint(Some("team/other"), None, kind), false, false);
        }
    }

    #[test]
    fn manifest_folder_is_below_the_repository() {
        let check = |path: &str, expected: &str| {
            let mut process = process_of("/a/b".to_owned(), Ways::all_sandbox());
            process.source.path = path.to_owned();
            assert_eq!(folder(&process.source), PathBuf::from(expected), "{path}");
        };
        check(".", "/a/b");
        check("./sub//fleet/", "/a/b/sub/fleet");
        check("/sub", "/a/b/sub");
    }
}
