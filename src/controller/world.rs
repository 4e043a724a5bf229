//! Everything that the controller knows, and how each event changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::cluster_entry::{ClusterEntry, Reach, Touched};
use super::event::{ClusterNews, Event, LoadError};
use super::load::{self, Loaded, Renders};
use super::supervisor::Supervisor;
use super::target::{Failure, TargetEntry};
use super::{Ending, Settings, Until, secrets};
use crate::apply::{Done, NotDone};
use crate::cluster::Deleted;
use crate::fleet::{Fleet, Target};
use crate::forge::{self, Hint, State};
use crate::model::{ClusterName, Forge, Instance, Kind, Mode, ObjectId, Revision};
use crate::reconcile::{self, Found, Outcome};
use crate::report::outbox::{Order, Outbox};
use crate::report::{Overview, Phase, statuses};
use crate::source::ErrorKind;

/// The first pause before Git is asked again, and the longest when only a commit is missing.
const RELOAD_FIRST: Duration = Duration::from_secs(1);
const RELOAD_BEHIND: Duration = Duration::from_secs(8);

pub struct World {
    pub(super) settings: Settings,
    pub(super) events: mpsc::Sender<Event>,
    /// A load is under way.
    loading: bool,
    /// Asked for again while a load was under way.
    load_again: bool,
    /// Git is asked again then: it could not be read, or a hook named a commit that is not there yet.
    pub(super) reload_at: Option<Instant>,
    /// The commit that a hook spoke of, until it is there or given up.
    awaited: Option<String>,
    /// The pause before that; it doubles.
    reload_pause: Duration,
    pub(super) load_error: Option<LoadError>,
    pub(super) head: Option<Revision>,
    pub(super) rendered_head: Option<Revision>,
    pub(super) fleet: Option<Arc<Fleet>>,
    pub(super) instance: Arc<Instance>,
    pub(super) clusters: BTreeMap<ClusterName, ClusterEntry>,
    /// Clusters whose file vanished while this process ran: their objects are left as they are.
    pub(super) dropped: BTreeSet<ClusterName>,
    pub(super) targets: BTreeMap<Target, TargetEntry>,
    /// For each error outside a target: the commit that changed its file last.
    pub(super) blamed: Vec<(Revision, crate::model::Diagnostic)>,
    /// Commits whose statuses are kept, newest first.
    pub(super) told: Vec<Revision>,
    /// Objects that Git no longer wants: the head at which that was first seen.
    pub(super) vanished: BTreeMap<(ClusterName, ObjectId), Revision>,
    /// Deletes that were asked for at this head.
    pub(super) deleted: BTreeMap<(ClusterName, ObjectId), Asked>,
    pub(super) deleting: BTreeSet<(ClusterName, ObjectId)>,
    /// The last decision about deletes.
    pub(super) prune: super::prune::Pruning,
    outbox: Option<(Forge, Outbox)>,
    pub(super) stopping: bool,
    pub(super) changed: bool,
}

/// Why a delete was asked for: what nobody approved counts against the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    UnderCap,
    Approved,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World at {:?}, {} targets", self.head, self.targets.len())
    }
}

impl World {
    pub fn new(settings: Settings, events: mpsc::Sender<Event>) -> Self {
        Self {
            settings,
            events,
            loading: false,
            load_again: false,
            reload_at: None,
            awaited: None,
            reload_pause: RELOAD_FIRST,
            load_error: None,
            head: None,
            rendered_head: None,
            fleet: None,
            instance: Arc::default(),
            clusters: BTreeMap::new(),
            dropped: BTreeSet::new(),
            targets: BTreeMap::new(),
            blamed: Vec::new(),
            told: Vec::new(),
            vanished: BTreeMap::new(),
            deleted: BTreeMap::new(),
            deleting: BTreeSet::new(),
            prune: super::prune::Pruning::default(),
            outbox: None,
            stopping: false,
            changed: true,
        }
    }

    pub fn handle(&mut self, event: Event) {
        self.changed = true;
        match event {
            Event::Wake => self.load(),
            Event::Hint(hint) => self.hinted(hint),
            Event::Loaded(Ok(loaded)) => self.loaded(*loaded),
            Event::Loaded(Err(error)) => self.not_loaded(error),
            Event::Rendered(renders) => self.rendered(*renders),
            Event::Cluster { cluster, epoch, news } => self.cluster_news(&cluster, epoch, news),
            Event::Reconciled { target, epoch, outcome } => self.reconciled(&target, epoch, *outcome),
            Event::Deleted { target, object, result } => self.object_deleted(&target, &object, result),
            Event::Explained { target, cause } => self.explained(&target, cause),
            Event::UnderWay(revision) => self.already_told(&revision),
            Event::Recalled => self.open_posting(),
        }
    }

