//! Starts a worker for each route and gives it the current state.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::memory::FirstLook;
use super::pace::Pace;
use super::pending::Present;
use super::route::{OpenCommits, Worker};
use super::service::send::{self, Through};
use super::words::CommitFacts;
use crate::cluster::{Home, WritePermit};
use crate::controller::{ConfigHead, Grants, START_LASTS};
use crate::fleet::Fleet;
use crate::metrics::Metrics;
use crate::model::{
    AppId, ClusterFacts, ClusterName, Forge, Happened, Mode, Notification, Revision, Server, TargetSelector,
};
use crate::report::Overview;
use crate::report::notices::{Condition, Facts, Look, Moment, Seen, Thread};
use crate::source::Repository;

/// Changes within this time are sent together.
const SETTLES: Duration = Duration::from_millis(500);
/// The pause after an evaluation is this many times its duration, which bounds the CPU share.
const REST: u32 = 4;
/// Dates and credentials expire without an event.
const LOOK_AGAIN: Duration = Duration::from_secs(600);
/// Commits of the branch that are searched for reverts.
const RECENT: usize = 100;
const MOST_COMMITS: usize = 1000;

#[derive(Debug)]
pub struct Settings {
    /// For the messages of commits.
    pub repository: Option<Repository>,
    pub home: Home,
    pub grants: Arc<Grants>,
    pub permit: WritePermit,
    pub metrics: Metrics,
    /// The folder of the histories.
    pub folder: Option<PathBuf>,
    pub through: Through,
}

#[derive(Debug)]
pub struct Inputs {
    pub head: watch::Receiver<Option<Arc<ConfigHead>>>,
    pub overview: watch::Receiver<Arc<Overview>>,
    /// `None`: not read yet.
    pub promotions: watch::Receiver<Option<Arc<Vec<Promotion>>>>,
    /// Cancelled once this process leads.
    pub elected: CancellationToken,
    pub stop: CancellationToken,
}

/// A pull request of a promotion, as the forge returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promotion {
    pub number: u64,
    pub title: String,
    pub url: String,
    pub apps: Vec<AppId>,
    pub ring: String,
    /// Opened, held or merged.
    pub happened: Happened,
}

