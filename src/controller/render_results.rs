//! Starts the renders of the head, and gives their results to the targets.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::apps::AppHeads;
use super::cluster_entry::{ClusterEntry, ConnectionState};
use super::desired_index::DesiredIndex;
use super::head_renders::HeadRenderInput;
use super::state::ControllerState;
use super::target_entry::TargetEntry;
use crate::fleet::Target;
use crate::model::{App, ClusterName};
use crate::plan::ApplySettings;
use crate::render::{Admission, Renders};

impl ControllerState {
    /// Starts to render the head for the current clusters. Unchanged apps are not rendered again.
    pub(super) fn render(&mut self) {
        let (Some(fleet), Some(snapshot)) = (&self.fleet, &self.snapshot) else { return };
        let known =
            |(name, entry): (&ClusterName, &ClusterEntry)| Some((name.clone(), entry.capabilities.clone()?));
        let head = HeadRenderInput {
            fleet: Arc::clone(fleet),
            snapshot: Arc::clone(snapshot),
            charts: Arc::clone(&self.settings.charts),
            discovered: self.clusters.iter().filter_map(known).collect(),
            heads: Arc::clone(&self.rollout_apps.heads),
            metrics: self.settings.metrics.clone(),
        };
        self.renders.begin(head, self.events.clone());
    }

    pub(super) fn handle_rendered(
        &mut self,
        number: u64,
        renders: Renders,
        heads: &Arc<AppHeads>,
        admission: Option<Arc<Admission>>,
    ) {
        tracing::debug!(revision = renders.revision.short(), made = renders.render_count, "rendered");
        // A newer revision or other clusters may have replaced this render.
        let Some(renders) = self.renders.accept(number, renders) else { return };
        let Some(fleet) = self.fleet.clone() else { return };
        self.rendered_head = Some(renders.revision.clone());
        if !fleet.is_usable() {
            // Without an instance no app can be judged. Running objects stay, and targets that were stale before stay unrendered.
            return;
        }
        self.config_changed = false;
        let mut broken = self.broken_targets(&fleet);
        broken.extend(self.hidden_targets(&fleet, &renders));
        // Clusters whose rendered objects changed.
        let mut changed: BTreeSet<ClusterName> = self
            .clusters
            .iter()
            .filter(|(_, entry)| !entry.has_desired)
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
            fleet.removed_targets_of(&places[0].0, clusters)
        });
        self.add_pending_removals(left, &renders.revision);
        let rendered = renders.iter().filter_map(|(id, render)| {
            let app = fleet.apps.get(&id.app).cloned()?;
            Some((id, (app, render.clone())))
        });
        self.update_heads(&fleet, heads);
        for (id, (app, render)) in rendered.chain(broken) {
            let in_waves = self.rollout_apps.contains(&id.app) && render.1.is_ok();
            let cluster = self.clusters.get(&id.cluster).map(|entry| &entry.cluster);
            let settings = ApplySettings::of(&app, &self.instance, self.mode(), cluster);
            // The reconciliation in progress began with other settings.
            if in_waves && self.targets.get(&id).is_some_and(|known| *known.settings != settings) {
                self.in_flight.cancel(&id);
            }
            if self.targets.update(&id, app, settings.into(), render, in_waves) {
                // The previous render is not applied any further. For an app in waves the next decision does that.
                if !in_waves {
                    self.in_flight.cancel(&id);
                }
                changed.insert(id.cluster.clone());
                self.work_queue.mark_due(id);
            }
        }
        self.update_admission(admission);
        // This revision may end the reason for a wait.
        let due = self.targets.iter().filter(|(id, entry)| entry.is_due && !self.in_flight.is_running(id));
        let due: Vec<Target> = due.map(|(id, _)| id.clone()).collect();
        due.into_iter().for_each(|id| self.work_queue.mark_due(id));
        let names: Vec<ClusterName> = self.clusters.keys().cloned().collect();
        for name in names {
            if changed.contains(&name) {
                self.refresh_desired_index(&name);
            }
            if self.refresh_dependencies(&name) {
                self.mark_all_due(&name);
            }
            self.mark_stale_targets(&name);
        }
        self.render_stale();
    }

    /// The rendered objects of a cluster changed.
    pub(super) fn refresh_desired_index(&mut self, name: &ClusterName) {
        let renders = self
            .targets
            .entries_on(name)
            .filter_map(|(_, entry)| Some((entry.render.as_ref().ok()?, entry.head.as_ref().ok()?)));
        let wanted = DesiredIndex::of(renders);
        if let Some(cluster) = self.clusters.get_mut(name) {
            cluster.set_desired(wanted);
        }
        self.watch_rendered(name);
    }

    /// Marks the targets that were rendered for other capabilities than those of the cluster now.
    pub(super) fn mark_stale_targets(&mut self, name: &ClusterName) {
        let Some(cluster) = self.clusters.get_mut(name) else { return };
        let stale: BTreeSet<Target> = match (self.renders.last(), &cluster.capabilities) {
            (Some(renders), Some(found)) => {
                renders.stale_targets(&cluster.cluster, found).into_iter().collect()
            }
            _ => BTreeSet::new(),
        };
        cluster.has_stale_renders = !stale.is_empty();
        for id in self.targets.targets_on(name) {
            let is_stale = stale.contains(&id);
            if let Some(entry) = self.targets.get_mut(&id)
                && entry.is_stale != is_stale
            {
                entry.is_stale = is_stale;
                self.work_queue.mark_due(id);
            }
        }
    }

    /// One render at a time. Changes during a render are handled when it ends or takes long.
    pub(super) fn render_stale(&mut self) {
        let is_any_stale = || self.clusters.values().any(|cluster| cluster.has_stale_renders);
        if self.renders.needs_rerender() || !self.renders.blocks_cluster_renders() && is_any_stale() {
            self.render();
        }
    }

    /// It was rendered without the capabilities of its cluster, or with outdated ones. Its errors may be wrong.
    pub(super) fn is_provisional(&self, id: &Target, entry: &TargetEntry) -> bool {
        let reach = self.clusters.get(&id.cluster).map(|cluster| &cluster.connection_state);
        let is_broken = || self.fleet.as_ref().is_some_and(|fleet| fleet.broken_apps.contains_key(&id.app));
        entry.is_stale
            || entry.awaited().is_some()
            || (entry.render.is_err() && reach == Some(&ConnectionState::Connecting) && !is_broken())
    }
}
