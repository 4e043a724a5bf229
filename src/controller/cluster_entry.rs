//! The state of one cluster: its connection, its watches, and the observed objects.

mod certainty;
mod kind_watch;
mod unwell;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub use self::certainty::START_LASTS;
use self::kind_watch::{KindWatch, as_number};
use self::unwell::Unwell;
use super::claims::UnboundClaims;
use super::event::{ClusterNews, Event, Looked};
use super::listing::Listing;
use super::wanted::Wanted;
use super::weight;
use super::words::Words;
use crate::cluster::{Catalog, Change, Client};
use crate::health;
use crate::model::{
    Capabilities, Cluster, ClusterName, Evidence, Ignores, Kind, Live, ObjectId, Observation, Rendered,
};
use crate::plan::Candidate;
use crate::reconcile::{self, Found, Shared};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    Connecting,
    Ready,
    Offline { detail: String, attempts: u32, lasting: bool },
}

/// A kind whose list fails for this time is unknown.
const A_LIST: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct ClusterEntry {
    pub cluster: Cluster,
    pub reach: Reach,
    /// The kubeconfig differs from that of the connection. The observed state stays, but may be from another cluster.
    pub left: bool,
    pub epoch: u64,
    pub client: Option<Client>,
    connected_at: Option<Instant>,
    pub catalog: Arc<Catalog>,
    /// The capabilities of the cluster, once discovered.
    pub facts: Option<Arc<Capabilities>>,
    /// Some of its targets were rendered for other capabilities.
    pub stale: bool,
    pub observation: Observation,
    /// It was observed in full once, so its state is complete for that time.
    pub was_read: bool,
    pub wanted: Wanted,
    /// `wanted` was set since this entry began.
    pub knows_wanted: bool,
    /// Kinds whose list failed at the connection: they may have objects of this instance.
    pub unlisted: BTreeSet<Kind>,
    /// The dependencies between the apps on this cluster.
    pub shared: Arc<Shared>,
    /// Objects of this instance that their app does not render here any more.
    pub strays: BTreeSet<ObjectId>,
    pub unwell: Unwell,
    pub claims: UnboundClaims,
    watches: BTreeMap<Kind, KindWatch>,
    /// Kinds that were watched until the cluster stopped serving them. They are watched again when it serves them.
    gone: BTreeSet<Kind>,
    /// Number of watches started.
    watched: u64,
    rules: Arc<health::Rules>,
    /// Fields that apps leave to other field managers.
    pub ignores: Arc<Ignores>,
    listing: Listing,
    rediscover: watch::Sender<u64>,
    supervisor: JoinHandle<()>,
}

impl Drop for ClusterEntry {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}

/// The apps that a cluster event affects.
#[derive(Debug, PartialEq, Eq)]
pub enum Touched {
    Nothing,
    App(Arc<str>),
    /// Possibly every app: a list was completed, or the cluster connected or disconnected.
    Everything,
}

impl ClusterEntry {
    pub fn new(
        cluster: Cluster,
        epoch: u64,
        rules: Arc<health::Rules>,
        listing: Listing,
        supervisor: JoinHandle<()>,
        rediscover: watch::Sender<u64>,
    ) -> Self {
        Self {
            cluster,
            reach: Reach::Connecting,
            left: false,
            epoch,
            client: None,
            connected_at: None,
            catalog: Arc::default(),
            facts: None,
            stale: false,
            observation: Observation::default(),
            was_read: false,
            wanted: Wanted::default(),
            knows_wanted: false,
            unlisted: BTreeSet::new(),
            shared: Arc::default(),
            strays: BTreeSet::new(),
            unwell: Unwell::default(),
            claims: UnboundClaims::default(),
            watches: BTreeMap::new(),
            gone: BTreeSet::new(),
            watched: 0,
            rules,
            ignores: Arc::default(),
            listing,
            rediscover,
            supervisor,
        }
    }

    pub fn name(&self) -> &ClusterName {
        &self.cluster.name
    }

    /// The app has an object here, or takes one over from another app of this instance.
    pub fn holds_any_of(&self, rendered: &Rendered) -> bool {
        let (objects, app) = (&self.observation.objects, rendered.app.to_string());
        rendered.objects.iter().any(|object| objects.contains_key(&object.id))
            || objects.values().any(|live| *live.app == *app)
    }

    /// The end of the pause that the server requested, if it is in the future.
    pub fn held_off(&self, now: Instant) -> Option<Instant> {
        self.client.as_ref().and_then(|client| client.held_off(now))
    }