    fn hinted(&mut self, hint: Hint) {
        if hint.after.is_some() {
            self.awaited = hint.after;
            self.reload_pause = RELOAD_FIRST;
        }
        self.load();
    }

    /// Asks Git, once at a time.
    fn load(&mut self) {
        if self.stopping {
            return;
        }
        if self.loading {
            self.load_again = true;
            return;
        }
        self.loading = true;
        let (origin, known, events) = (self.settings.origin.clone(), self.head.clone(), self.events.clone());
        let after = self.awaited.clone();
        tokio::spawn(async move {
            let loaded = load::load(&origin, known.as_ref(), after.as_deref()).await;
            // A closed queue means that the controller has stopped: nobody is left to tell.
            let _ = events.send(Event::Loaded(loaded.map(Box::new))).await;
        });
    }

    fn done_loading(&mut self) {
        self.loading = false;
        if std::mem::take(&mut self.load_again) {
            self.load();
        }
    }

    /// After 1, 2, 4, 8 s … until the pause is longer than `longest`: then the next poll does it.
    fn reload_later(&mut self, longest: Duration) {
        self.reload_at = (self.reload_pause <= longest).then(|| Instant::now() + self.reload_pause);
        self.reload_pause = if self.reload_at.is_some() { self.reload_pause * 2 } else { RELOAD_FIRST };
    }

    fn not_loaded(&mut self, error: LoadError) {
        // At the start nothing runs yet, and whoever started it shows the error.
        if self.fleet.is_some() {
            tracing::warn!(
                error = error.message,
                "the config repository could not be read; what runs goes on"
            );
        }
        self.load_error = Some(error);
        self.reload_later(self.instance.poll);
        self.done_loading();
    }

    fn loaded(&mut self, loaded: Loaded) {
        self.load_error = None;
        // The commit that a hook spoke of is not there yet: the forge's own replication is behind.
        if loaded.behind {
            self.reload_later(RELOAD_BEHIND);
        } else {
            self.reload_at = None;
            self.reload_pause = RELOAD_FIRST;
        }
        // A hook that came while this was read has not been asked about yet.
        if self.reload_at.is_none() && !self.load_again {
            self.awaited = None;
        }
        if let Some(news) = loaded.news {
            let fleet = Arc::new(news.fleet);
            tracing::info!(
                revision = news.revision.short(),
                mistakes = fleet.diagnostics.len(),
                "read the config repository"
            );
            self.tell_about(&news.revision, &news.recent);
            self.head = Some(news.revision.clone());
            self.deleted.clear();
            self.blamed = load::blame(&fleet, &news.snapshot);
            self.take_fleet(Arc::clone(&fleet));
            self.open_outbox(&news.recent);
            self.post_first(&news.revision);
            load::render_in_background(news.revision, fleet, news.snapshot, self.events.clone());
        }
        self.done_loading();
    }

    /// Which commits get statuses: this head, those between it and the one before, and what was told before.
    fn tell_about(&mut self, head: &Revision, recent: &[Revision]) {
        let newer = match &self.head {
            Some(known) => recent.iter().take_while(|commit| *commit != known).cloned().collect(),
            None => vec![head.clone()],
        };
        self.told.retain(|commit| !newer.contains(commit));
        self.told.splice(0..0, newer);
        self.told.truncate(load::RECENT);
    }

    fn take_fleet(&mut self, fleet: Arc<Fleet>) {
        if fleet.is_usable() {
            self.instance = Arc::new(fleet.instance.clone());
        }
        let gone = self.clusters.keys().filter(|name| !fleet.clusters.contains_key(*name));
        self.dropped.extend(gone.cloned());
        self.dropped.retain(|name| !fleet.clusters.contains_key(name));
        self.clusters.retain(|name, _| fleet.clusters.contains_key(name));
        for (name, cluster) in &fleet.clusters {
            match self.clusters.get_mut(name) {
                Some(entry) if entry.cluster.connection == cluster.connection => {
                    entry.cluster = cluster.clone()
                }
                _ => {
                    let (rediscover, asked) = watch::channel(0);
                    let supervisor = Supervisor {
                        cluster: name.clone(),
                        link: (self.settings.links)(cluster),
                        instance: self.instance.name.clone(),
                        events: self.events.clone(),
                        rediscover: asked,
                    };
                    let task = tokio::spawn(supervisor.run());
                    self.clusters.insert(name.clone(), ClusterEntry::new(cluster.clone(), task, rediscover));
                }
            }
        }
        self.fleet = Some(fleet);
    }

