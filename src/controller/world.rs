//! The whole state of the controller, and how each event changes it.

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

/// The first delay before Git is read again, and the longest one when only a commit is missing.
pub(super) const RELOAD_FIRST: Duration = Duration::from_secs(1);
const RELOAD_BEHIND: Duration = Duration::from_secs(8);

const OVERVIEW_OF_A_TARGET: Duration = Duration::from_micros(200);
const LONGEST_OVERVIEW: Duration = Duration::from_secs(2);

pub struct World {
    pub(super) settings: Settings,
    pub(super) events: mpsc::Sender<Event>,
    loading: bool,
    /// Another load was requested during a load.
    load_again: bool,
    /// Time of the next load: Git could not be read, a hook named a commit that is not there yet, or the head was
    /// non-fast-forward.
    pub(super) reload_at: Option<Instant>,
    /// The last delay; it doubles.
    reload_pause: Duration,
    /// The commit that a hook named, and the delay before Git is read again for it.
    awaited: Option<String>,
    awaited_pause: Duration,
    went_back: WentBack,
    pub(super) load_error: Option<LoadError>,
    pub(super) head: Option<Revision>,
    pub(super) rendered_head: Option<Revision>,
    /// Writes since the current head.
    pub(super) writes: Writes,
    /// The head changes the instance or the clusters, and is not rendered yet.
    pub(super) ground_moved: bool,
    pub(super) fleet: Option<Arc<Fleet>>,
    pub(super) instance: Arc<Instance>,
    /// Reads earlier revisions.
    pub(super) history: Arc<History>,
    /// Parsed manifests of earlier revisions.
    pub(super) reading: Arc<Mutex<manifest::Memory>>,
    /// Clusters that are registered outside of Git.
    registry: Arc<Registry>,
    /// Shared by the watches of all clusters.
    pub(super) listing: Listing,
    pub(super) clusters: BTreeMap<ClusterName, ClusterEntry>,
    /// Clusters without a file or registration. Their objects stay as they are.
    pub(super) dropped: BTreeMap<ClusterName, Dropped>,
    pub(super) targets: Targets,
    /// Apps in waves.
    pub(super) apps: Apps,
    /// The targets to process next.
    pub(super) agenda: Agenda,
    /// The workloads whose pods are listed, and when.
    pub(super) searches: CauseSearches,
    pub(super) words: Words,
    pub(super) snapshot: Option<Arc<Snapshot>>,
    pub(super) renders: HeadRenders,
    /// Errors outside of a target, with the last commit that changed the file.
    pub(super) blamed: Vec<(Revision, crate::model::Diagnostic)>,
    /// Commits that get statuses, newest first.
    pub(super) told: Vec<Revision>,
    /// Deletes: decided, sent, refused.
    pub(super) prune: super::prune::Pruning,
    pub(super) policing: super::admission::Policing,
    pub(super) telling: Telling,
    pub(super) agreements: Agreements,
    /// Epochs increase over all clusters, so that news of a replaced entry cannot match its successor.
    pub(super) epochs: u64,
    /// Reconciliations and deletes in progress.
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

    /// This process begins to write. The effect is that of another mode of the instance. As at a start, the statuses of the
    /// previous leader are read back from the forge.
    fn elected(&mut self) {
        self.settings.stands_by = false;
        self.begin_posting();
        self.render();
    }

