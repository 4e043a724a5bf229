//! Clusters: handles their registration, removal, changes and watch events.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::cause_searches::CauseSearches;
use super::cluster_entry::{ClusterEntry, Reach, Touched};
use super::event::ClusterNews;
use super::supervisor::Supervisor;
use super::world::World;
use crate::fleet::{Fleet, Target};
use crate::health;
use crate::model::{AppId, Cluster, ClusterName, Ignores};

/// Distance between the first epochs of two entries; no supervisor connects that often.
const EPOCHS_EACH: u64 = 1 << 32;

impl World {
    pub(super) fn take_fleet(&mut self, fleet: Arc<Fleet>) {
        if fleet.is_usable() {
            self.stop_if_the_ground_moves(&fleet);
            if self.instance.name != fleet.instance.name {
                // Another instance name is another inventory: observations under the old name do not count.
                self.in_flight.cancel_all();
                self.clusters.clear();
                self.targets.clear();
                self.apps.clear();
                self.searches = CauseSearches::default();
                self.prune.forget();
            }
            let is_other = *self.instance != fleet.instance;
            self.instance = Arc::new(fleet.instance.clone());
            self.take_clusters(&fleet);
            self.take_ignores(&fleet);
            if is_other {
                let all: Vec<Target> = self.targets.keys().cloned().collect();
                for id in &all {
                    // A refusal may have ended, for example by `force`.
                    if let Some(entry) = self.targets.get_mut(id) {
                        entry.begin_anew();
                    }
                    self.look_at(id);
                }
            }
        }
        self.fleet = Some(fleet);
    }

    /// A commit that forbids writes takes effect when it is read. A commit that allows them (end of maintenance or of observe
    /// mode) takes effect with its render, because the current render is that of the commit before.
    fn stop_if_the_ground_moves(&mut self, fleet: &Fleet) {
        let is_other = *self.instance != fleet.instance;
        let moves = |name, known: &Cluster| fleet.clusters.get(name).is_some_and(|cluster| cluster != known);
        let known = self.clusters.iter();
        let moving: Vec<&ClusterName> = known
            .filter(|(name, known)| is_other || moves(*name, &known.cluster))
            .map(|(name, _)| name)
            .collect();
        if !is_other && moving.is_empty() {
            return;
        }
        self.ground_moved = true;
        moving.into_iter().for_each(|name| self.stop_writing_to(name));
    }

    fn take_clusters(&mut self, fleet: &Fleet) {
        // An unreadable file is not a removed file.
        if fleet.is_valid() {
            let gone = self.clusters.keys().filter(|name| !fleet.clusters.contains_key(*name));
            gone.for_each(|name| self.stop_writing_to(name));
            self.take_dropped(fleet);
            let searches = &mut self.searches;
            self.clusters.retain(|name, _| {
                let stays = fleet.clusters.contains_key(name);
                if !stays {
                    searches.forget_cluster(name);
                }
                stays
            });
        }
        for (name, cluster) in &fleet.clusters {
            match self.clusters.get_mut(name) {
                Some(entry) if entry.cluster.connection == cluster.connection => {
                    entry.take_rules(&fleet.health, &self.instance.name, &self.events);
                    if entry.cluster != *cluster {
                        entry.cluster = cluster.clone();
                        self.look_at_all(name);
                    }
                }
                _ => {
                    let entry = self.supervise(cluster, &fleet.health);
                    self.clusters.insert(name.clone(), entry);
                    self.searches.forget_cluster(name);
                    self.stop_writing_to(name);
                    self.touch_rollouts(name);
                }
            }
        }
        // No target waits for a slot of a removed cluster or one that is not ready.
        self.agenda.open_all();
    }

    /// Updates the fields that apps leave to other field managers.
    fn take_ignores(&mut self, fleet: &Fleet) {
        let ignores = fleet.apps.values().filter(|app| !app.ignore.is_empty());
        let ignores: Arc<Ignores> =
            Arc::new(ignores.map(|app| (app.id.to_string().into(), app.ignore.clone())).collect());
        for entry in self.clusters.values_mut() {
            entry.take_ignores(&ignores, &self.instance.name, &self.events);
        }
    }

    fn supervise(&mut self, cluster: &Cluster, rules: &Arc<health::Rules>) -> ClusterEntry {
        let (rediscover, asked) = watch::channel(0);
        self.epochs += EPOCHS_EACH;
        let supervisor = Supervisor {
            cluster: cluster.name.clone(),
            link: (self.settings.links)(cluster),
            instance: self.instance.name.clone(),
            events: self.events.clone(),
            rediscover: asked,
            first_epoch: self.epochs,
            read_every: Supervisor::READ_EVERY,
            permit: self.settings.permit.clone(),
        };
        let task = tokio::spawn(supervisor.run());
        ClusterEntry::new(
            cluster.clone(),
            self.epochs,
            Arc::clone(rules),
            self.listing.for_another(),
            task,
            rediscover,
        )
    }