/// Runs until it is stopped.
pub async fn run(settings: Settings, mut inputs: Inputs) {
    let stop = inputs.stop.clone();
    let work = async {
        inputs.elected.cancelled().await;
        let client = match send::client() {
            Ok(client) => client,
            Err(error) => {
                tracing::error!(error, "no notifications are sent: the HTTP client cannot be made");
                return;
            }
        };
        let mut routes = Routes {
            settings: Arc::new(settings),
            client,
            running: None,
            began: Instant::now(),
            open: OpenCommits::default(),
            pace: Arc::new(Pace::default()),
            commits: Commits::default(),
        };
        loop {
            let began = Instant::now();
            routes.look(&mut inputs).await;
            let rest = SETTLES.max(began.elapsed() * REST);
            tokio::select! {
                Ok(()) = inputs.head.changed() => {}
                Ok(()) = inputs.overview.changed() => {}
                Ok(()) = inputs.promotions.changed() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
            tokio::time::sleep(rest).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

struct Routes {
    settings: Arc<Settings>,
    client: reqwest::Client,
    /// `None` before the first evaluation.
    running: Option<BTreeMap<String, Running>>,
    began: Instant,
    open: OpenCommits,
    pace: Arc<Pace>,
    commits: Commits,
}

struct Running {
    present: watch::Sender<Option<Arc<Present>>>,
    /// Aborted when dropped.
    task: AbortOnDropHandle<()>,
}

impl Routes {
    async fn look(&mut self, inputs: &mut Inputs) {
        let Some(head) = inputs.head.borrow_and_update().clone() else { return };
        let overview = inputs.overview.borrow_and_update().clone();
        let promotions = inputs.promotions.borrow_and_update().clone();
        let routes = head.fleet.notifications.clone();
        let names: BTreeSet<&str> = routes.iter().map(|route| route.name.as_str()).collect();
        // Histories stay on disk, so a route whose file had a mistake continues.
        let first_look = if self.running.is_none() { FirstLook::OfProcess } else { FirstLook::OfRoute };
        let running = self.running.get_or_insert_default();
        running.retain(|name, running| names.contains(name.as_str()) && !running.task.is_finished());
        self.open.lock().retain(|name, _| names.contains(name.as_str()));
        if routes.is_empty() {
            return;
        }
        // The histories name the open commits.
        for name in names.into_iter().filter(|name| !running.contains_key(*name)).collect::<Vec<_>>() {
            let worker = Worker::new(
                Arc::clone(&self.settings),
                self.client.clone(),
                Arc::clone(&self.open),
                Arc::clone(&self.pace),
                name,
                first_look,
            );
            running.insert(name.to_owned(), Running::start(worker));
        }
        let revision = &head.snapshot.revision;
        self.commits.read(self.settings.repository.as_ref(), revision).await;
        let reverted = Arc::new(self.commits.reverted.clone());
        let open: BTreeSet<Revision> = self.open.lock().values().flatten().cloned().collect();
        let forge = head.fleet.instance.forge.as_ref();
        // A process that was on standby may still have an overview of that time.
        let is_of_head =
            overview.mode == head.fleet.instance.mode && overview.revision.as_ref() == Some(revision);
        let is_known = overview.is_known() && (forge.is_none() || promotions.is_some());
        // What is unknown by then may stay unknown: a kind that RBAC hides, a forge that is down.
        let is_settled = is_of_head && (is_known || self.began.elapsed() > START_LASTS);
        let tells_of_commits = overview.mode == Mode::Enforce;
        let mut named = open.clone();
        let (fleet, now, of_seen) = (Arc::clone(&head.fleet), Timestamp::now(), Arc::clone(&reverted));
        let promotions = promotions.unwrap_or_default();
        let known = move || seen_by(&routes, &fleet, (&overview, &open), &promotions, &of_seen, now);
        let sorted = tokio::task::spawn_blocking(known);
        let Ok(Some((all, failing))) = sorted.await else { return };
        let failing = Arc::new(failing);
        let threads = all.iter().flat_map(|(_, seen)| seen.keys());
        named.extend(threads.filter_map(Thread::commit).cloned());
        let commits = Arc::new(self.commits.facts(self.settings.repository.as_ref(), named, forge).await);
        for (route, seen) in all {
            let name = route.name.clone();
            let instance = head.fleet.instance.name.clone();
            let (commits, reverted) = (Arc::clone(&commits), Arc::clone(&reverted));
            let failing = Arc::clone(&failing);
            let present =
                Present { route, instance, seen, commits, reverted, failing, tells_of_commits, is_settled };
            if let Some(running) = self.running.as_ref().and_then(|running| running.get(&name)) {
                running.present.send_replace(Some(Arc::new(present)));
            }
        }
    }
}

impl Running {
    fn start(worker: Worker) -> Self {
        let (present, receiver) = watch::channel(None);
        Self { present, task: AbortOnDropHandle::new(tokio::spawn(worker.run(receiver))) }
    }
}

/// The threads of one route; routes with the same selection share them.
type OfRoute = (Arc<Notification>, Arc<BTreeMap<Thread, Seen>>);

/// The threads of each route, and the failing apps. `None`: the overview is not rendered yet.
pub(super) fn seen_by(
    routes: &[Arc<Notification>],
    fleet: &Fleet,
    (overview, open): (&Overview, &BTreeSet<Revision>),
    promotions: &[Promotion],
    reverted: &BTreeSet<Revision>,
    now: Timestamp,
) -> Option<(Vec<OfRoute>, BTreeSet<AppId>)> {
    let moment = Moment::of(overview, open)?;
    let mut by_selector: BTreeMap<String, Arc<BTreeMap<Thread, Seen>>> = BTreeMap::new();
    let seen = routes.iter().map(|route| {
        let key = route.selector.of_what();
        if let Some(seen) = by_selector.get(&key) {
            return (Arc::clone(route), Arc::clone(seen));
        }
        let chosen = Chosen::of(route, fleet);
        let look = Look {
            wants_apps: route.selector.asks_for_apps(),
            wants_places: route.selector.asks_for_clusters() || route.selector.rings.is_some(),
            app: &|app| chosen.app(app),
            ring: &|ring| route.selector.selects_ring(ring),
            cluster: &|cluster| chosen.cluster(cluster),
        };
        let mut seen = moment.seen(&look, reverted, now);
        let is_for_it = |promotion: &&Promotion| {
            !route.selector.asks_for_clusters()
                && (look.ring)(Some(&promotion.ring))
                && promotion.apps.iter().any(|app| (look.app)(app))
        };
        seen.extend(promotions.iter().filter(is_for_it).map(of_promotion));
        if !look.wants_apps && !look.wants_places {
            let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
            let ending = fleet.servers.iter().filter(|server| server.ends_soon(today));
            seen.extend(ending.map(|server| of_server(server)));
        }
        let seen = Arc::new(seen);
        by_selector.insert(key, Arc::clone(&seen));
        (Arc::clone(route), seen)
    });
    Some((seen.collect(), moment.failing()))
}

/// The names and labels that a route selects; `None`: all.
pub(super) struct Chosen<'a> {
    fleet: &'a Fleet,
    selector: &'a TargetSelector,
    apps: Option<BTreeSet<&'a AppId>>,
    clusters: Option<BTreeSet<&'a ClusterName>>,
}

impl<'a> Chosen<'a> {
    pub fn of(route: &'a Notification, fleet: &'a Fleet) -> Self {
        let selector = &route.selector;
        let broken = fleet.broken.values().filter_map(|broken| broken.app.as_ref());
        let apps = fleet.apps.values().chain(broken).filter(|app| selector.selects_app(&app.id, &app.labels));
        let apps = selector.asks_for_apps().then(|| apps.map(|app| &app.id).collect());
        let facts = |cluster: &'a ClusterName, labels| ClusterFacts {
            name: cluster.as_str(),
            labels,
            ring: fleet.ring_of(cluster),
        };
        let clusters =
            fleet.clusters.iter().filter(|(name, it)| selector.selects_cluster(facts(name, &it.labels)));
        let clusters = selector.asks_for_clusters().then(|| clusters.map(|(name, _)| name).collect());
        Self { fleet, selector, apps, clusters }
    }

    pub fn app(&self, app: &AppId) -> bool {
        // Of a deleted or unreadable app only the name is known.
        let is_gone =
            || !self.fleet.apps.contains_key(app) && self.selector.selects_app(app, &BTreeMap::new());
        self.apps.as_ref().is_none_or(|apps| apps.contains(app) || is_gone())
    }

    pub fn cluster(&self, cluster: &ClusterName) -> bool {
        self.clusters.as_ref().is_none_or(|clusters| clusters.contains(cluster))
    }
}

fn of_promotion(promotion: &Promotion) -> (Thread, Seen) {
    let mut facts =
        Facts { text: promotion.title.clone(), url: Some(promotion.url.clone()), ..Facts::default() };
    facts.name_apps(promotion.apps.iter());
    (Thread::Promotion(promotion.number), Seen { condition: Condition::Is(promotion.happened), facts })
}

fn of_server(server: &Server) -> (Thread, Seen) {
    let ends = server.expires.to_string();
    let parts = [server.provider.as_deref(), server.address.as_deref(), server.cluster.as_deref()];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let facts = Facts { text, ends: Some(ends.clone()), ..Facts::default() };
    let thread = Thread::Server { name: server.name.clone(), ends };
    (thread, Seen { condition: Condition::Is(Happened::ServerEnds), facts })
}

/// The messages of commits, as far as notifications need them.
#[derive(Debug, Default)]
struct Commits {
    of: Option<Revision>,
    reverted: BTreeSet<Revision>,
    known: BTreeMap<Revision, CommitFacts>,
}

impl Commits {
    /// Reads the commits of a new head.
    async fn read(&mut self, repository: Option<&Repository>, head: &Revision) {
        let Some(repository) = repository.filter(|_| self.of.as_ref() != Some(head)) else { return };
        let Ok(reverted) = repository.reverted(head, RECENT).await else { return };
        if self.known.len() > MOST_COMMITS {
            self.known.clear();
        }
        (self.reverted, self.of) = (reverted, Some(head.clone()));
    }

    async fn facts(
        &mut self,
        repository: Option<&Repository>,
        wanted: BTreeSet<Revision>,
        forge: Option<&Forge>,
    ) -> BTreeMap<Revision, CommitFacts> {
        let mut all = BTreeMap::new();
        for revision in wanted {
            if let (false, Some(repository)) = (self.known.contains_key(&revision), repository) {
                let read = repository.recent(&revision, 1).await.ok().and_then(|mut read| read.pop());
                if let Some(commit) = read {
                    self.known.insert(revision.clone(), CommitFacts::of(commit));
                }
            }
            let known = self.known.get(&revision).cloned().unwrap_or_default();
            let url = forge.map(|forge| forge.commit_page(&revision));
            all.insert(revision, CommitFacts { url, ..known });
        }
        all
    }
}