    fn rendered(&mut self, renders: Renders) {
        if self.head.as_ref() != Some(&renders.revision) {
            // A newer revision came while this one was rendered.
            return;
        }
        let Some(fleet) = self.fleet.clone() else { return };
        self.rendered_head = Some(renders.revision.clone());
        self.targets.retain(|id, entry| {
            let stays = renders.targets.contains_key(id);
            if let (false, Some(running)) = (stays, &entry.running) {
                running.cancel();
            }
            stays
        });
        for (id, (revision, render)) in renders.targets {
            let Some(app) = fleet.apps.get(&id.app).cloned().map(Arc::new) else { continue };
            match self.targets.get_mut(&id) {
                Some(entry) => entry.take_over(app, revision, render),
                None => {
                    self.targets.insert(id, TargetEntry::new(app, revision, render));
                }
            }
        }
        let names: Vec<ClusterName> = self.clusters.keys().cloned().collect();
        for name in names {
            self.relate(&name);
            self.watch_rendered(&name);
        }
    }

    /// Watches every kind that is rendered for a cluster.
    fn watch_rendered(&mut self, name: &ClusterName) {
        let kinds: BTreeSet<_> = self
            .targets
            .iter()
            .filter(|(id, _)| id.cluster == *name)
            .filter_map(|(_, entry)| entry.render.as_ref().ok())
            .flat_map(|rendered| rendered.objects.iter().map(|object| object.kind.clone()))
            .collect();
        if let Some(entry) = self.clusters.get_mut(name) {
            entry.watch(kinds, &self.instance.name, &self.events);
        }
    }

    fn cluster_news(&mut self, name: &ClusterName, epoch: u64, news: ClusterNews) {
        let Some(entry) = self.clusters.get_mut(name) else { return };
        match news {
            ClusterNews::Up { client, catalog, in_use } => {
                tracing::info!(cluster = %name, "connected");
                entry.connected(epoch, client, catalog);
                entry.watch(in_use, &self.instance.name, &self.events);
                self.watch_rendered(name);
                self.touch(name, &Touched::Everything);
            }
            ClusterNews::Serves(catalog) => {
                entry.serves(catalog);
                self.watch_rendered(name);
                self.touch(name, &Touched::Everything);
            }
            ClusterNews::Down { detail, attempts, lasting } => {
                if entry.reach == Reach::Ready || attempts == 1 {
                    tracing::warn!(cluster = %name, detail, "the cluster does not answer; the others go on");
                }
                entry.reach = Reach::Offline { detail, attempts, lasting };
            }
            ClusterNews::Watch { kind, change } => {
                if entry.epoch != epoch {
                    return;
                }
                let touched = entry.watched(&kind, change, &self.instance.name);
                if &*kind.kind == "CustomResourceDefinition" && touched != Touched::Nothing {
                    entry.ask_what_it_serves();
                }
                // A namespace opens the way for every app that lives in it.
                let opens = &*kind.kind == "Namespace" && touched != Touched::Nothing;
                self.touch(name, if opens { &Touched::Everything } else { &touched });
            }
        }
    }

    /// Looks again at what an event may concern.
    fn touch(&mut self, cluster: &ClusterName, touched: &Touched) {
        if *touched == Touched::Everything {
            self.relate(cluster);
        }
        for (id, entry) in self.targets.iter_mut().filter(|(id, _)| id.cluster == *cluster) {
            match touched {
                Touched::Nothing => {}
                Touched::App(app) => {
                    if id.app.to_string() == **app {
                        entry.due = true;
                    }
                }
                Touched::Everything => {
                    entry.due = true;
                    if entry.failure.as_ref().is_some_and(|failure| failure.unreachable) {
                        entry.went_through();
                    }
                }
            }
        }
    }