    /// Starts a load, unless one is in progress.
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
            // The send fails only when the controller has stopped.
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
        // At the start nothing runs yet, and the caller shows the error.
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
        // Registry data alone is not an answer of Git.
        let is_from_git = loaded.unread.is_none();
        if is_from_git {
            self.settings.metrics.source_read(Instant::now());
        }
        // The commit that a hook named is missing: the replication of the forge is behind. It is requested after 1, 2, 4 and 8 s;
        // after that the next poll finds it.
        if self.load_again {
            // A hook during this load named a commit that the load did not look for.
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
            // A command that runs once shows them at its end.
            if matches!(self.settings.until, Until::Stopped) && self.settings.mode.is_none() {
                log_mistakes(&fleet, self.fleet.as_deref());
            }
            self.tell_about(&news.revision, &news.recent, news.seen);
            // If only the registered clusters changed, the deletes of the commit so far still count.
            let is_same = self.head.as_ref() == Some(&news.revision);
            self.head = Some(news.revision.clone());
            if !is_same {
                self.writes = Writes::default();
            }
            // Also when it was the head before: a commit in between may have changed the state.
            self.rendered_head = None;
            if !is_same {
                self.prune.begin(&self.in_flight);
            }
            self.blamed = load::blame(&fleet, &news.snapshot);
            // The first heads may come faster than their renders: they have no targets yet.
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

    /// Sets the commits that get statuses: this head, those between it and the previous one, and those tracked before.
    fn tell_about(&mut self, head: &Revision, recent: &[Revision], seen: Instant) {
        let newer: Vec<Revision> = match &self.head {
            Some(known) => recent.iter().take_while(|commit| *commit != known).cloned().collect(),
            None => vec![head.clone()],
        };
        // The push time of the first head is unknown.
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

    /// Starts to render the head for the current clusters. Unchanged apps are not rendered again.
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
        // A newer revision or other clusters may have replaced this render.
        let Some(renders) = self.renders.take(number, renders) else { return };
        let Some(fleet) = self.fleet.clone() else { return };
        self.rendered_head = Some(renders.revision.clone());
        if !fleet.is_usable() {
            // Without an instance no app can be judged. Running objects stay, and targets that were stale before stay unrendered.
            return;
        }
        self.ground_moved = false;
        let mut broken = self.broken_targets(&fleet);
        broken.extend(self.hidden_targets(&fleet, &renders));
        // Clusters whose rendered objects changed.
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
        // An app with errors may have had a different place in the order on some clusters than on others.
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
            // The reconciliation in progress began with other settings.
            if in_waves && self.targets.get(&id).is_some_and(|known| *known.settings != settings) {
                self.in_flight.cancel(&id);
            }
            if self.targets.take_over(&id, app, settings.into(), render, in_waves) {
                // The previous render is not applied any further. For an app in waves the next decision does that.
                if !in_waves {
                    self.in_flight.cancel(&id);
                }
                changed.insert(id.cluster.clone());
                self.agenda.mark(id);
            }
        }
        self.take_admission(admission);
        // This revision may end the reason for a wait.
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

    /// The rendered objects of a cluster changed.
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

    /// Marks a target for the next turn.
    pub(super) fn look_at(&mut self, id: &Target) {
        if let Some(entry) = self.targets.get_mut(id) {
            entry.due = true;
            self.agenda.mark(id.clone());
            self.apps.touch(id);
        }
    }

    /// Marks every target of a cluster for the next turn.
    pub(super) fn look_at_all(&mut self, cluster: &ClusterName) {
        for id in self.targets.names_on(cluster) {
            self.look_at(&id);
        }
    }

    /// Marks the targets that were rendered for other capabilities than those of the cluster now.
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

    /// One render at a time. Changes during a render are handled when it ends or takes long.
    pub(super) fn render_stale(&mut self) {
        let is_any_stale = || self.clusters.values().any(|cluster| cluster.stale);
        if self.renders.is_wanted() || !self.renders.holds_up_clusters() && is_any_stale() {
            self.render();
        }
    }

    /// It was rendered without the capabilities of its cluster, or with outdated ones. Its errors may be wrong.
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

    pub fn has_changed(&self) -> bool {
        self.changed
    }

    /// The shortest time between two overviews: about twenty times the cost of one.
    pub fn pause_of_overviews(&self) -> Duration {
        OVERVIEW_OF_A_TARGET
            .saturating_mul(u32::try_from(self.targets.len()).unwrap_or(u32::MAX))
            .min(LONGEST_OVERVIEW)
    }

    /// An overview was published; the forge gets it too.
    pub fn published(&mut self, overview: &Overview) {
        self.changed = false;
        self.post(overview);
    }

    pub fn instance(&self) -> Option<Arc<Instance>> {
        self.fleet.as_ref().map(|_| Arc::clone(&self.instance))
    }

    /// Updates the config head. Returns whether it changed.
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

    /// How the run ends, if it ends now.
    pub fn ending(&self) -> Option<Ending> {
        if let (None, Some(error)) = (&self.fleet, &self.load_error) {
            let lasting = matches!(error.kind, ErrorKind::Configuration | ErrorKind::Authentication);
            if lasting || self.settings.until != Until::Stopped {
                return Some(Ending::Unreadable(error.clone()));
            }
        }
        // The last change may be the end of the run, and the overview must show it first.
        let may_end = self.settings.until != Until::Stopped && !self.changed;
        (may_end && self.is_settled()).then_some(Ending::Settled)
    }

    fn is_settled(&self) -> bool {
        if self.loading || self.head.is_none() || self.head != self.rendered_head || self.is_busy() {
            return false;
        }
        let waits_for_rollouts = matches!(self.settings.until, Until::Settled { .. });
        // A run in observe mode opens no wave.
        let waits_for_gates = waits_for_rollouts && self.mode() == Mode::Enforce;
        if self.apps.iter().any(|(_, app)| app.is_reading() || waits_for_gates && app.ends_by_itself()) {
            return false;
        }
        // A command shows agreements too. A refusal by the forge is an answer.
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
            // Otherwise the run would end without the cause.
            Phase::Degraded => (waits_for_rollouts || self.explains()) && self.searches.is_awaited(id, now),
            _ => false,
        });
        !under_way
            && !settling
            && self.clusters.values().all(Self::is_cluster_settled)
            && self.is_prune_settled()
    }

    /// The run ends only when the causes are known.
    pub(super) fn explains(&self) -> bool {
        matches!(self.settings.until, Until::Explained { .. })
    }

    /// Its plan is computed.
    fn is_planned(&self, id: &Target) -> bool {
        let is_known = |entry: &TargetEntry| {
            let is_answered = entry.plan.is_some() && entry.failure.is_none() && entry.awaited().is_none();
            is_answered && !self.in_flight.is_running(id) && !entry.due
        };
        self.targets.get(id).is_some_and(is_known)
    }

    /// It waits for an object of another app on its cluster, or for one that is being deleted. Both come without help, unless
    /// something there has failed.
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
        // A run in observe mode writes nothing.
        self.mode() == Mode::Enforce
            && self.phase(id).0 == Phase::Waiting
            && plan.is_some_and(|plan| plan.steps.iter().any(|step| passing(&step.reason)))
            && !self.targets.names_on(&id.cluster).iter().any(|it| self.phase(it).0.is_failure())
    }

    /// Observed in full, or given up for this run.
    fn is_cluster_settled(entry: &ClusterEntry) -> bool {
        match &entry.reach {
            Reach::Connecting => false,
            Reach::Ready => entry.is_complete() && !entry.stale,
            Reach::Offline { attempts, lasting, .. } => *lasting || *attempts >= 3,
        }
    }
}
