//! Everything that the controller knows, and how each event changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::agreements::Agreements;
use super::apps::{Apps, Heads};
use super::cause_searches::CauseSearches;
use super::cluster_entry::{ClusterEntry, Reach};
use super::dropped::Dropped;
use super::event::{Event, LoadError};
use super::head_renders::{Head, HeadRenders};
use super::in_flight::InFlight;
use super::listing::Listing;
use super::load::{self, Ask, Loaded};
use super::mistakes::log_mistakes;
use super::posting::Telling;
use super::registry::Registry;
use super::target::TargetEntry;
use super::targets::{Agenda, Targets};
use super::wanted::Wanted;
use super::went_back::WentBack;
use super::words::Words;
use super::{ConfigHead, Ending, Settings, Until};
use crate::fleet::{Fleet, Target};
use crate::manifest;
use crate::model::{App, ClusterName, Instance, Mode, Revision, Snapshot};
use crate::plan::{ApplySettings, Reason};
use crate::reconcile::History;
use crate::render::{Admission, Renders};
use crate::report::{Overview, Phase, Writes};
use crate::rollout::AllOutcomes;
use crate::source::ErrorKind;

/// The first pause before Git is asked again, and the longest when only a commit is missing.
pub(super) const RELOAD_FIRST: Duration = Duration::from_secs(1);
const RELOAD_BEHIND: Duration = Duration::from_secs(8);

const OVERVIEW_OF_A_TARGET: Duration = Duration::from_micros(200);
const LONGEST_OVERVIEW: Duration = Duration::from_secs(2);

pub struct World {
    pub(super) settings: Settings,
    pub(super) events: mpsc::Sender<Event>,
    /// A load is under way.
    loading: bool,
    /// Asked for again while a load was under way.
    load_again: bool,
    /// Git is asked again then: it could not be read, a hook named a commit that is not there yet, or its branch went back.
    pub(super) reload_at: Option<Instant>,
    /// The pause before that; it doubles.
    reload_pause: Duration,
    /// A commit that a hook spoke of, and the pause before it is asked for again.
    awaited: Option<String>,
    awaited_pause: Duration,
    went_back: WentBack,
    pub(super) load_error: Option<LoadError>,
    pub(super) head: Option<Revision>,
    pub(super) rendered_head: Option<Revision>,
    /// Since the head is the head.
    pub(super) writes: Writes,
    /// The head says something else of the instance or of clusters, and is not rendered yet.
    pub(super) ground_moved: bool,
    pub(super) fleet: Option<Arc<Fleet>>,
    pub(super) instance: Arc<Instance>,
    /// What earlier revisions were, for whoever has to know.
    pub(super) history: Arc<History>,
    /// What was read in earlier revisions.
    pub(super) reading: Arc<Mutex<manifest::Memory>>,
    /// Who registers clusters beside the files.
    registry: Arc<Registry>,
    /// Shared by the watches of all clusters.
    pub(super) listing: Listing,
    pub(super) clusters: BTreeMap<ClusterName, ClusterEntry>,
    /// Clusters that nothing registers any more: their objects are left as they are.
    pub(super) dropped: BTreeMap<ClusterName, Dropped>,
    pub(super) targets: Targets,
    /// Apps in waves.
    pub(super) apps: Apps,
    /// Which of them are looked at next.
    pub(super) agenda: Agenda,
    /// For which workloads pods are listed, and when.
    pub(super) searches: CauseSearches,
    pub(super) words: Words,
    /// The files of the head.
    pub(super) snapshot: Option<Arc<Snapshot>>,
    pub(super) renders: HeadRenders,
    /// For each error outside a target: the commit that changed its file last.
    pub(super) blamed: Vec<(Revision, crate::model::Diagnostic)>,
    /// Commits whose statuses are kept, newest first.
    pub(super) told: Vec<Revision>,
    /// Deletes: decided, asked for, refused.
    pub(super) prune: super::prune::Pruning,
    pub(super) policing: super::admission::Policing,
    pub(super) telling: Telling,
    pub(super) agreements: Agreements,
    /// Epochs of clusters grow over all of them: news of an entry that was replaced is never taken for its own.
    pub(super) epochs: u64,
    /// Reconciliations and deletes that have not come back.
    pub(super) in_flight: InFlight,
    pub(super) stopping: bool,
    pub(super) changed: bool,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World at {:?}, {} targets", self.head, self.targets.len())
    }
}

