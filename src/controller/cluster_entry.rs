//! The state of one cluster: its connection, its watches, and the observed objects.

mod certainty;
mod kind_watch;
mod recording;
mod unhealthy_objects;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub use self::certainty::STARTUP_GRACE_PERIOD;
use self::kind_watch::{KindWatch, version_number};
use self::unhealthy_objects::UnhealthyObjects;
use super::desired_index::DesiredIndex;
use super::event::{ClusterNews, Event, InventoryResult};
use super::interner::StringInterner;
use super::list_limiter::ListLimiter;
use super::queue_memory;
use super::unbound_claims::UnboundClaims;
use crate::cluster::{Catalog, Client, WatchChange};
use crate::health;
use crate::model::{
    Capabilities, Cluster, ClusterName, GroupVersionKind, IgnoreRulesByApp, ObjectId, Observation,
    RenderedTarget,
};
use crate::reconcile::{self, AppDependencies, LookupResult};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    Connecting,
    Ready,
    Offline { detail: String, attempts: u32, lasting: bool },
}

/// A kind whose list fails for this time is unknown.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct ClusterEntry {
    pub cluster: Cluster,
    pub connection_state: ConnectionState,
    /// The kubeconfig differs from that of the connection. The observed state stays, but may be from another cluster.
    pub kubeconfig_changed: bool,
    pub epoch: u64,
    pub client: Option<Client>,
    connected_at: Option<Instant>,
    pub catalog: Arc<Catalog>,
    /// The capabilities of the cluster, once discovered.
    pub capabilities: Option<Arc<Capabilities>>,
    /// Some of its targets were rendered for other capabilities.
    pub has_stale_renders: bool,
    pub observation: Observation,
    /// It was observed in full once, so its state is complete for that time.
    pub was_read: bool,
    pub desired: DesiredIndex,
    /// `wanted` was set since this entry began.
    pub has_desired: bool,
    /// Kinds whose list failed at the connection: they may have objects of this instance.
    pub unlisted: BTreeSet<GroupVersionKind>,
    /// The dependencies between the apps on this cluster.
    pub dependencies: Arc<AppDependencies>,
    /// Objects of this instance that their app does not render here any more.
    pub undesired_objects: BTreeSet<ObjectId>,
    pub unhealthy_objects: UnhealthyObjects,
    pub unbound_claims: UnboundClaims,
    watches: BTreeMap<GroupVersionKind, KindWatch>,
    /// Kinds that were watched until the cluster stopped serving them. They are watched again when it serves them.
    unserved_kinds: BTreeSet<GroupVersionKind>,
    /// Number of watches started.
    watched: u64,
    rules: Arc<health::HealthRules>,
    /// Fields that apps leave to other field managers.
    pub ignored_fields: Arc<IgnoreRulesByApp>,
    list_limiter: ListLimiter,
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
pub enum AffectedApps {
    Nothing,
    App(Arc<str>),
    /// Possibly every app: a list was completed, or the cluster connected or disconnected.
    Everything,
}

impl ClusterEntry {
    pub fn new(
        cluster: Cluster,
        epoch: u64,
        rules: Arc<health::HealthRules>,
        listing: ListLimiter,
        supervisor: JoinHandle<()>,
        rediscover: watch::Sender<u64>,
    ) -> Self {
        Self {
            cluster,
            connection_state: ConnectionState::Connecting,
            kubeconfig_changed: false,
            epoch,
            client: None,
            connected_at: None,
            catalog: Arc::default(),
            capabilities: None,
            has_stale_renders: false,
            observation: Observation::default(),
            was_read: false,
            desired: DesiredIndex::default(),
            has_desired: false,
            unlisted: BTreeSet::new(),
            dependencies: Arc::default(),
            undesired_objects: BTreeSet::new(),
            unhealthy_objects: UnhealthyObjects::default(),
            unbound_claims: UnboundClaims::default(),
            watches: BTreeMap::new(),
            unserved_kinds: BTreeSet::new(),
            watched: 0,
            rules,
            ignored_fields: Arc::default(),
            list_limiter: listing,
            rediscover,
            supervisor,
        }
    }

    pub fn name(&self) -> &ClusterName {
        &self.cluster.name
    }

