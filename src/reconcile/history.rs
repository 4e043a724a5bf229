//! Renders earlier commits again, from Git, when they are needed. Nothing is kept in memory.
//!
//! A result counts only if its hash is the one on the cluster. It differs if the commit is no longer in the repository, if a
//! chart cannot be fetched any more, if the cluster serves other APIs now, or if this program renders differently from the one
//! that applied it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Mutex;

use crate::apply;
use crate::fleet::{self, Fleet, Target};
use crate::model::{
    AppId, Capabilities, Chart, ClusterName, DecryptionKeys, LastApplied, RegistryContents, RenderedObject,
    RenderedTarget, Revision, Snapshot,
};
use crate::render::{DiscoveredCapabilities, FleetRenderer};
use crate::source::{self, AppSourceCommit, AppSources, ConfigRepository};
use crate::{chart, manifest};

#[derive(Debug, Default)]
pub struct RenderHistory {
    /// `None`: a folder without history.
    repository: Option<ConfigRepository>,
    charts: Arc<chart::ChartService>,
    keys: DecryptionKeys,
    /// Clusters that are registered outside of Git have no history: their current registration is used.
    registered: parking_lot::Mutex<Option<Arc<RegistryContents>>>,
    /// Callers that wait for a read.
    waiting_readers: AtomicUsize,
    /// The last read state while callers wait: apps that were applied from one commit share one read.
    read: Mutex<Option<Arc<PastRepository>>>,
}

#[derive(Debug)]
struct PastRepository {
    revision: Revision,
    snapshot: Snapshot,
    fleet: Fleet,
}

impl RenderHistory {
    pub fn new(
        repository: Option<ConfigRepository>,
        charts: Arc<chart::ChartService>,
        keys: DecryptionKeys,
    ) -> Self {
        Self { repository, charts, keys, ..Self::default() }
    }

    pub fn set_registered_clusters(&self, registered: Option<Arc<RegistryContents>>) {
        *self.registered.lock() = registered;
    }

    /// The files may be encrypted.
    pub fn may_decrypt(&self) -> bool {
        !self.keys.is_empty()
    }

    async fn repository_at(&self, revision: &Revision) -> Option<Arc<PastRepository>> {
        self.waiting_readers.fetch_add(1, Ordering::SeqCst);
        let mut read = self.read.lock().await;
        let known = read.clone().filter(|state| state.revision == *revision);
        let state = match known {
            Some(state) => Some(state),
            None => self.read(revision).await,
        };
        let is_last = self.waiting_readers.fetch_sub(1, Ordering::SeqCst) == 1;
        *read = if is_last { None } else { state.clone() };
        state
    }

    async fn read(&self, revision: &Revision) -> Option<Arc<PastRepository>> {
        let snapshot = self.accept_snapshot(revision, self.repository.as_ref()?.snapshot(revision).await)?;
        let revision = revision.clone();
        let state = tokio::task::spawn_blocking(move || {
            let fleet = fleet::assemble(manifest::read(&snapshot), &snapshot);
            PastRepository { revision, snapshot, fleet }
        });
        Some(Arc::new(state.await.ok()?))
    }

    fn accept_snapshot(
        &self,
        revision: &Revision,
        read: Result<Snapshot, source::Error>,
    ) -> Option<Snapshot> {
        let mut snapshot = read
            .inspect_err(
                |error| tracing::warn!(%error, revision = revision.short(), "an earlier commit cannot be read"),
            )
            .ok()?;
        snapshot.keys = self.keys.clone();
        snapshot.registry = self.registered.lock().clone();
        Some(snapshot)
    }

    async fn read_snapshot(&self, revision: &Revision) -> Option<Snapshot> {
        self.accept_snapshot(revision, self.repository.as_ref()?.files_without_history(revision).await)
    }