impl World {
    pub fn new(settings: Settings, events: mpsc::Sender<Event>) -> Self {
        let (charts, keys) = (Arc::clone(&settings.charts), settings.keys.clone());
        let history = Arc::new(History::new(settings.origin.history(), charts, keys));
        let in_flight = InFlight::new(settings.permit.narrowed());
        Self {
            registry: Arc::new(Registry::new(settings.home.clone())),
            settings,
            events,
            loading: false,
            load_again: false,
            reload_at: None,
            reload_pause: RELOAD_FIRST,
            awaited: None,
            awaited_pause: RELOAD_FIRST,
            went_back: WentBack::default(),
            load_error: None,
            head: None,
            rendered_head: None,
            writes: Writes::default(),
            ground_moved: false,
            fleet: None,
            instance: Arc::default(),
            history,
            reading: Arc::default(),
            listing: Listing::default(),
            clusters: BTreeMap::new(),
            dropped: BTreeMap::new(),
            targets: Targets::default(),
            apps: Apps::new(),
            agenda: Agenda::default(),
            searches: CauseSearches::default(),
            words: Words::default(),
            snapshot: None,
            renders: HeadRenders::default(),
            blamed: Vec::new(),
            told: Vec::new(),
            prune: super::prune::Pruning::default(),
            policing: super::admission::Policing::default(),
            telling: Telling::default(),
            agreements: Agreements::new(),
            epochs: 0,
            in_flight,
            stopping: false,
            changed: true,
        }
    }

    pub fn handle(&mut self, event: Event) {
        self.changed = true;
        match event {
            Event::Wake | Event::Registered => self.load(),
            Event::Elected => self.elected(),
            Event::Hint(hint) => {
                self.awaited = hint.after;
                self.awaited_pause = RELOAD_FIRST;
                self.load();
            }
            Event::Loaded(Ok(loaded)) => self.loaded(*loaded),
            Event::Loaded(Err(error)) => self.not_loaded(error),
            Event::Rendered { number, renders, heads, admission } => {
                self.rendered(number, *renders, &heads, admission);
            }
            Event::RenderCrashed { number } => {
                tracing::error!(
                    "the renderer crashed, which is a fault of tutti: the next commit is rendered again"
                );
                self.renders.crashed(number);
            }
            Event::ChartArrived => {
                if self.renders.chart_arrived() {
                    self.render();
                }
            }
            Event::Agreed { asked, answer } => {
                let apps = self.agreements.answered(&asked, answer);
                apps.iter().for_each(|app| self.apps.decide_soon(app));
            }
            Event::PastApp { app, revision, past } => self.past_read(&app, &revision, past.map(|past| *past)),
            Event::Cluster { cluster, epoch, news } => self.cluster_news(&cluster, epoch, news),
            Event::Reconciled { target, number, epoch, outcome } => {
                self.reconciled(&target, number, epoch, *outcome);
            }
            Event::Crashed { target, number, error } => self.crashed(&target, number, error),
            Event::Deleted { candidate, epoch, result } => self.object_deleted(&candidate, epoch, result),
            Event::PodsListed(listed) => self.pods_listed(*listed),
            Event::LastLine { told, crash, line } => self.last_line_read(*told, crash, line),
            Event::Token { reference, token } => self.token_read(&reference, token),
            Event::UnderWay { revision, left } => self.already_told(&revision, left),
            Event::Recalled { number } => self.recalled(number),
        }
    }

    pub fn measured(&mut self, measured: Arc<AllOutcomes>) {
        self.changed = true;
        self.apps.take_measured(measured);
    }

    pub fn stands_by(&self) -> bool {
        self.settings.stands_by
    }