    fn reconciled(&mut self, target: &Target, epoch: u64, outcome: Outcome) {
        let now = Instant::now();
        let Some(cluster) = self.clusters.get_mut(&target.cluster) else { return };
        cluster.running = cluster.running.saturating_sub(1);
        let current = cluster.epoch == epoch;
        let mut opened = false;
        if current {
            for (id, found) in &outcome.lookups {
                match found {
                    Found::Ours(live) => {
                        cluster.see(id.clone(), (**live).clone());
                    }
                    found => reconcile::note(&mut cluster.observation, id, found),
                }
            }
        }
        let mut failure = outcome.error.as_ref().map(failure_of);
        let mut cancelled = false;
        for receipt in outcome.receipts {
            match receipt.result {
                Ok(Done::Applied(object)) => {
                    if let Some(kind) = Kind::of(&object).filter(|_| current) {
                        opened |= &*receipt.object.kind == "Namespace";
                        cluster.see_object(&kind, *object, &self.instance.name);
                    }
                }
                Err(not_done) => {
                    // It may have come into being all the same, or be somebody else's by now.
                    cluster.observation.absent.remove(&receipt.object);
                    match not_done {
                        NotDone::Failed(error) => {
                            tracing::warn!(cluster = %target.cluster, app = %target.app, %error, "not applied");
                            failure.get_or_insert(failure_of(&error));
                        }
                        NotDone::Cancelled => cancelled = true,
                        NotDone::EarlierFailed => {}
                    }
                }
            }
        }
        if opened {
            self.touch(&target.cluster, &Touched::Everything);
        }
        let Some(entry) = self.targets.get_mut(target) else { return };
        entry.running = None;
        entry.due = true;
        match failure {
            Some(failure) => entry.failed(failure, now),
            None if !cancelled => entry.went_through(),
            None => {}
        }
        entry.plan = Some(Arc::new(outcome.plan));
    }

    fn explained(&mut self, target: &Target, cause: Option<crate::health::Cause>) {
        let Some(entry) = self.targets.get_mut(target) else { return };
        entry.asking = false;
        // A decisive cause stays for its revision: between two attempts a pod looks milder for a moment.
        if entry.cause.as_ref().is_none_or(|known| !known.decisive)
            || cause.as_ref().is_some_and(|it| it.decisive)
        {
            entry.cause = cause;
        }
    }

    fn object_deleted(
        &mut self,
        target: &Target,
        object: &ObjectId,
        result: Result<Deleted, crate::cluster::Error>,
    ) {
        let key = (target.cluster.clone(), object.clone());
        self.deleting.remove(&key);
        match result {
            Ok(Deleted::Accepted) => {
                tracing::info!(cluster = %target.cluster, app = %target.app, %object, "deleted");
            }
            Ok(Deleted::Gone) => {
                if let Some(entry) = self.clusters.get_mut(&target.cluster) {
                    entry.observation.objects.remove(object);
                }
            }
            // The watch brings its new state, and the next decision is made from that.
            Ok(Deleted::Changed) => {
                self.deleted.remove(&key);
            }
            Err(error) => {
                tracing::warn!(cluster = %target.cluster, app = %target.app, %error, "not deleted");
                self.deleted.remove(&key);
                self.prune.retry_at = Some(Instant::now() + Duration::from_secs(5));
            }
        }
    }

    // ---- the forge ----

    /// Follows the forge that the instance names.
    fn open_outbox(&mut self, recent: &[Revision]) {
        let Some(wanted) = self.instance.forge.as_ref().filter(|_| self.settings.report) else {
            self.outbox = None;
            return;
        };
        if self.outbox.as_ref().is_some_and(|(known, _)| known == wanted) {
            return;
        }
        let token =
            wanted.token.as_ref().map(secrets::resolve).transpose().map_err(|error| error.to_string());
        let client = token.and_then(|token| {
            forge::Client::gitea(&wanted.url, &wanted.repository, token).map_err(|error| error.to_string())
        });
        self.outbox = match client {
            Ok(client) => {
                let outbox = Outbox::start(client.clone());
                let prefix = format!("{}/deploy", self.instance.status_prefix);
                recall(client, outbox.clone(), prefix, recent.to_vec(), self.events.clone());
                Some((wanted.clone(), outbox))
            }
            Err(error) => {
                tracing::error!(error, "commit statuses are not written");
                None
            }
        };
    }

    /// Every context of a new head is pending before anything is rendered.
    fn post_first(&self, revision: &Revision) {
        if let Some((_, outbox)) = &self.outbox {
            let overview = self.overview();
            outbox.send(Order::First(statuses::first(&overview, revision)));
        }
    }

    /// First what shall be said now, with all commits that are still under way: else they would be
    /// superseded for a moment.
    fn open_posting(&self) {
        if let Some((_, outbox)) = &self.outbox {
            self.post(&self.overview());
            outbox.send(Order::Open);
        }
    }