    /// Watches every kind that is rendered for a cluster.
    pub(super) fn watch_rendered(&mut self, name: &ClusterName) {
        if let Some(entry) = self.clusters.get_mut(name) {
            entry.watch_rendered(&self.instance.name, &self.events);
        }
    }

    pub(super) fn cluster_news(&mut self, name: &ClusterName, epoch: u64, news: ClusterNews) {
        let Some(entry) = self.clusters.get_mut(name).filter(|entry| epoch >= entry.epoch) else { return };
        // No target waits for a slot of a cluster that is not ready.
        self.agenda.open(name);
        match news {
            ClusterNews::Up { client, catalog, looked } => {
                tracing::info!(cluster = %name, "connected");
                self.prune.connected(name, &self.in_flight);
                self.policing.connected(name);
                entry.connected(epoch, client, catalog);
                entry.watch_rendered(&self.instance.name, &self.events);
                entry.looked(looked, &self.instance.name, &self.events);
                self.searches.connected(name);
                self.note_stale(name);
                self.render_stale();
                self.try_again(name);
                self.touch(name, &Touched::Everything);
            }
            ClusterNews::Serves(catalog) => {
                entry.serves(catalog);
                self.watch_rendered(name);
                self.note_stale(name);
                self.render_stale();
                self.touch(name, &Touched::Everything);
            }
            ClusterNews::Listed(looked) => {
                entry.looked(looked, &self.instance.name, &self.events);
            }
            ClusterNews::Down { detail, attempts, lasting } => {
                if entry.reach == Reach::Ready || attempts == 1 {
                    tracing::info!(cluster = %name, detail, "the cluster does not answer; the others go on");
                }
                let was_offline = matches!(entry.reach, Reach::Offline { .. });
                entry.reach = Reach::Offline { detail, attempts, lasting };
                self.stop_writing_to(name);
                if !was_offline {
                    self.touch_rollouts(name);
                }
            }
            ClusterNews::Left => {
                entry.left = true;
                self.stop_writing_to(name);
                self.touch_rollouts(name);
            }
            ClusterNews::StorageClass { class, binding } => {
                entry.claims.note_class(Arc::clone(&class), binding, Instant::now());
                if binding.is_some() {
                    self.touch(name, &Touched::Everything);
                } else {
                    self.ask_class_again(name, &class);
                }
            }
            ClusterNews::DeleteJudged { candidate, admission, result } => {
                self.delete_judged(&candidate, &admission, result);
            }
            ClusterNews::Watch { kind, number, change, room } => {
                let touched = entry.watched(&kind, number, change, &self.instance.name, &mut self.words);
                drop(room);
                if &*kind.kind == "CustomResourceDefinition" && touched != Touched::Nothing {
                    entry.ask_what_it_serves();
                }
                // A namespace, and the limits of a project, affect every app in that namespace.
                let opens = match &touched {
                    Touched::App(app) => {
                        &*kind.kind == "Namespace" || AppId::parse(app).is_some_and(|app| app.is_project())
                    }
                    Touched::Nothing | Touched::Everything => false,
                };
                self.touch(name, if opens { &Touched::Everything } else { &touched });
            }
        }
    }

    /// Marks the apps that have a claim of this class. Their plans do not change, and they read the class again later.
    fn ask_class_again(&mut self, cluster: &ClusterName, class: &str) {
        let Some(entry) = self.clusters.get(cluster) else { return };
        let owners = entry.claims.of_class(class).filter_map(|id| {
            let app = AppId::parse(&entry.observation.objects.get(id)?.app)?;
            Some(Target { app, cluster: cluster.clone() })
        });
        owners.for_each(|id| self.agenda.mark(id));
    }

    /// The participation of a cluster in rollouts must be checked again.
    fn touch_rollouts(&mut self, name: &ClusterName) {
        for id in self.targets.names_on(name) {
            self.apps.touch(&id);
        }
    }

    /// Work in progress may still read, but starts no write any more.
    fn stop_writing_to(&self, name: &ClusterName) {
        self.in_flight.cancel_cluster(name);
    }

    /// The cluster answers again: targets with temporary failures are retried at once.
    fn try_again(&mut self, cluster: &ClusterName) {
        for id in self.targets.names_on(cluster) {
            if let Some(entry) = self.targets.get_mut(&id)
                && entry.failure.as_ref().is_some_and(|failure| !failure.lasting)
            {
                entry.went_through();
            }
        }
    }

    /// Marks the targets that an event affects.
    pub(super) fn touch(&mut self, cluster: &ClusterName, touched: &Touched) {
        match touched {
            Touched::Nothing => {}
            Touched::App(app) => {
                if let Some(app) = AppId::parse(app) {
                    self.look_at(&Target { app, cluster: cluster.clone() });
                }
            }
            Touched::Everything => {
                self.relate(cluster);
                for id in self.targets.names_on(cluster) {
                    self.look_at(&id);
                }
            }
        }
    }
}
