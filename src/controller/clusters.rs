//! Clusters: handles their registration, removal, changes and watch events.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::cause_searches::CauseSearches;
use super::cluster_entry::{AffectedApps, ClusterEntry, ConnectionState};
use super::event::ClusterNews;
use super::state::ControllerState;
use super::supervisor::ClusterSupervisor;
use crate::fleet::{Fleet, Target};
use crate::health;
use crate::model::{AppId, Cluster, ClusterName, IgnoreRulesByApp};

/// Distance between the first epochs of two entries; no supervisor connects that often.
const EPOCHS_PER_ENTRY: u64 = 1 << 32;

impl ControllerState {
    pub(super) fn update_fleet(&mut self, fleet: Arc<Fleet>) {
        if fleet.is_usable() {
            self.stop_writes_on_config_change(&fleet);
            if self.instance.name != fleet.instance.name {
                // Another instance name is another inventory: observations under the old name do not count.
                self.in_flight.cancel_all();
                self.clusters.clear();
                self.targets.clear();
                self.rollout_apps.clear();
                self.searches = CauseSearches::default();
                self.prune.clear();
            }
            let is_other = *self.instance != fleet.instance;
            self.instance = Arc::new(fleet.instance.clone());
            self.update_clusters(&fleet);
            self.update_ignored_fields(&fleet);
            if is_other {
                let all: Vec<Target> = self.targets.keys().cloned().collect();
                for id in &all {
                    // A refusal may have ended, for example by `force`.
                    if let Some(entry) = self.targets.get_mut(id) {
                        entry.reset_retries();
                    }
                    self.mark_due(id);
                }
            }
        }
        self.fleet = Some(fleet);
    }

    /// A commit that forbids writes takes effect when it is read. A commit that allows them (end of maintenance or of observe
    /// mode) takes effect with its render, because the current render is that of the commit before.
    fn stop_writes_on_config_change(&mut self, fleet: &Fleet) {
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
        self.config_changed = true;
        moving.into_iter().for_each(|name| self.cancel_writes_to(name));
    }