    /// What was only looked at is written from now on: the same as another mode of the instance. The forge says what the leader before
    /// has told, as it does to a process that starts.
    fn elected(&mut self) {
        self.settings.stands_by = false;
        self.begin_posting();
        self.render();
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
        let ask = Ask {
            origin: self.settings.origin.clone(),
            charts: Arc::clone(&self.settings.charts),
            home: self.settings.home.clone(),
            grants: Arc::clone(&self.settings.grants),
            registry: Arc::clone(&self.registry),
            reading: Arc::clone(&self.reading),
            events: self.events.clone(),
            known: self.head.clone(),
            registered: self.snapshot.as_ref().and_then(|snapshot| snapshot.registered.clone()),
            holders: self.fleet.as_ref().map(|fleet| Arc::clone(&fleet.holders)).unwrap_or_default(),
            after: self.awaited.clone(),
            believes: self.went_back.is_believed(Instant::now()),
        };
        let events = self.events.clone();
        tokio::spawn(async move {
            let span = tracing::trace_span!("load", revision = tracing::field::Empty);
            let loaded = load::load(ask).instrument(span.clone()).await;
            if let Ok(Loaded { news: Some(news), .. }) = &loaded {
                span.record("revision", news.revision.short());
            }
            drop(span);
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

    fn not_loaded(&mut self, error: LoadError) {
        self.ask_git_again(error);
        self.done_loading();
    }

    fn ask_git_again(&mut self, error: LoadError) {
        // At the start nothing runs yet, and whoever started it shows the error.
        if self.fleet.is_some() {
            tracing::warn!(
                error = error.message,
                help = error.help,
                "the config repository could not be read; what runs goes on"
            );
        }
        self.load_error = Some(error);
        self.reload_at = Some(Instant::now() + self.reload_pause);
        self.reload_pause = (self.reload_pause * 2).min(self.instance.poll.max(RELOAD_FIRST));
    }

    fn loaded(&mut self, loaded: Loaded) {
        self.load_error = None;
        self.reload_at = None;
        self.reload_pause = RELOAD_FIRST;
        // What only the registry said is no answer of Git.
        let is_from_git = loaded.unread.is_none();
        if is_from_git {
            self.settings.metrics.source_read(Instant::now());
        }
        // The commit that a hook spoke of is not there yet: the forge's own replication is behind. It
        // is asked for after 1, 2, 4 and 8 s; after that the next poll finds it.
        if self.load_again {
            // A hook that came meanwhile spoke of a commit that this load did not ask for.
        } else if loaded.behind && self.awaited_pause <= RELOAD_BEHIND {
            self.reload_at = Some(Instant::now() + self.awaited_pause);
            self.awaited_pause *= 2;
        } else if is_from_git {
            self.awaited = None;
        }
        if is_from_git
            && let Some(again) =
                self.went_back.take(loaded.went_back.as_ref(), self.head.as_ref(), Instant::now())
        {
            self.reload_at = Some(self.reload_at.map_or(again, |at| at.min(again)));
        }
        if let Some(mut news) = loaded.news {
            news.snapshot.keys = self.settings.keys.clone();
            let fleet = Arc::new(news.fleet);
            tracing::info!(
                revision = news.revision.short(),
                mistakes = fleet.diagnostics.len(),
                "read the config repository"
            );
            // Whoever only looks is shown them at the end.
            if matches!(self.settings.until, Until::Stopped) && self.settings.mode.is_none() {
                log_mistakes(&fleet, self.fleet.as_deref());
            }
            self.tell_about(&news.revision, &news.recent, news.seen);
            // Other clusters are registered: what the commit has deleted already counts on.
            let is_same = self.head.as_ref() == Some(&news.revision);
            self.head = Some(news.revision.clone());
            if !is_same {
                self.writes = Writes::default();
            }
            // Also when it was the head before: what lay between may have changed what is known.
            self.rendered_head = None;
            if !is_same {
                self.prune.begin(&self.in_flight);
            }
            self.blamed = load::blame(&fleet, &news.snapshot);
            // The first heads may come faster than they are rendered: they have no targets yet.
            let before = self.fleet.clone().filter(|_| self.renders.is_first());
            self.take_fleet(Arc::clone(&fleet));
            if let Some(before) = before {
                self.part(fleet.taken_away(&before), &news.revision);
            }
            self.history.register(news.snapshot.registered.clone());
            let is_other = self.open_outbox(news.recent, news.token, fleet.is_usable());
            if !is_same || is_other {
                self.post_first();
            }
            self.snapshot = Some(Arc::new(news.snapshot));
            self.render();
        }
        if let Some(error) = loaded.unread {
            self.ask_git_again(error);
        }
        self.done_loading();
    }

    /// Which commits get statuses: this head, those between it and the one before, and what was told before.
    fn tell_about(&mut self, head: &Revision, recent: &[Revision], seen: Instant) {
        let newer: Vec<Revision> = match &self.head {
            Some(known) => recent.iter().take_while(|commit| *commit != known).cloned().collect(),
            None => vec![head.clone()],
        };
        // When the one that was there at the start was pushed nobody knows.
        if self.head.is_some() {
            newer.iter().rev().for_each(|commit| self.settings.metrics.commit_seen(commit, seen));
        }
        self.told.retain(|commit| !newer.contains(commit));
        self.told.splice(0..0, newer);
        let unfinished = self.unfinished_commits();
        let mut number = 0;
        self.told.retain(|commit| {
            number += 1;
            number <= load::RECENT || unfinished.contains(commit)
        });
    }

    /// Starts to render the head, for the clusters as they are now. What has not changed is not rendered again.
    pub(super) fn render(&mut self) {
        let (Some(fleet), Some(snapshot)) = (&self.fleet, &self.snapshot) else { return };
        let known = |(name, entry): (&ClusterName, &ClusterEntry)| Some((name.clone(), entry.facts.clone()?));
        let head = Head {
            fleet: Arc::clone(fleet),
            snapshot: Arc::clone(snapshot),
            charts: Arc::clone(&self.settings.charts),
            discovered: self.clusters.iter().filter_map(known).collect(),
            heads: Arc::clone(&self.apps.heads),
            metrics: self.settings.metrics.clone(),
        };
        self.renders.begin(head, self.events.clone());
    }

    fn rendered(
        &mut self,
        number: u64,
        renders: Renders,
        heads: &Arc<Heads>,
        admission: Option<Arc<Admission>>,
    ) {
        tracing::debug!(revision = renders.revision.short(), made = renders.made, "rendered");
        // A newer revision may have come while this one was rendered, or other clusters.
        let Some(renders) = self.renders.take(number, renders) else { return };
        let Some(fleet) = self.fleet.clone() else { return };
        self.rendered_head = Some(renders.revision.clone());
        if !fleet.is_usable() {
            // Without an instance nothing can be said of any app: what runs is left as it is, and what moved
            // before is still not rendered.
            return;
        }
        self.ground_moved = false;
        let mut broken = self.broken_targets(&fleet);
        broken.extend(self.hidden_targets(&fleet, &renders));
        // Clusters for which something else is rendered than before.
        let mut changed: BTreeSet<ClusterName> = self
            .clusters
            .iter()
            .filter(|(_, entry)| !entry.knows_wanted)
            .map(|(name, _)| name.clone())
            .collect();
        let mut gone: Vec<(Arc<App>, ClusterName)> = Vec::new();
        let (searches, in_flight) = (&mut self.searches, &self.in_flight);
        self.targets.retain(|id, entry| {
            let stays = renders.get(id).is_some() || broken.contains_key(id);
            if !stays {
                changed.insert(id.cluster.clone());
                gone.push((Arc::clone(&entry.app), id.cluster.clone()));
                searches.forget(id);
                in_flight.cancel(id);
            }
            stays
        });
        // One app may have stood otherwise on some clusters than on others, while it had mistakes.
        let apps = gone.chunk_by(|(one, _), (next, _)| Arc::ptr_eq(one, next));
        let left = apps.flat_map(|places| {
            let clusters = places.iter().map(|(_, cluster)| cluster.clone()).collect();
            fleet.takes_away(&places[0].0, clusters)
        });
        self.part(left, &renders.revision);
        let rendered = renders.iter().filter_map(|(id, render)| {
            let app = fleet.apps.get(&id.app).cloned()?;
            Some((id, (app, render.clone())))
        });
        self.take_heads(&fleet, heads);
        for (id, (app, render)) in rendered.chain(broken) {
            let in_waves = self.apps.contains(&id.app) && render.1.is_ok();
            let cluster = self.clusters.get(&id.cluster).map(|entry| &entry.cluster);
            let settings = ApplySettings::of(&app, &self.instance, self.mode(), cluster);
            // What is under way was begun by other settings.
            if in_waves && self.targets.get(&id).is_some_and(|known| *known.settings != settings) {
                self.in_flight.cancel(&id);
            }
            if self.targets.take_over(&id, app, settings.into(), render, in_waves) {
                // What it was to become before is not applied any further. Of an app in waves that is decided next.
                if !in_waves {
                    self.in_flight.cancel(&id);
                }
                changed.insert(id.cluster.clone());
                self.agenda.mark(id);
            }
        }
        self.take_admission(admission);
        // Whatever kept it waiting may be over with this revision.
        let due = self.targets.iter().filter(|(id, entry)| entry.due && !self.in_flight.is_running(id));
        let due: Vec<Target> = due.map(|(id, _)| id.clone()).collect();
        due.into_iter().for_each(|id| self.agenda.mark(id));
        let names: Vec<ClusterName> = self.clusters.keys().cloned().collect();
        for name in names {
            if changed.contains(&name) {
                self.take_wanted(&name);
            }
            if self.relate(&name) {
                self.look_at_all(&name);
            }
            self.note_stale(&name);
        }
        self.render_stale();
    }

    /// What is rendered for a cluster is something else than before.
    pub(super) fn take_wanted(&mut self, name: &ClusterName) {
        let renders = self
            .targets
            .on(name)
            .filter_map(|(_, entry)| Some((entry.render.as_ref().ok()?, entry.head.as_ref().ok()?)));
        let wanted = Wanted::of(renders);
        if let Some(cluster) = self.clusters.get_mut(name) {
            cluster.take_wanted(wanted);
        }
        self.watch_rendered(name);
    }

    /// Looks at a target in the next turn.
    pub(super) fn look_at(&mut self, id: &Target) {
        if let Some(entry) = self.targets.get_mut(id) {
            entry.due = true;
            self.agenda.mark(id.clone());
            self.apps.touch(id);
        }
    }

    /// Looks at every target of a cluster in the next turn.
    pub(super) fn look_at_all(&mut self, cluster: &ClusterName) {
        for id in self.targets.names_on(cluster) {
            self.look_at(&id);
        }
    }

    /// Which targets of a cluster have to be rendered again, as it is not (any more) what they were rendered for.
    pub(super) fn note_stale(&mut self, name: &ClusterName) {
        let Some(cluster) = self.clusters.get_mut(name) else { return };
        let stale: BTreeSet<Target> = match (self.renders.last(), &cluster.facts) {
            (Some(renders), Some(found)) => renders.stale(&cluster.cluster, found).into_iter().collect(),
            _ => BTreeSet::new(),
        };
        cluster.stale = !stale.is_empty();
        for id in self.targets.names_on(name) {
            let is_stale = stale.contains(&id);
            if let Some(entry) = self.targets.get_mut(&id)
                && entry.stale != is_stale
            {
                entry.stale = is_stale;
                self.agenda.mark(id);
            }
        }
    }

    /// One render at a time: what changes meanwhile is seen when it is done, or takes long.
    pub(super) fn render_stale(&mut self) {
        let is_any_stale = || self.clusters.values().any(|cluster| cluster.stale);
        if self.renders.is_wanted() || !self.renders.holds_up_clusters() && is_any_stale() {
            self.render();
        }
    }

    /// It was rendered without knowing its cluster, or for what its cluster was before: what is wrong with it may not be.
    pub(super) fn is_provisional(&self, id: &Target, entry: &TargetEntry) -> bool {
        let reach = self.clusters.get(&id.cluster).map(|cluster| &cluster.reach);
        let is_broken = || self.fleet.as_ref().is_some_and(|fleet| fleet.broken.contains_key(&id.app));
        entry.stale
            || entry.awaited().is_some()
            || (entry.render.is_err() && reach == Some(&Reach::Connecting) && !is_broken())
    }

    // ---- the end ----

    pub fn cancel(&mut self) {
        self.stopping = true;
        self.in_flight.stop();
    }

    pub fn is_busy(&self) -> bool {
        !self.in_flight.is_idle()
    }

    /// Has anything changed since the last overview?
    pub fn has_changed(&self) -> bool {
        self.changed
    }

    /// The shortest time between two overviews: about twenty times what one takes.
    pub fn pause_of_overviews(&self) -> Duration {
        OVERVIEW_OF_A_TARGET
            .saturating_mul(u32::try_from(self.targets.len()).unwrap_or(u32::MAX))
            .min(LONGEST_OVERVIEW)
    }

    /// An overview was told to everybody; the forge hears it too.
    pub fn published(&mut self, overview: &Overview) {
        self.changed = false;
        self.post(overview);
    }

    pub fn instance(&self) -> Option<Arc<Instance>> {
        self.fleet.as_ref().map(|_| Arc::clone(&self.instance))
    }

    /// Puts what was read last in the place of what is known; whether it is something else.
    pub fn renew_head(&self, known: &mut Option<Arc<ConfigHead>>) -> bool {
        let Some((fleet, snapshot)) = self.fleet.as_ref().zip(self.snapshot.as_ref()) else { return false };
        let renders = self.renders.last().filter(|renders| renders.revision == snapshot.revision);
        let renders = renders.filter(|renders| renders.is_complete());
        let is_same = known.as_ref().is_some_and(|known| {
            Arc::ptr_eq(&known.fleet, fleet) && known.defined.is_some() == renders.is_some()
        });
        if !is_same {
            let defined = renders.map(|renders| renders.defined().clone());
            let (fleet, snapshot) = (Arc::clone(fleet), Arc::clone(snapshot));
            *known = Some(Arc::new(ConfigHead { fleet, snapshot, defined }));
        }
        !is_same
    }

    pub(super) fn mode(&self) -> Mode {
        if self.settings.stands_by { Mode::Observe } else { self.settings.mode.unwrap_or(self.instance.mode) }
    }

    /// Is this run over?
    pub fn ending(&self) -> Option<Ending> {
        if let (None, Some(error)) = (&self.fleet, &self.load_error) {
            let lasting = matches!(error.kind, ErrorKind::Configuration | ErrorKind::Authentication);
            if lasting || self.settings.until != Until::Stopped {
                return Some(Ending::Unreadable(error.clone()));
            }
        }
        // What has changed since the last overview may be the end, which it shall show.
        let may_end = self.settings.until != Until::Stopped && !self.changed;
        (may_end && self.is_settled()).then_some(Ending::Settled)
    }

    fn is_settled(&self) -> bool {
        if self.loading || self.head.is_none() || self.head != self.rendered_head || self.is_busy() {
            return false;
        }
        let waits_for_rollouts = matches!(self.settings.until, Until::Settled { .. });
        // A run that only looks opens no wave.
        let waits_for_gates = waits_for_rollouts && self.mode() == Mode::Enforce;
        if self.apps.iter().any(|(_, app)| app.is_reading() || waits_for_gates && app.ends_by_itself()) {
            return false;
        }
        // A command says who agreed, too. What the forge refuses to say is an answer.
        if self.agreements.is_waiting() {
            return false;
        }
        let settling = self.targets.keys().any(|id| self.waits_for_a_neighbour(id));
        let now = Instant::now();
        let under_way = self.targets.keys().any(|id| match self.phase(id).0 {
            Phase::Pending => waits_for_rollouts || !self.is_planned(id),
            Phase::Progressing => {
                waits_for_rollouts || self.explains() && self.searches.is_unanswered(id, now)
            }
            // It would end without saying why.
            Phase::Degraded => (waits_for_rollouts || self.explains()) && self.searches.is_awaited(id, now),
            _ => false,
        });
        !under_way
            && !settling
            && self.clusters.values().all(Self::is_cluster_settled)
            && self.is_prune_settled()
    }

    /// A look that ends with the causes.
    pub(super) fn explains(&self) -> bool {
        matches!(self.settings.until, Until::Explained { .. })
    }

    /// What there is to do is known.
    fn is_planned(&self, id: &Target) -> bool {
        let is_known = |entry: &TargetEntry| {
            let is_answered = entry.plan.is_some() && entry.failure.is_none() && entry.awaited().is_none();
            is_answered && !self.in_flight.is_running(id) && !entry.due
        };
        self.targets.get(id).is_some_and(is_known)
    }

    /// It waits for what another app of its cluster brings or what is on its way out: that comes by
    /// itself, unless something there has failed.
    fn waits_for_a_neighbour(&self, id: &Target) -> bool {
        let passing = |reason: &Reason| {
            matches!(
                reason,
                Reason::Terminating
                    | Reason::NamespaceTerminating { .. }
                    | Reason::NamespacePending { .. }
                    | Reason::DefinitionPending { .. }
                    | Reason::KindPending { .. }
            )
        };
        let plan = self.targets.get(id).and_then(|entry| entry.plan.as_ref());
        // A run that only looks brings nothing about.
        self.mode() == Mode::Enforce
            && self.phase(id).0 == Phase::Waiting
            && plan.is_some_and(|plan| plan.steps.iter().any(|step| passing(&step.reason)))
            && !self.targets.names_on(&id.cluster).iter().any(|it| self.phase(it).0.is_failure())
    }

    /// Observed whole, or given up on for this run.
    fn is_cluster_settled(entry: &ClusterEntry) -> bool {
        match &entry.reach {
            Reach::Connecting => false,
            Reach::Ready => entry.is_complete() && !entry.stale,
            Reach::Offline { attempts, lasting, .. } => *lasting || *attempts >= 3,
        }
    }
}