    /// A commit that was under way when an earlier process ended is told to its end.
    fn already_told(&mut self, revision: &Revision) {
        if !self.told.contains(revision) {
            self.told.push(revision.clone());
        }
    }

    /// Tells the forge what is known now.
    pub(super) fn post(&self, overview: &Overview) {
        if let (Some((_, outbox)), Some(head)) = (&self.outbox, &self.head)
            && self.rendered_head.as_ref() == Some(head)
        {
            outbox.send(Order::Desired { head: head.clone(), statuses: statuses::desired(overview) });
        }
    }

    /// Waits for the forge; what it still tells of recent commits counts.
    pub async fn flush(&mut self, events: &mut mpsc::Receiver<Event>, patience: Duration) {
        let Some((_, outbox)) = &self.outbox else { return };
        let outbox = outbox.clone();
        let mut flushed = std::pin::pin!(outbox.flush(patience));
        loop {
            tokio::select! {
                result = &mut flushed => {
                    if let Err(error) = result {
                        tracing::warn!(error, "commit statuses were not posted; the next run posts them");
                    }
                    return;
                }
                Some(event) = events.recv() => {
                    if matches!(event, Event::UnderWay(_) | Event::Recalled) {
                        self.handle(event);
                    }
                }
            }
        }
    }

    // ---- the end ----

    pub fn cancel(&mut self) {
        self.stopping = true;
        for entry in self.targets.values().filter_map(|entry| entry.running.as_ref()) {
            entry.cancel();
        }
    }

    pub fn is_busy(&self) -> bool {
        self.clusters.values().any(|entry| entry.running > 0) || !self.deleting.is_empty()
    }

    /// Has anything changed since this was asked last?
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    pub fn instance(&self) -> Option<Arc<Instance>> {
        self.fleet.as_ref().map(|_| Arc::clone(&self.instance))
    }

    pub(super) fn mode(&self) -> Mode {
        self.settings.mode.unwrap_or(self.instance.mode)
    }

    /// Is this run over?
    pub fn ending(&self) -> Option<Ending> {
        if let (None, Some(error)) = (&self.fleet, &self.load_error) {
            let lasting = matches!(error.kind, ErrorKind::Configuration | ErrorKind::Authentication);
            if lasting || matches!(self.settings.until, Until::Settled { .. }) {
                return Some(Ending::Unreadable(error.clone()));
            }
        }
        let settled = matches!(self.settings.until, Until::Settled { .. }) && self.is_settled();
        settled.then_some(Ending::Settled)
    }

    fn is_settled(&self) -> bool {
        if self.loading || self.head.is_none() || self.head != self.rendered_head || self.is_busy() {
            return false;
        }
        let phases: Vec<Phase> = self.targets.keys().map(|id| self.phase(id).0).collect();
        let under_way = phases.iter().any(|phase| matches!(phase, Phase::Pending | Phase::Progressing));
        !under_way && self.clusters.values().all(Self::is_cluster_settled) && self.is_prune_settled()
    }

    /// Observed whole, or given up on for this run.
    fn is_cluster_settled(entry: &ClusterEntry) -> bool {
        match &entry.reach {
            Reach::Connecting => false,
            Reach::Ready => entry.is_complete(),
            Reach::Offline { attempts, lasting, .. } => *lasting || *attempts >= 3,
        }
    }
}

fn failure_of(error: &crate::cluster::Error) -> Failure {
    Failure { text: error.to_string(), unreachable: error.is_unreachable(), lasting: !error.is_transient() }
}

/// Reads back what was said of recent commits before this process began, then lets the outbox post:
/// what the forge already says is not said again.
/// Only our own contexts: others' are none of our business.
fn recall(
    forge: forge::Client,
    outbox: Outbox,
    prefix: String,
    recent: Vec<Revision>,
    events: mpsc::Sender<Event>,
) {
    tokio::spawn(async move {
        for revision in recent {
            // A forge that does not answer now is no reason to keep silent later.
            let Ok(mut statuses) = forge.statuses(&revision).await else { break };
            statuses.retain(|status| {
                status.context == prefix || status.context.starts_with(&format!("{prefix}/"))
            });
            let open = statuses
                .iter()
                .any(|status| status.state == State::Pending || status.state == State::Failure);
            outbox.send(Order::Known { revision: revision.clone(), statuses });
            if open && events.send(Event::UnderWay(revision)).await.is_err() {
                return;
            }
        }
        // A closed queue means that the controller has stopped: nobody is left to tell.
        let _ = events.send(Event::Recalled).await;
    });
}