    fn update_clusters(&mut self, fleet: &Fleet) {
        // An unreadable file is not a removed file.
        if fleet.is_valid() {
            let gone = self.clusters.keys().filter(|name| !fleet.clusters.contains_key(*name));
            gone.for_each(|name| self.cancel_writes_to(name));
            self.update_unregistered(fleet);
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
                    entry.set_health_rules(&fleet.health, &self.instance.name, &self.events);
                    if entry.cluster != *cluster {
                        entry.cluster = cluster.clone();
                        self.mark_all_due(name);
                    }
                }
                _ => {
                    let entry = self.start_supervisor(cluster, &fleet.health);
                    self.clusters.insert(name.clone(), entry);
                    self.searches.forget_cluster(name);
                    self.cancel_writes_to(name);
                    self.mark_rollouts_due(name);
                }
            }
        }
        // No target waits for a slot of a removed cluster or one that is not ready.
        self.work_queue.free_all_slots();
    }

    /// Updates the fields that apps leave to other field managers.
    fn update_ignored_fields(&mut self, fleet: &Fleet) {
        let ignores = fleet.apps.values().filter(|app| !app.ignore.is_empty());
        let ignores: Arc<IgnoreRulesByApp> =
            Arc::new(ignores.map(|app| (app.id.to_string().into(), app.ignore.clone())).collect());
        for entry in self.clusters.values_mut() {
            entry.set_ignored_fields(&ignores, &self.instance.name, &self.events);
        }
    }

    fn start_supervisor(&mut self, cluster: &Cluster, rules: &Arc<health::HealthRules>) -> ClusterEntry {
        let (rediscover, asked) = watch::channel(0);
        self.epoch_counter += EPOCHS_PER_ENTRY;
        let supervisor = ClusterSupervisor {
            cluster: cluster.name.clone(),
            link: (self.settings.link_resolver)(cluster),
            instance: self.instance.name.clone(),
            events: self.events.clone(),
            rediscover: asked,
            first_epoch: self.epoch_counter,
            kubeconfig_poll_interval: ClusterSupervisor::KUBECONFIG_POLL_INTERVAL,
            permit: self.settings.permit.clone(),
        };
        let task = tokio::spawn(supervisor.run());
        ClusterEntry::new(
            cluster.clone(),
            self.epoch_counter,
            Arc::clone(rules),
            self.list_limiter.for_another_cluster(),
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

    pub(super) fn handle_cluster_news(&mut self, name: &ClusterName, epoch: u64, news: ClusterNews) {
        let Some(entry) = self.clusters.get_mut(name).filter(|entry| epoch >= entry.epoch) else { return };
        // No target waits for a slot of a cluster that is not ready.
        self.work_queue.open(name);
        match news {
            ClusterNews::Up { client, catalog, looked } => {
                tracing::info!(cluster = %name, "connected");
                self.prune.begin_connection(name, &self.in_flight);
                self.policy_state.connected(name);
                entry.begin_connection(epoch, client, catalog);
                entry.watch_rendered(&self.instance.name, &self.events);
                entry.record_inventory(looked, &self.instance.name, &self.events);
                self.searches.connected(name);
                self.mark_stale_targets(name);
                self.render_stale();
                self.retry_failed_targets(name);
                self.mark_affected(name, &AffectedApps::Everything);
            }
            ClusterNews::ApisChanged(catalog) => {
                entry.set_catalog(catalog);
                self.watch_rendered(name);
                self.mark_stale_targets(name);
                self.render_stale();
                self.mark_affected(name, &AffectedApps::Everything);
            }
            ClusterNews::InventoryTaken(looked) => {
                entry.record_inventory(looked, &self.instance.name, &self.events);
            }
            ClusterNews::Down { detail, attempts, lasting } => {
                if entry.connection_state == ConnectionState::Ready || attempts == 1 {
                    tracing::info!(cluster = %name, detail, "the cluster does not answer; the other clusters \
                        are not affected");
                }
                let was_offline = matches!(entry.connection_state, ConnectionState::Offline { .. });
                entry.connection_state = ConnectionState::Offline { detail, attempts, lasting };
                self.cancel_writes_to(name);
                if !was_offline {
                    self.mark_rollouts_due(name);
                }
            }
            ClusterNews::KubeconfigChanged => {
                entry.kubeconfig_changed = true;
                self.cancel_writes_to(name);
                self.mark_rollouts_due(name);
            }
            ClusterNews::StorageClass { class, binding } => {
                entry.unbound_claims.note_class(Arc::clone(&class), binding, Instant::now());
                if binding.is_some() {
                    self.mark_affected(name, &AffectedApps::Everything);
                } else {
                    self.mark_class_users_due(name, &class);
                }
            }
            ClusterNews::DeleteJudged { candidate, admission, result } => {
                self.handle_delete_verdict(&candidate, &admission, result);
            }
            ClusterNews::Watch { kind, number, change, room } => {
                let touched = entry.watched(&kind, number, change, &self.instance.name, &mut self.interner);
                drop(room);
                if &*kind.kind == "CustomResourceDefinition" && touched != AffectedApps::Nothing {
                    entry.request_discovery();
                }
                // A namespace, and the limits of a project, affect every app in that namespace.
                let opens = match &touched {
                    AffectedApps::App(app) => {
                        &*kind.kind == "Namespace" || AppId::parse(app).is_some_and(|app| app.is_project())
                    }
                    AffectedApps::Nothing | AffectedApps::Everything => false,
                };
                self.mark_affected(name, if opens { &AffectedApps::Everything } else { &touched });
            }
        }
    }

    /// Marks the apps that have a claim of this class. Their plans do not change, and they read the class again later.
    fn mark_class_users_due(&mut self, cluster: &ClusterName, class: &str) {
        let Some(entry) = self.clusters.get(cluster) else { return };
        let owners = entry.unbound_claims.claims_of_class(class).filter_map(|id| {
            let app = AppId::parse(&entry.observation.objects.get(id)?.app)?;
            Some(Target { app, cluster: cluster.clone() })
        });
        owners.for_each(|id| self.work_queue.mark_due(id));
    }

    /// The participation of a cluster in rollouts must be checked again.
    fn mark_rollouts_due(&mut self, name: &ClusterName) {
        for id in self.targets.targets_on(name) {
            self.rollout_apps.touch(&id);
        }
    }

    /// Work in progress may still read, but starts no write any more.
    fn cancel_writes_to(&self, name: &ClusterName) {
        self.in_flight.cancel_cluster(name);
    }

    /// The cluster answers again: targets with temporary failures are retried at once.
    fn retry_failed_targets(&mut self, cluster: &ClusterName) {
        for id in self.targets.targets_on(cluster) {
            if let Some(entry) = self.targets.get_mut(&id)
                && entry.failure.as_ref().is_some_and(|failure| !failure.lasting)
            {
                entry.record_success();
            }
        }
    }

    /// Marks the targets that an event affects.
    pub(super) fn mark_affected(&mut self, cluster: &ClusterName, touched: &AffectedApps) {
        match touched {
            AffectedApps::Nothing => {}
            AffectedApps::App(app) => {
                if let Some(app) = AppId::parse(app) {
                    self.mark_due(&Target { app, cluster: cluster.clone() });
                }
            }
            AffectedApps::Everything => {
                self.refresh_dependencies(cluster);
                for id in self.targets.targets_on(cluster) {
                    self.mark_due(&id);
                }
            }
        }
    }
}