    /// The app has an object here, or takes one over from another app of this instance.
    pub fn holds_any_of(&self, rendered: &RenderedTarget) -> bool {
        let (objects, app) = (&self.observation.objects, rendered.app.to_string());
        rendered.objects.iter().any(|object| objects.contains_key(&object.id))
            || objects.values().any(|live| *live.app == *app)
    }

    /// The end of the pause that the server requested, if it is in the future.
    pub fn throttled_until(&self, now: Instant) -> Option<Instant> {
        self.client.as_ref().and_then(|client| client.throttled_until(now))
    }

    /// The same for writes of these groups. It counts only if all of them are paused; a write to any other group can go on.
    pub fn throttled_until_for<'a>(
        &self,
        groups: impl Iterator<Item = &'a str>,
        now: Instant,
    ) -> Option<Instant> {
        let client = self.client.as_ref()?;
        let of_groups: Option<Vec<Instant>> =
            groups.map(|group| client.group_throttled_until(group, now)).collect();
        of_groups.into_iter().flatten().min().max(client.throttled_until(now))
    }

    pub fn request_discovery(&self) {
        self.rediscover.send_modify(|count| *count += 1);
    }

    /// Watches all rendered kinds in their rendered version, because values can be compared only in the applied version. A watch
    /// of a version that is not served any more would never report anything. Known objects stay until the new list.
    pub fn watch_rendered(&mut self, instance: &str, events: &mpsc::Sender<Event>) {
        self.drop_unserved_kinds();
        let rendered = self.desired.kinds.clone();
        let mut wanted: Vec<GroupVersionKind> = rendered.iter().cloned().collect();
        for watched in self.watches.keys() {
            let is_served = self.catalog.get(watched).is_some();
            if is_served && rendered.contains(watched) {
                continue;
            }
            let mut rendered = rendered.iter().filter(|it| it.is_same_group_kind(watched));
            let other = rendered.find(|it| self.catalog.get(it).is_some());
            let other = other
                .or_else(|| self.catalog.preferred().find(|it| !is_served && it.is_same_group_kind(watched)));
            wanted.extend(other.cloned());
        }
        wanted.extend(self.unserved_kinds.iter().cloned());
        let catalog = &self.catalog;
        self.watches.retain(|watched, _| {
            let replaced = |it: &GroupVersionKind| {
                it != watched && it.is_same_group_kind(watched) && catalog.get(it).is_some()
            };
            rendered.contains(watched) && catalog.get(watched).is_some() || !wanted.iter().any(replaced)
        });
        self.watch(wanted, instance, events);
    }

    /// An unserved kind has no objects. Its watch would retry for ever. While its first list is missing, an app with such an
    /// object could not even apply the missing definition.
    fn drop_unserved_kinds(&mut self) {
        let catalog = Arc::clone(&self.catalog);
        // Includes kinds without a watch: their definition may have been deleted while the cluster was offline.
        let seen: BTreeSet<&GroupVersionKind> =
            self.observation.objects.values().map(|live| &*live.kind).collect();
        let known: BTreeSet<&GroupVersionKind> = self.watches.keys().chain(seen).collect();
        let gone: Vec<GroupVersionKind> =
            known.into_iter().filter(|kind| catalog.is_without(kind)).cloned().collect();
        for kind in &gone {
            self.watches.remove(kind);
        }
        self.retain(|id| !gone.iter().any(|kind| id.has_kind(kind)));
        self.unserved_kinds.extend(gone);
    }

    /// Watches these kinds too, if the cluster serves them.
    pub fn watch(
        &mut self,
        kinds: impl IntoIterator<Item = GroupVersionKind>,
        instance: &str,
        events: &mpsc::Sender<Event>,
    ) {
        let Some(client) = &self.client else { return };
        for kind in kinds {
            // One watch per kind is enough.
            let watched = self.watches.keys().any(|known| known.is_same_group_kind(&kind));
            let Some(resource) = self.catalog.get(&kind).filter(|it| it.manageable && !watched) else {
                continue;
            };
            let stream = client.watch(resource, instance, self.rules.is_metadata_only(&kind));
            self.watched += 1;
            let number = self.watched;
            let (events, cluster, epoch, watched_kind) =
                (events.clone(), self.cluster.name.clone(), self.epoch, kind.clone());
            let listing = self.list_limiter.clone();
            let task = tokio::spawn(async move {
                let tell = async |change| {
                    let room = queue_memory::acquire_queue_memory(&change).await;
                    let news = ClusterNews::Watch { kind: watched_kind.clone(), number, change, room };
                    events.send(Event::Cluster { cluster: cluster.clone(), epoch, news }).await.is_ok()
                };
                listing.forward_changes(stream, tell).await;
            });
            let mark = self.rules.rule_digest(&kind);
            let watch = KindWatch::new(task, number, mark);
            self.watches.insert(kind, watch);
        }
        self.observation.complete = self.watches.values().all(|watch| watch.is_listed);
    }

    pub fn rules(&self) -> Arc<health::HealthRules> {
        Arc::clone(&self.rules)
    }

    /// Sets the health rules. Objects are not kept whole, so kinds with other rules are listed again. The known state stays until
    /// then.
    pub fn set_health_rules(
        &mut self,
        rules: &Arc<health::HealthRules>,
        instance: &str,
        events: &mpsc::Sender<Event>,
    ) {
        if self.rules == *rules {
            return;
        }
        self.rules = Arc::clone(rules);
        let changed: Vec<GroupVersionKind> = self
            .watches
            .iter()
            .filter(|(kind, watch)| watch.mark != rules.rule_digest(kind))
            .map(|(kind, _)| kind.clone())
            .collect();
        for kind in &changed {
            self.watches.remove(kind);
        }
        self.watch(changed, instance, events);
    }

    /// Sets the ignored fields. Known objects lack the fields that their app leaves to others. When these fields change, the kind
    /// is listed again.
    pub fn set_ignored_fields(
        &mut self,
        ignores: &Arc<IgnoreRulesByApp>,
        instance: &str,
        events: &mpsc::Sender<Event>,
    ) {
        if self.ignored_fields == *ignores {
            return;
        }
        let changed = |app: &str| self.ignored_fields.get(app) != ignores.get(app);
        let objects = self.observation.objects.iter().filter(|(_, live)| changed(&live.app));
        let objects: BTreeSet<(Arc<str>, Arc<str>)> =
            objects.map(|(id, _)| (Arc::clone(&id.group), Arc::clone(&id.kind))).collect();
        self.ignored_fields = Arc::clone(ignores);
        let kinds = self.watches.keys();
        let kinds: Vec<GroupVersionKind> = kinds
            .filter(|it| objects.contains(&(Arc::clone(&it.group), Arc::clone(&it.kind))))
            .cloned()
            .collect();
        for kind in &kinds {
            self.watches.remove(kind);
        }
        self.watch(kinds, instance, events);
    }

    /// Starts a connection: everything is listed again. The known state stays until the lists are complete.
    pub fn begin_connection(&mut self, epoch: u64, client: Client, catalog: Arc<Catalog>) {
        self.clear_versions();
        self.kubeconfig_changed = false;
        self.connection_state = ConnectionState::Ready;
        self.epoch = epoch;
        self.client = Some(client);
        self.connected_at = Some(Instant::now());
        self.unbound_claims.clear_classes();
        self.watches.clear();
        self.unserved_kinds.clear();
        self.observation.complete = false;
        self.observation.unmanaged_objects.clear();
        self.observation.absent.clear();
        self.observation.immutable_changes.clear();
        self.observation.verdicts.clear();
        self.set_catalog(catalog);
    }

    /// Forgets resource versions. The cluster may have been restored from a backup, or the new kubeconfig may lead to a copy of
    /// it, so versions do not show which state is older. The lists report everything again.
    fn clear_versions(&mut self) {
        let unknown: Arc<str> = Arc::default();
        for live in self.observation.objects.values_mut() {
            Arc::make_mut(live).resource_version = Arc::clone(&unknown);
        }
    }

    /// Watches the kinds that have objects of this instance, and those that had some: the list may come from a stale cache.
    /// Denied and unserved kinds count as empty.
    pub fn record_inventory(
        &mut self,
        looked: InventoryResult,
        instance: &str,
        events: &mpsc::Sender<Event>,
    ) {
        let InventoryResult { in_use, unlisted, denied } = looked;
        self.unlisted = unlisted.into_iter().collect();
        let known: BTreeSet<&GroupVersionKind> =
            self.observation.objects.values().map(|live| &*live.kind).collect();
        let known: Vec<GroupVersionKind> = known.into_iter().cloned().collect();
        let is_denied = |kind: &GroupVersionKind| denied.iter().any(|it| it.is_same_group_kind(kind));
        let is_unlisted =
            |kind: &GroupVersionKind| self.unlisted.iter().any(|it| it.is_same_group_kind(kind));
        let catalog = Arc::clone(&self.catalog);
        let as_served = |kind: &GroupVersionKind| match catalog.get(kind) {
            Some(_) => Some(kind.clone()),
            None => catalog.preferred().find(|it| it.is_same_group_kind(kind)).cloned(),
        };
        let to_watch = known.iter().filter(|kind| !is_denied(kind) && !is_unlisted(kind));
        let to_watch: Vec<GroupVersionKind> = to_watch.filter_map(as_served).chain(in_use).collect();
        self.watch(to_watch, instance, events);
        let is_watched = |kind: &GroupVersionKind| self.watches.keys().any(|it| it.is_same_group_kind(kind));
        let is_gone =
            |kind: &&GroupVersionKind| !is_watched(kind) && (is_denied(kind) || catalog.is_without(kind));
        let gone: Vec<GroupVersionKind> = known.iter().filter(is_gone).cloned().collect();
        self.retain(|id| !gone.iter().any(|kind| id.has_kind(kind)));
        self.note_read();
    }

    fn note_read(&mut self) {
        self.was_read |= self.is_complete() && self.unlisted.is_empty();
    }

    fn retain(&mut self, stays: impl Fn(&ObjectId) -> bool) {
        let gone: Vec<ObjectId> = self.observation.objects.keys().filter(|id| !stays(id)).cloned().collect();
        for id in &gone {
            self.observation.remove(id, || self.desired.ids().contains(id));
        }
        self.unhealthy_objects.retain(&stays);
        self.unbound_claims.retain(&stays);
        self.undesired_objects.retain(|id| stays(id));
    }

    pub fn set_desired(&mut self, wanted: DesiredIndex) {
        self.desired = wanted;
        self.has_desired = true;
        self.undesired_objects.clear();
        self.observation.unlabeled_known.retain(|id, _| self.desired.ids().contains(id));
        self.observation.unlabeled_unknown.retain(|id| self.desired.ids().contains(id));
        for (id, live) in &mut self.observation.objects {
            match self.desired.get(&live.app, id) {
                Some(object) => reconcile::settle_ownership(live, object),
                None => {
                    self.undesired_objects.insert(id.clone());
                }
            }
        }
    }

    /// Sets the render of one app. Returns whether it has a kind that is new here.
    pub fn set_app_render(&mut self, app: &str, rendered: &Arc<RenderedTarget>) -> bool {
        // Policies may read the other objects of an app.
        rendered.objects.iter().for_each(|object| _ = self.observation.verdicts.remove(&object.id));
        let (objects, has_new_kinds) = self.desired.set_render(app, rendered);
        for id in &objects {
            if self.observation.objects.get(id).is_some_and(|live| *live.app == *app) {
                self.compare_object(id, None);
            }
        }
        has_new_kinds
    }

    /// Records the result of a lookup by name.
    pub fn record_lookup(&mut self, id: &ObjectId, found: &LookupResult) {
        if matches!(found, LookupResult::Ours(live) if self.is_known_gone(id, live)) {
            return;
        }
        reconcile::record_lookup(&mut self.observation, id, found);
        self.compare_object(id, None);
    }

    /// Compares one object with its render. `seen`: the object as just observed, and the name of this instance.
    fn compare_object(&mut self, id: &ObjectId, seen: Option<(&Value, &str)>) {
        let Some(live) = self.observation.objects.get_mut(id) else {
            self.undesired_objects.remove(id);
            return;
        };
        match self.desired.get(&live.app, id) {
            Some(object) => {
                reconcile::settle_ownership(live, object);
                if let Some((seen, instance)) = seen {
                    reconcile::record_foreign_changes(live, seen, object, instance);
                }
                self.undesired_objects.remove(id);
            }
            None => {
                self.undesired_objects.insert(id.clone());
            }
        }
    }

    /// The lists of these kinds are complete. A kind that cannot be listed blocks only apps that have objects of it.
    pub fn has_listed<'a>(&self, mut kinds: impl Iterator<Item = &'a GroupVersionKind>) -> bool {
        self.is_ready()
            && kinds.all(|kind| {
                self.watches
                    .iter()
                    .filter(|(known, _)| known.is_same_group_kind(kind))
                    .all(|(_, watch)| watch.is_listed)
            })
    }

    pub fn set_catalog(&mut self, catalog: Arc<Catalog>) {
        let manageable = catalog.iter().filter(|(_, resource)| resource.manageable);
        let served = manageable.map(|(kind, resource)| (kind.clone(), resource.namespaced)).collect();
        self.observation.served_kinds = Arc::new(served);
        let facts = catalog.capabilities(self.capabilities.as_deref());
        // An equal value keeps its allocation, because renders are compared with it.
        if self.capabilities.as_deref() != Some(&facts) {
            self.capabilities = Some(Arc::new(facts));
        }
        self.catalog = catalog;
    }

    /// Handles an event of a watch.
    pub fn watched(
        &mut self,
        kind: &GroupVersionKind,
        number: u64,
        change: WatchChange,
        instance: &str,
        words: &mut StringInterner,
    ) -> AffectedApps {
        let Some(watch) = self.watches.get_mut(kind).filter(|watch| watch.number == number) else {
            return AffectedApps::Nothing;
        };
        if !matches!(
            change,
            WatchChange::Disconnected(_) | WatchChange::ListStarted | WatchChange::WatchLost { .. }
        ) {
            watch.error = None;
        }
        match change {
            WatchChange::ListStarted => {
                watch.listed_objects = Some(BTreeSet::new());
                watch.listing_since.get_or_insert_with(Instant::now);
                AffectedApps::Nothing
            }
            WatchChange::ListEnded { version } => {
                watch.is_listed = true;
                watch.listing_since = None;
                watch.seen_version = version_number(&version);
                if let Some(seen) = watch.listed_objects.take() {
                    self.retain(|id| !id.has_kind(kind) || seen.contains(id));
                }
                self.observation.complete = self.watches.values().all(|watch| watch.is_listed);
                self.note_read();
                AffectedApps::Everything
            }
            WatchChange::Updated(object) => {
                let Some(id) = ObjectId::of(&object) else { return AffectedApps::Nothing };
                watch.observe_event(&object, &id, true);
                self.record_object(kind, id, *object, instance, words)
            }
            WatchChange::Removed(object) => {
                let Some(id) = ObjectId::of(&object) else { return AffectedApps::Nothing };
                watch.observe_event(&object, &id, false);
                self.remove_object(&id)
            }
            WatchChange::Disconnected(error) => {
                tracing::debug!(cluster = %self.cluster.name, %kind, error, "a watch ended with an error; it \
                    is started again");
                watch.error = Some(error);
                // The last complete list is too old to rely on.
                if watch.is_listed && watch.listing_since.is_some_and(|since| since.elapsed() >= LIST_TIMEOUT)
                {
                    watch.is_listed = false;
                    self.observation.complete = false;
                    return AffectedApps::Everything;
                }
                AffectedApps::Nothing
            }
            WatchChange::WatchLost { since, why } => {
                let since = since.strftime("%Y-%m-%d %H:%M UTC");
                watch.silent_reason = Some(format!("cannot be watched since {since}: {why}"));
                AffectedApps::Everything
            }
            WatchChange::WatchRestored => {
                watch.silent_reason = None;
                AffectedApps::Everything
            }
        }
    }

    /// The objects that one app needs: those that it renders, and those that it applied and renders no longer. `complete` then
    /// refers to these kinds.
    pub fn observation_for(&self, rendered: &RenderedTarget) -> Observation {
        let app = rendered.app.to_string();
        let is_its = |id: &&ObjectId| self.observation.objects.get(*id).is_some_and(|live| *live.app == *app);
        let strays = self.undesired_objects.iter().filter(is_its);
        self.observation.subset(rendered.objects.iter().map(|object| &object.id).chain(strays))
    }
}