    /// The targets that a revision removed, compared with an earlier one.
    pub async fn removed_targets(&self, before: &Revision, by: &Revision) -> Option<BTreeSet<Target>> {
        let (before, after) = (self.read_snapshot(before).await?, self.read_snapshot(by).await?);
        let compare = move || {
            let fleet = |snapshot: Snapshot| fleet::assemble(manifest::read(&snapshot), &snapshot);
            let before = fleet(before);
            fleet(after).removed_targets(&before)
        };
        tokio::task::spawn_blocking(compare).await.ok()
    }

    /// One app at a revision, with its charts, without other apps and their checks. `memory`: the parsed files of the head, most
    /// of which are equal.
    pub async fn app_at(
        &self,
        revision: &Revision,
        app: &AppId,
        mut memory: manifest::ManifestCache,
    ) -> Option<(Snapshot, Fleet, Vec<Arc<Chart>>)> {
        let (snapshot, app) = (self.read_snapshot(revision).await?, app.clone());
        let read = tokio::task::spawn_blocking(move || {
            let mut manifests = manifest::read_incremental(&snapshot, &mut memory);
            manifests.apps.retain(|it| it.id == app || it.is_project());
            let fleet = fleet::assemble(manifests, &snapshot);
            (snapshot, fleet)
        });
        let (snapshot, fleet) = read.await.ok()?;
        let charts = self.charts.prefetch(&fleet::charts::remote_sources(&fleet)).await;
        Some((snapshot, fleet, charts))
    }

    pub fn charts(&self) -> &Arc<chart::ChartService> {
        &self.charts
    }

    /// The configured branch, if any.
    pub fn branch(&self) -> Option<&str> {
        self.repository.as_ref()?.branch()
    }

    /// The commits that changed an app: see [`ConfigRepository::app_commits`].
    pub async fn steps(
        &self,
        since: Option<Revision>,
        until: Revision,
        made_of: AppSources,
    ) -> Result<Option<Vec<AppSourceCommit<Revision>>>, source::Error> {
        match &self.repository {
            Some(repository) => repository.app_commits(since, until, made_of).await,
            None => Ok(None),
        }
    }

    /// The folder of an app at a commit, with the final `/`; `None` if the commit lacks the app.
    pub async fn folder_at(&self, revision: &Revision, app: &AppId) -> Option<String> {
        let (_, fleet, _) = self.app_at(revision, app, manifest::ManifestCache::default()).await?;
        fleet.apps.get(app).map(|app| app.folder().to_owned())
    }

    async fn render_target(
        &self,
        revision: &Revision,
        target: Target,
        discovered: DiscoveredCapabilities,
    ) -> Option<RenderedTarget> {
        let (state, charts) = (self.repository_at(revision).await?, Arc::clone(&self.charts));
        // Only its own charts: others may be slow.
        let app = state.fleet.apps.get(&target.app)?;
        let own = charts.prefetch(&fleet::charts::remote_sources_of(app, &state.fleet)).await;
        let rendered = tokio::task::spawn_blocking(move || {
            let _own = own;
            let renderer =
                FleetRenderer::with_capabilities(&state.fleet, &state.snapshot, &*charts, discovered);
            renderer.render(&target).ok()
        });
        rendered.await.ok()?
    }
}

/// The history of one cluster.
pub struct ClusterHistory<'a> {
    pub history: &'a RenderHistory,
    pub cluster: &'a ClusterName,
    pub facts: &'a Option<Arc<Capabilities>>,
}

impl apply::ApplyHistory for ClusterHistory<'_> {
    fn applied_object<'a>(
        &'a self,
        object: &'a RenderedObject,
        was: &'a LastApplied,
    ) -> BoxFuture<'a, Option<RenderedObject>> {
        let Self { history, cluster, facts } = *self;
        async move {
            let discovered = facts.iter().map(|facts| (cluster.clone(), Arc::clone(facts))).collect();
            let target = Target { app: was.app.clone(), cluster: cluster.clone() };
            let rendered = history.render_target(&was.revision, target, discovered).await?;
            let is_it = |it: &&RenderedObject| {
                it.hash == was.hash || was.content.is_some_and(|content| it.content() == content)
            };
            rendered.objects.iter().filter(|it| it.id == object.id).find(is_it).cloned()
        }
        .boxed()
    }
}
