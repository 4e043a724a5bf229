//! Starts a worker for each route and gives it the current state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::NotificationSettings;
use super::due_messages::RouteState;
use super::message_text::CommitText;
use super::rate_limiter::RateLimiter;
use super::route_history::RouteStart;
use super::route_worker::{OpenCommits, RouteWorker};
use super::service::send;
use crate::controller::{ConfigHead, STARTUP_GRACE_PERIOD};
use crate::fleet::Fleet;
use crate::model::{
    AppId, ClusterFacts, ClusterName, ForgeSettings, InstanceMode, InventoryServer, Notification,
    NotificationPhase, Revision, TargetSelector,
};
use crate::report::Overview;
use crate::report::notices::{
    NoticeFacts, NotificationThread, OverviewIndex, RouteFilter, ThreadCondition, ThreadState,
};
use crate::source::ConfigRepository;

/// Changes within this time are sent together.
const SETTLE_TIME: Duration = Duration::from_millis(500);
/// The pause after an evaluation is this many times its duration, which bounds the CPU share.
const REST_FACTOR: u32 = 4;
/// Dates and credentials expire without an event.
const RESYNC_INTERVAL: Duration = Duration::from_secs(600);
/// Commits of the branch that are searched for reverts.
const MAX_REVERT_SEARCH: usize = 100;
const MAX_CACHED_COMMITS: usize = 1000;

#[derive(Debug)]
pub struct NotificationInputs {
    pub head: watch::Receiver<Option<Arc<ConfigHead>>>,
    pub overview: watch::Receiver<Arc<Overview>>,
    /// `None`: not read yet.
    pub promotions: watch::Receiver<Option<Arc<Vec<PromotionPull>>>>,
    /// Cancelled once this process leads.
    pub elected: CancellationToken,
    pub stop: CancellationToken,
}

/// A pull request of a promotion, as the forge returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromotionPull {
    pub number: u64,
    pub title: String,
    pub url: String,
    pub apps: Vec<AppId>,
    pub ring: String,
    /// Opened, held or merged.
    pub happened: NotificationPhase,
}