    /// The same for writes of these groups. It counts only if all of them are paused; a write to any other group can go on.
    pub fn held_off_in<'a>(&self, groups: impl Iterator<Item = &'a str>, now: Instant) -> Option<Instant> {
        let client = self.client.as_ref()?;
        let of_groups: Option<Vec<Instant>> = groups.map(|group| client.held_off_in(group, now)).collect();
        of_groups.into_iter().flatten().min().max(client.held_off(now))
    }

    pub fn ask_what_it_serves(&self) {
        self.rediscover.send_modify(|count| *count += 1);
    }

    /// Watches all rendered kinds in their rendered version, because values can be compared only in the applied version. A watch
    /// of a version that is not served any more would never report anything. Known objects stay until the new list.
    pub fn watch_rendered(&mut self, instance: &str, events: &mpsc::Sender<Event>) {
        self.leave_gone();
        let rendered = self.wanted.kinds.clone();
        let mut wanted: Vec<Kind> = rendered.iter().cloned().collect();
        for watched in self.watches.keys() {
            let is_served = self.catalog.get(watched).is_some();
            if is_served && rendered.contains(watched) {
                continue;
            }
            let mut rendered = rendered.iter().filter(|it| it.is_same(watched));
            let other = rendered.find(|it| self.catalog.get(it).is_some());
            let other =
                other.or_else(|| self.catalog.preferred().find(|it| !is_served && it.is_same(watched)));
            wanted.extend(other.cloned());
        }
        wanted.extend(self.gone.iter().cloned());
        let catalog = &self.catalog;
        self.watches.retain(|watched, _| {
            let replaced = |it: &Kind| it != watched && it.is_same(watched) && catalog.get(it).is_some();
            rendered.contains(watched) && catalog.get(watched).is_some() || !wanted.iter().any(replaced)
        });
        self.watch(wanted, instance, events);
    }

    /// An unserved kind has no objects. Its watch would retry for ever. While its first list is missing, an app with such an
    /// object could not even apply the missing definition.
    fn leave_gone(&mut self) {
        let catalog = Arc::clone(&self.catalog);
        // Includes kinds without a watch: their definition may have been deleted while the cluster was offline.
        let seen: BTreeSet<&Kind> = self.observation.objects.values().map(|live| &*live.kind).collect();
        let known: BTreeSet<&Kind> = self.watches.keys().chain(seen).collect();
        let gone: Vec<Kind> = known.into_iter().filter(|kind| catalog.is_without(kind)).cloned().collect();
        for kind in &gone {
            self.watches.remove(kind);
        }
        self.retain(|id| !gone.iter().any(|kind| id.is_of(kind)));
        self.gone.extend(gone);
    }

    /// Watches these kinds too, if the cluster serves them.
    pub fn watch(
        &mut self,
        kinds: impl IntoIterator<Item = Kind>,
        instance: &str,
        events: &mpsc::Sender<Event>,
    ) {
        let Some(client) = &self.client else { return };
        for kind in kinds {
            // One watch per kind is enough.
            let watched = self.watches.keys().any(|known| known.is_same(&kind));
            let Some(resource) = self.catalog.get(&kind).filter(|it| it.manageable && !watched) else {
                continue;
            };
            let stream = client.watch(resource, instance, self.rules.is_metadata_only(&kind));
            self.watched += 1;
            let number = self.watched;
            let (events, cluster, epoch, watched_kind) =
                (events.clone(), self.cluster.name.clone(), self.epoch, kind.clone());
            let listing = self.listing.clone();
            let task = tokio::spawn(async move {
                let tell = async |change| {
                    let room = weight::room_for(&change).await;
                    let news = ClusterNews::Watch { kind: watched_kind.clone(), number, change, room };
                    events.send(Event::Cluster { cluster: cluster.clone(), epoch, news }).await.is_ok()
                };
                listing.follow(stream, tell).await;
            });
            let mark = self.rules.mark(&kind);
            let watch = KindWatch::new(task, number, mark);
            self.watches.insert(kind, watch);
        }
        self.observation.complete = self.watches.values().all(|watch| watch.listed);
    }

    pub fn rules(&self) -> Arc<health::Rules> {
        Arc::clone(&self.rules)
    }

    /// Sets the health rules. Objects are not kept whole, so kinds with other rules are listed again. The known state stays until
    /// then.
    pub fn take_rules(&mut self, rules: &Arc<health::Rules>, instance: &str, events: &mpsc::Sender<Event>) {
        if self.rules == *rules {
            return;
        }
        self.rules = Arc::clone(rules);
        let changed: Vec<Kind> = self
            .watches
            .iter()
            .filter(|(kind, watch)| watch.mark != rules.mark(kind))
            .map(|(kind, _)| kind.clone())
            .collect();
        for kind in &changed {
            self.watches.remove(kind);
        }
        self.watch(changed, instance, events);
    }

    /// Sets the ignored fields. Known objects lack the fields that their app leaves to others. When these fields change, the kind
    /// is listed again.
    pub fn take_ignores(&mut self, ignores: &Arc<Ignores>, instance: &str, events: &mpsc::Sender<Event>) {
        if self.ignores == *ignores {
            return;
        }
        let changed = |app: &str| self.ignores.get(app) != ignores.get(app);
        let objects = self.observation.objects.iter().filter(|(_, live)| changed(&live.app));
        let objects: BTreeSet<(Arc<str>, Arc<str>)> =
            objects.map(|(id, _)| (Arc::clone(&id.group), Arc::clone(&id.kind))).collect();
        self.ignores = Arc::clone(ignores);
        let kinds = self.watches.keys();
        let kinds: Vec<Kind> = kinds
            .filter(|it| objects.contains(&(Arc::clone(&it.group), Arc::clone(&it.kind))))
            .cloned()
            .collect();
        for kind in &kinds {
            self.watches.remove(kind);
        }
        self.watch(kinds, instance, events);
    }

    /// Starts a connection: everything is listed again. The known state stays until the lists are complete.
    pub fn connected(&mut self, epoch: u64, client: Client, catalog: Arc<Catalog>) {
        self.doubt_versions();
        self.left = false;
        self.reach = Reach::Ready;
        self.epoch = epoch;
        self.client = Some(client);
        self.connected_at = Some(Instant::now());
        self.claims.clear_classes();
        self.watches.clear();
        self.gone.clear();
        self.observation.complete = false;
        self.observation.strangers.clear();
        self.observation.absent.clear();
        self.observation.immutable.clear();
        self.observation.judged.clear();
        self.serves(catalog);
    }

    /// Forgets resource versions. The cluster may have been restored from a backup, or the new kubeconfig may lead to a copy of
    /// it, so versions do not show which state is older. The lists report everything again.
    fn doubt_versions(&mut self) {
        let unknown: Arc<str> = Arc::default();
        for live in self.observation.objects.values_mut() {
            Arc::make_mut(live).resource_version = Arc::clone(&unknown);
        }
    }

    /// Watches the kinds that have objects of this instance, and those that had some: the list may come from a stale cache.
    /// Denied and unserved kinds count as empty.
    pub fn looked(&mut self, looked: Looked, instance: &str, events: &mpsc::Sender<Event>) {
        let Looked { in_use, unlisted, denied } = looked;
        self.unlisted = unlisted.into_iter().collect();
        let known: BTreeSet<&Kind> = self.observation.objects.values().map(|live| &*live.kind).collect();
        let known: Vec<Kind> = known.into_iter().cloned().collect();
        let is_denied = |kind: &Kind| denied.iter().any(|it| it.is_same(kind));
        let is_unlisted = |kind: &Kind| self.unlisted.iter().any(|it| it.is_same(kind));
        let catalog = Arc::clone(&self.catalog);
        let as_served = |kind: &Kind| match catalog.get(kind) {
            Some(_) => Some(kind.clone()),
            None => catalog.preferred().find(|it| it.is_same(kind)).cloned(),
        };
        let to_watch = known.iter().filter(|kind| !is_denied(kind) && !is_unlisted(kind));
        let to_watch: Vec<Kind> = to_watch.filter_map(as_served).chain(in_use).collect();
        self.watch(to_watch, instance, events);
        let is_watched = |kind: &Kind| self.watches.keys().any(|it| it.is_same(kind));
        let is_gone = |kind: &&Kind| !is_watched(kind) && (is_denied(kind) || catalog.is_without(kind));
        let gone: Vec<Kind> = known.iter().filter(is_gone).cloned().collect();
        self.retain(|id| !gone.iter().any(|kind| id.is_of(kind)));
        self.note_read();
    }

    fn note_read(&mut self) {
        self.was_read |= self.is_complete() && self.unlisted.is_empty();
    }

    fn retain(&mut self, stays: impl Fn(&ObjectId) -> bool) {
        let gone: Vec<ObjectId> = self.observation.objects.keys().filter(|id| !stays(id)).cloned().collect();
        for id in &gone {
            self.observation.remove(id, || self.wanted.ids().contains(id));
        }
        self.unwell.retain(&stays);
        self.claims.retain(&stays);
        self.strays.retain(|id| stays(id));
    }

    pub fn take_wanted(&mut self, wanted: Wanted) {
        self.wanted = wanted;
        self.knows_wanted = true;
        self.strays.clear();
        self.observation.unmarked.retain(|id, _| self.wanted.ids().contains(id));
        self.observation.stripped.retain(|id| self.wanted.ids().contains(id));
        for (id, live) in &mut self.observation.objects {
            match self.wanted.get(&live.app, id) {
                Some(object) => reconcile::settle(live, object),
                None => {
                    self.strays.insert(id.clone());
                }
            }
        }
    }

    /// Sets the render of one app. Returns whether it has a kind that is new here.
    pub fn take_render(&mut self, app: &str, rendered: &Arc<Rendered>) -> bool {
        // Policies may read the other objects of an app.
        rendered.objects.iter().for_each(|object| _ = self.observation.judged.remove(&object.id));
        let (objects, has_new_kinds) = self.wanted.choose(app, rendered);
        for id in &objects {
            if self.observation.objects.get(id).is_some_and(|live| *live.app == *app) {
                self.compare(id, None);
            }
        }
        has_new_kinds
    }

    /// Records the result of a lookup by name.
    pub fn note(&mut self, id: &ObjectId, found: &Found) {
        if matches!(found, Found::Ours(live) if self.has_left(id, live)) {
            return;
        }
        reconcile::note(&mut self.observation, id, found);
        self.compare(id, None);
    }

    /// Compares one object with its render. `seen`: the object as just observed, and the name of this instance.
    fn compare(&mut self, id: &ObjectId, seen: Option<(&Value, &str)>) {
        let Some(live) = self.observation.objects.get_mut(id) else {
            self.strays.remove(id);
            return;
        };
        match self.wanted.get(&live.app, id) {
            Some(object) => {
                reconcile::settle(live, object);
                if let Some((seen, instance)) = seen {
                    reconcile::note_changes(live, seen, object, instance);
                }
                self.strays.remove(id);
            }
            None => {
                self.strays.insert(id.clone());
            }
        }
    }

    /// The lists of these kinds are complete. A kind that cannot be listed blocks only apps that have objects of it.
    pub fn has_listed<'a>(&self, mut kinds: impl Iterator<Item = &'a Kind>) -> bool {
        self.is_ready()
            && kinds.all(|kind| {
                self.watches.iter().filter(|(known, _)| known.is_same(kind)).all(|(_, watch)| watch.listed)
            })
    }

    pub fn serves(&mut self, catalog: Arc<Catalog>) {
        let manageable = catalog.iter().filter(|(_, resource)| resource.manageable);
        let served = manageable.map(|(kind, resource)| (kind.clone(), resource.namespaced)).collect();
        self.observation.served = Arc::new(served);
        let facts = catalog.capabilities(self.facts.as_deref());
        // An equal value keeps its allocation, because renders are compared with it.
        if self.facts.as_deref() != Some(&facts) {
            self.facts = Some(Arc::new(facts));
        }
        self.catalog = catalog;
    }

    /// Handles an event of a watch.
    pub fn watched(
        &mut self,
        kind: &Kind,
        number: u64,
        change: Change,
        instance: &str,
        words: &mut Words,
    ) -> Touched {
        let Some(watch) = self.watches.get_mut(kind).filter(|watch| watch.number == number) else {
            return Touched::Nothing;
        };
        if !matches!(change, Change::Broken(_) | Change::Listing | Change::Blind { .. }) {
            watch.trouble = None;
        }
        match change {
            Change::Listing => {
                watch.listing = Some(BTreeSet::new());
                watch.listing_since.get_or_insert_with(Instant::now);
                Touched::Nothing
            }
            Change::Listed { version } => {
                watch.listed = true;
                watch.listing_since = None;
                watch.told = as_number(&version);
                if let Some(seen) = watch.listing.take() {
                    self.retain(|id| !id.is_of(kind) || seen.contains(id));
                }
                self.observation.complete = self.watches.values().all(|watch| watch.listed);
                self.note_read();
                Touched::Everything
            }
            Change::Seen(object) => {
                let Some(id) = ObjectId::of(&object) else { return Touched::Nothing };
                watch.hears_of(&object, &id, true);
                self.see_object(kind, id, *object, instance, words)
            }
            Change::Left(object) => {
                let Some(id) = ObjectId::of(&object) else { return Touched::Nothing };
                watch.hears_of(&object, &id, false);
                self.forget(&id)
            }
            Change::Broken(error) => {
                tracing::debug!(cluster = %self.cluster.name, %kind, error, "a watch broke; it is taken up again");
                watch.trouble = Some(error);
                // The last complete list is too old to rely on.
                if watch.listed && watch.listing_since.is_some_and(|since| since.elapsed() >= A_LIST) {
                    watch.listed = false;
                    self.observation.complete = false;
                    return Touched::Everything;
                }
                Touched::Nothing
            }
            Change::Blind { since, why } => {
                let since = since.strftime("%Y-%m-%d %H:%M UTC");
                watch.blind = Some(format!("cannot be watched since {since}: {why}"));
                Touched::Everything
            }
            Change::Sees => {
                watch.blind = None;
                Touched::Everything
            }
        }
    }

    /// Records a whole object that a watch reported.
    fn see_object(
        &mut self,
        kind: &Kind,
        id: ObjectId,
        object: Value,
        instance: &str,
        words: &mut Words,
    ) -> Touched {
        match reconcile::live(kind, &object, instance, &self.rules, &self.ignores) {
            Some(live) => self.see_whole(id, live, object, instance, words),
            // It carries our label, but is a copy, or is not ours any more.
            None => self.forget(&id),
        }
    }

    fn see_whole(
        &mut self,
        mut id: ObjectId,
        mut live: Live,
        object: Value,
        instance: &str,
        words: &mut Words,
    ) -> Touched {
        words.share_id(&mut id);
        words.share_record(&mut live);
        // A workload without desired pods has no pods that could show a cause.
        let wants_pods = live.pods.is_none_or(|pods| pods.desired > 0);
        let unwell = wants_pods && !live.health.is_settled_well() && health::own_pods(&object).is_some();
        let is_judged_by_us = self.rules.mark(&live.kind).is_none();
        let touched = self.see(&id, live, &object, instance);
        if touched != Touched::Nothing && is_judged_by_us {
            self.claims.note(&id, &object);
        }
        if !unwell {
            self.unwell.remove(&id);
        } else if touched != Touched::Nothing {
            self.unwell.insert(id, object);
        }
        touched
    }

    /// Records an object. A state older than the known one is dropped.
    fn see(&mut self, id: &ObjectId, live: Live, object: &Value, instance: &str) -> Touched {
        if let Some(known) = self.observation.objects.get(id)
            && known.uid == live.uid
            && is_older(&live.resource_version, &known.resource_version)
        {
            return Touched::Nothing;
        }
        self.observation.absent.remove(id);
        self.observation.strangers.remove(id);
        self.observation.stripped.remove(id);
        self.observation.note_marks(id, &live);
        let live = as_settled_before(self.observation.objects.get(id).map(Arc::as_ref), live);
        let app = Arc::clone(&live.app);
        let before = self.observation.objects.insert(id.clone(), Arc::new(live));
        self.compare(id, Some((object, instance)));
        match before {
            // The object changed its app: both apps must be processed.
            Some(before) if before.app != app => Touched::Everything,
            _ => Touched::App(app),
        }
    }

    /// Records the answer of a successful apply: it shows the desired state. If a watch already reported a newer state, that
    /// state is compared with the answer. `ignores`: the ignored fields at the time of the apply. `before`: the values that the
    /// apply was to repair. Returns whether the repair had no effect.
    pub fn applied(
        &mut self,
        kind: &Kind,
        object: Value,
        instance: &str,
        ignores: &Ignores,
        before: Option<NonZeroU64>,
        words: &mut Words,
    ) -> bool {
        let Some(id) = ObjectId::of(&object) else { return false };
        let Some(answer) = reconcile::live(kind, &object, instance, &self.rules, &self.ignores) else {
            self.forget(&id);
            return false;
        };
        // A field that was ignored then may be desired now.
        let is_all = self.ignores.get(&answer.app) == ignores.get(&answer.app);
        if self.has_left(&id, &answer) {
            return false;
        }
        let (uid, hash, ownership) = (Arc::clone(&answer.uid), answer.hash, answer.ownership.clone());
        self.see_whole(id.clone(), answer, object, instance, words);
        self.observation.immutable.remove(&id);
        self.observation.judged.remove(&id);
        let live = self.observation.objects.get_mut(&id).filter(|_| is_all);
        let Some(live) = live.filter(|live| (&live.uid, live.hash) == (&uid, hash)) else { return false };
        let shown = reconcile::settled(ownership, hash, self.wanted.get(&live.app, &id));
        Arc::make_mut(live).settle(&shown, before)
    }

    /// Records an object that changed during its delete, as it was read then. The watch may report it later.
    pub fn read_again(&mut self, candidate: &Candidate) {
        if let Some(live) = self.observation.objects.get_mut(&candidate.object)
            && *live.uid == *candidate.uid
            && !is_older(&candidate.resource_version, &live.resource_version)
        {
            let live = Arc::make_mut(live);
            live.resource_version = candidate.resource_version.as_str().into();
            live.keep = candidate.keep;
            // The field ownership is known only for the previous state.
            live.ignored = None;
        }
    }

    /// Records a delete by this process, or an object that was found missing. The watch may report it late, and an app that needs
    /// the object again must not count it as healthy. An object of this name with another uid is not affected.
    pub fn deleted(&mut self, id: &ObjectId, uid: &str, is_gone: bool) -> Touched {
        match self.observation.objects.get_mut(id).filter(|live| *live.uid == *uid) {
            Some(_) if is_gone => self.forget(id),
            Some(live) if !live.deleting => {
                Arc::make_mut(live).deleting = true;
                Touched::App(Arc::clone(&live.app))
            }
            _ => Touched::Nothing,
        }
    }

    /// The answer shows an object that the watch has reported as deleted, perhaps with a successor of the same name. The watch
    /// does not report that again.
    fn has_left(&self, id: &ObjectId, answer: &Live) -> bool {
        let version = as_number(&answer.resource_version);
        let was_told = |watch: &KindWatch| version <= watch.told;
        self.observation.objects.get(id).is_none_or(|known| known.uid != answer.uid)
            && version.is_some()
            && self.watches.iter().any(|(kind, watch)| id.is_of(kind) && was_told(watch))
    }

    /// The object is gone, or not ours any more.
    pub fn forget(&mut self, id: &ObjectId) -> Touched {
        self.observation.absent.remove(id);
        self.observation.immutable.remove(id);
        self.observation.judged.remove(id);
        self.unwell.remove(id);
        self.claims.remove(id);
        let is_wanted_by_another = self.strays.remove(id) && self.wanted.ids().contains(id);
        match self.observation.remove(id, || self.wanted.ids().contains(id)) {
            // Another app may wait until it is gone.
            Some(live) if live.deleting || is_wanted_by_another => Touched::Everything,
            Some(live) => Touched::App(Arc::clone(&live.app)),
            None => Touched::Nothing,
        }
    }

    /// The objects that one app needs: those that it renders, and those that it applied and renders no longer. `complete` then
    /// refers to these kinds.
    pub fn seen_by(&self, rendered: &Rendered) -> Observation {
        let app = rendered.app.to_string();
        let is_its = |id: &&ObjectId| self.observation.objects.get(*id).is_some_and(|live| *live.app == *app);
        let strays = self.strays.iter().filter(is_its);
        self.observation.part(rendered.objects.iter().map(|object| &object.id).chain(strays))
    }
}

/// Keeps derived facts of an unchanged object.
fn as_settled_before(known: Option<&Live>, live: Live) -> Live {
    let live = reconcile::scaled_as_before(known, live);
    let is_comparable = |known: &&Live| {
        let paths = |live: &Live| live.ignored.as_ref().map(|ignored| ignored.paths.clone());
        known.uid == live.uid && known.hash == live.hash && paths(known) == paths(&live)
    };
    let Some(known) = known.filter(is_comparable) else { return live };
    // Changes by others were found by a comparison with the render of that time. While another commit waits, nothing would find
    // them again.
    let is_known =
        |it: &Evidence| matches!(it, Evidence::Changes(_)) && known.ownership.fields == live.ownership.fields;
    let changes = known.evidence.clone().filter(is_known);
    if known.settled.is_none() {
        return Live { evidence: changes.or(live.evidence), ..live };
    }
    let overruled = known.overruled && live.ownership.values == known.ownership.values;
    Live { settled: known.settled.clone(), overruled, evidence: changes, ..live }
}

fn is_older(one: &str, other: &str) -> bool {
    as_number(one).zip(as_number(other)).is_some_and(|(one, other)| one < other)
}