/// Runs until it is stopped.
pub async fn run(settings: NotificationSettings, mut inputs: NotificationInputs) {
    let stop = inputs.stop.clone();
    let work = async {
        inputs.elected.cancelled().await;
        let client = match send::client() {
            Ok(client) => client,
            Err(error) => {
                tracing::error!(error, "no notifications are sent: the HTTP client cannot be created");
                return;
            }
        };
        let mut routes = NotificationRoutes {
            settings: Arc::new(settings),
            client,
            running: None,
            started_at: Instant::now(),
            open_commits: OpenCommits::default(),
            rate_limiter: Arc::new(RateLimiter::default()),
            commits: CommitCache::default(),
        };
        loop {
            let began = Instant::now();
            routes.update_routes(&mut inputs).await;
            let rest = SETTLE_TIME.max(began.elapsed() * REST_FACTOR);
            tokio::select! {
                Ok(()) = inputs.head.changed() => {}
                Ok(()) = inputs.overview.changed() => {}
                Ok(()) = inputs.promotions.changed() => {}
                () = tokio::time::sleep(RESYNC_INTERVAL) => {}
            }
            tokio::time::sleep(rest).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

struct NotificationRoutes {
    settings: Arc<NotificationSettings>,
    client: reqwest::Client,
    /// `None` before the first evaluation.
    running: Option<BTreeMap<String, RunningRoute>>,
    started_at: Instant,
    open_commits: OpenCommits,
    rate_limiter: Arc<RateLimiter>,
    commits: CommitCache,
}

struct RunningRoute {
    state: watch::Sender<Option<Arc<RouteState>>>,
    /// Aborted when dropped.
    task: AbortOnDropHandle<()>,
}

impl NotificationRoutes {
    async fn update_routes(&mut self, inputs: &mut NotificationInputs) {
        let Some(head) = inputs.head.borrow_and_update().clone() else { return };
        let overview = inputs.overview.borrow_and_update().clone();
        let promotions = inputs.promotions.borrow_and_update().clone();
        let routes = head.fleet.notifications.clone();
        let names: BTreeSet<&str> = routes.iter().map(|route| route.name.as_str()).collect();
        // Histories stay on disk, so a route whose file had a mistake continues.
        let first_look = if self.running.is_none() { RouteStart::ProcessStart } else { RouteStart::NewRoute };
        let running = self.running.get_or_insert_default();
        running.retain(|name, running| names.contains(name.as_str()) && !running.task.is_finished());
        self.open_commits.lock().retain(|name, _| names.contains(name.as_str()));
        if routes.is_empty() {
            return;
        }
        // The histories name the open commits.
        for name in names.into_iter().filter(|name| !running.contains_key(*name)).collect::<Vec<_>>() {
            let worker = RouteWorker::new(
                Arc::clone(&self.settings),
                self.client.clone(),
                Arc::clone(&self.open_commits),
                Arc::clone(&self.rate_limiter),
                name,
                first_look,
            );
            running.insert(name.to_owned(), RunningRoute::start(worker));
        }
        let revision = &head.snapshot.revision;
        self.commits.read(self.settings.repository.as_ref(), revision).await;
        let reverted = Arc::new(self.commits.reverted.clone());
        let open: BTreeSet<Revision> = self.open_commits.lock().values().flatten().cloned().collect();
        let forge = head.fleet.instance.forge.as_ref();
        // A process that was on standby may still have an overview of that time.
        let is_of_head =
            overview.mode == head.fleet.instance.mode && overview.revision.as_ref() == Some(revision);
        let is_known = overview.is_complete() && (forge.is_none() || promotions.is_some());
        // What is unknown by then may stay unknown: a kind that RBAC hides, a forge that is down.
        let is_settled = is_of_head && (is_known || self.started_at.elapsed() > STARTUP_GRACE_PERIOD);
        let tells_of_commits = overview.mode == InstanceMode::Enforce;
        let mut named = open.clone();
        let (fleet, now, of_seen) = (Arc::clone(&head.fleet), Timestamp::now(), Arc::clone(&reverted));
        let promotions = promotions.unwrap_or_default();
        let known =
            move || route_thread_states(&routes, &fleet, (&overview, &open), &promotions, &of_seen, now);
        let sorted = tokio::task::spawn_blocking(known);
        let Ok(Some((all, failing))) = sorted.await else { return };
        let failing = Arc::new(failing);
        let threads = all.iter().flat_map(|(_, seen)| seen.keys());
        named.extend(threads.filter_map(NotificationThread::commit).cloned());
        let commits = Arc::new(self.commits.facts(self.settings.repository.as_ref(), named, forge).await);
        for (route, seen) in all {
            let name = route.name.clone();
            let instance = head.fleet.instance.name.clone();
            let (commits, reverted) = (Arc::clone(&commits), Arc::clone(&reverted));
            let failing = Arc::clone(&failing);
            let present = RouteState {
                route,
                instance,
                threads: seen,
                commits,
                reverted,
                failing,
                reports_commits: tells_of_commits,
                is_settled,
            };
            if let Some(running) = self.running.as_ref().and_then(|running| running.get(&name)) {
                running.state.send_replace(Some(Arc::new(present)));
            }
        }
    }
}

impl RunningRoute {
    fn start(worker: RouteWorker) -> Self {
        let (present, receiver) = watch::channel(None);
        Self { state: present, task: AbortOnDropHandle::new(tokio::spawn(worker.run(receiver))) }
    }
}

/// The threads of one route; routes with the same selection share them.
type RouteThreads = (Arc<Notification>, Arc<BTreeMap<NotificationThread, ThreadState>>);

/// The threads of each route, and the failing apps. `None`: the overview is not rendered yet.
pub(super) fn route_thread_states(
    routes: &[Arc<Notification>],
    fleet: &Fleet,
    (overview, open): (&Overview, &BTreeSet<Revision>),
    promotions: &[PromotionPull],
    reverted: &BTreeSet<Revision>,
    now: Timestamp,
) -> Option<(Vec<RouteThreads>, BTreeSet<AppId>)> {
    let moment = OverviewIndex::of(overview, open)?;
    let mut by_selector: BTreeMap<String, Arc<BTreeMap<NotificationThread, ThreadState>>> = BTreeMap::new();
    let seen = routes.iter().map(|route| {
        let key = route.selector.grouping_key();
        if let Some(seen) = by_selector.get(&key) {
            return (Arc::clone(route), Arc::clone(seen));
        }
        let chosen = RouteSelection::of(route, fleet);
        let look = RouteFilter {
            wants_apps: route.selector.has_app_criteria(),
            wants_rings_or_clusters: route.selector.has_cluster_criteria() || route.selector.rings.is_some(),
            app: &|app| chosen.selects_app(app),
            ring: &|ring| route.selector.selects_ring(ring),
            cluster: &|cluster| chosen.selects_cluster(cluster),
        };
        let mut seen = moment.thread_states(&look, reverted, now);
        let is_for_it = |promotion: &&PromotionPull| {
            !route.selector.has_cluster_criteria()
                && (look.ring)(Some(&promotion.ring))
                && promotion.apps.iter().any(|app| (look.app)(app))
        };
        seen.extend(promotions.iter().filter(is_for_it).map(promotion_thread));
        if !look.wants_apps && !look.wants_rings_or_clusters {
            let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
            let ending = fleet.servers.iter().filter(|server| server.ends_soon(today));
            seen.extend(ending.map(|server| server_thread(server)));
        }
        let seen = Arc::new(seen);
        by_selector.insert(key, Arc::clone(&seen));
        (Arc::clone(route), seen)
    });
    Some((seen.collect(), moment.failing_apps()))
}

/// The names and labels that a route selects; `None`: all.
pub(super) struct RouteSelection<'a> {
    fleet: &'a Fleet,
    selector: &'a TargetSelector,
    apps: Option<BTreeSet<&'a AppId>>,
    clusters: Option<BTreeSet<&'a ClusterName>>,
}

impl<'a> RouteSelection<'a> {
    pub fn of(route: &'a Notification, fleet: &'a Fleet) -> Self {
        let selector = &route.selector;
        let broken = fleet.broken_apps.values().filter_map(|broken| broken.app.as_ref());
        let apps = fleet.apps.values().chain(broken).filter(|app| selector.selects_app(&app.id, &app.labels));
        let apps = selector.has_app_criteria().then(|| apps.map(|app| &app.id).collect());
        let facts = |cluster: &'a ClusterName, labels| ClusterFacts {
            name: cluster.as_str(),
            labels,
            ring: fleet.ring_of(cluster),
        };
        let clusters =
            fleet.clusters.iter().filter(|(name, it)| selector.selects_cluster(facts(name, &it.labels)));
        let clusters = selector.has_cluster_criteria().then(|| clusters.map(|(name, _)| name).collect());
        Self { fleet, selector, apps, clusters }
    }

    pub fn selects_app(&self, app: &AppId) -> bool {
        // Of a deleted or unreadable app only the name is known.
        let is_gone =
            || !self.fleet.apps.contains_key(app) && self.selector.selects_app(app, &BTreeMap::new());
        self.apps.as_ref().is_none_or(|apps| apps.contains(app) || is_gone())
    }

    pub fn selects_cluster(&self, cluster: &ClusterName) -> bool {
        self.clusters.as_ref().is_none_or(|clusters| clusters.contains(cluster))
    }
}

fn promotion_thread(promotion: &PromotionPull) -> (NotificationThread, ThreadState) {
    let mut facts = NoticeFacts {
        text: promotion.title.clone(),
        url: Some(promotion.url.clone()),
        ..NoticeFacts::default()
    };
    facts.set_apps(promotion.apps.iter());
    (
        NotificationThread::Promotion(promotion.number),
        ThreadState { condition: ThreadCondition::Is(promotion.happened), facts },
    )
}

fn server_thread(server: &InventoryServer) -> (NotificationThread, ThreadState) {
    let ends = server.expires.to_string();
    let parts = [server.provider.as_deref(), server.address.as_deref(), server.cluster.as_deref()];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let facts = NoticeFacts { text, ends: Some(ends.clone()), ..NoticeFacts::default() };
    let thread = NotificationThread::Server { name: server.name.clone(), ends };
    (thread, ThreadState { condition: ThreadCondition::Is(NotificationPhase::ServerEnds), facts })
}

/// The messages of commits, as far as notifications need them.
#[derive(Debug, Default)]
struct CommitCache {
    head_revision: Option<Revision>,
    reverted: BTreeSet<Revision>,
    known: BTreeMap<Revision, CommitText>,
}

impl CommitCache {
    /// Reads the commits of a new head.
    async fn read(&mut self, repository: Option<&ConfigRepository>, head: &Revision) {
        let Some(repository) = repository.filter(|_| self.head_revision.as_ref() != Some(head)) else {
            return;
        };
        let Ok(reverted) = repository.reverted_commits(head, MAX_REVERT_SEARCH).await else { return };
        if self.known.len() > MAX_CACHED_COMMITS {
            self.known.clear();
        }
        (self.reverted, self.head_revision) = (reverted, Some(head.clone()));
    }

    async fn facts(
        &mut self,
        repository: Option<&ConfigRepository>,
        wanted: BTreeSet<Revision>,
        forge: Option<&ForgeSettings>,
    ) -> BTreeMap<Revision, CommitText> {
        let mut all = BTreeMap::new();
        for revision in wanted {
            if let (false, Some(repository)) = (self.known.contains_key(&revision), repository) {
                let read = repository.recent_commits(&revision, 1).await.ok().and_then(|mut read| read.pop());
                if let Some(commit) = read {
                    self.known.insert(revision.clone(), CommitText::of(commit));
                }
            }
            let known = self.known.get(&revision).cloned().unwrap_or_default();
            let url = forge.map(|forge| forge.commit_url(&revision));
            all.insert(revision, CommitText { url, ..known });
        }
        all
    }
}
