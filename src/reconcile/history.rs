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
    AppId, Capabilities, Chart, ClusterName, Keys, Registered, Rendered, RenderedObject, Revision, Snapshot,
    Was,
};
use crate::render::{Discovered, Renderer};
use crate::source::{self, MadeOf, Repository, Step};
use crate::{chart, manifest};

#[derive(Debug, Default)]
pub struct History {
    /// `None`: a folder without history.
    repository: Option<Repository>,
    charts: Arc<chart::Service>,
    keys: Keys,
    /// Clusters that are registered outside of Git have no history: their current registration is used.
    registered: parking_lot::Mutex<Option<Arc<Registered>>>,
    /// Callers that wait for a read.
    waiting: AtomicUsize,
    /// The last read state while callers wait: apps that were applied from one commit share one read.
    read: Mutex<Option<Arc<State>>>,
}

#[derive(Debug)]
struct State {
    revision: Revision,
    snapshot: Snapshot,
    fleet: Fleet,
}

impl History {
    pub fn new(repository: Option<Repository>, charts: Arc<chart::Service>, keys: Keys) -> Self {
        Self { repository, charts, keys, ..Self::default() }
    }

    pub fn register(&self, registered: Option<Arc<Registered>>) {
        *self.registered.lock() = registered;
    }

    /// The files may be encrypted.
    pub fn opens_files(&self) -> bool {
        !self.keys.is_empty()
    }

    async fn at(&self, revision: &Revision) -> Option<Arc<State>> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut read = self.read.lock().await;
        let known = read.clone().filter(|state| state.revision == *revision);
        let state = match known {
            Some(state) => Some(state),
            None => self.read(revision).await,
        };
        let is_last = self.waiting.fetch_sub(1, Ordering::SeqCst) == 1;
        *read = if is_last { None } else { state.clone() };
        state
    }

    async fn read(&self, revision: &Revision) -> Option<Arc<State>> {
        let snapshot = self.taken(revision, self.repository.as_ref()?.snapshot(revision).await)?;
        let revision = revision.clone();
        let state = tokio::task::spawn_blocking(move || {
            let fleet = fleet::assemble(manifest::read(&snapshot), &snapshot);
            State { revision, snapshot, fleet }
        });
        Some(Arc::new(state.await.ok()?))
    }

    fn taken(&self, revision: &Revision, read: Result<Snapshot, source::Error>) -> Option<Snapshot> {
        let mut snapshot = read
            .inspect_err(
                |error| tracing::warn!(%error, revision = revision.short(), "an earlier commit cannot be read"),
            )
            .ok()?;
        snapshot.keys = self.keys.clone();
        snapshot.registered = self.registered.lock().clone();
        Some(snapshot)
    }

    async fn files(&self, revision: &Revision) -> Option<Snapshot> {
        self.taken(revision, self.repository.as_ref()?.files(revision).await)
    }

    /// The targets that a revision removed, compared with an earlier one.
    pub async fn taken_away(&self, before: &Revision, by: &Revision) -> Option<BTreeSet<Target>> {
        let (before, after) = (self.files(before).await?, self.files(by).await?);
        let compare = move || {
            let fleet = |snapshot: Snapshot| fleet::assemble(manifest::read(&snapshot), &snapshot);
            let before = fleet(before);
            fleet(after).taken_away(&before)
        };
        tokio::task::spawn_blocking(compare).await.ok()
    }

    /// One app at a revision, with its charts, without other apps and their checks. `memory`: the parsed files of the head, most
    /// of which are equal.
    pub async fn app_at(
        &self,
        revision: &Revision,
        app: &AppId,
        mut memory: manifest::Memory,
    ) -> Option<(Snapshot, Fleet, Vec<Arc<Chart>>)> {
        let (snapshot, app) = (self.files(revision).await?, app.clone());
        let read = tokio::task::spawn_blocking(move || {
            let mut manifests = manifest::read_again(&snapshot, &mut memory);
            manifests.apps.retain(|it| it.id == app || it.is_project());
            let fleet = fleet::assemble(manifests, &snapshot);
            (snapshot, fleet)
        });
        let (snapshot, fleet) = read.await.ok()?;
        let charts = self.charts.prefetch(&fleet::charts::remote_sources(&fleet)).await;
        Some((snapshot, fleet, charts))
    }

    pub fn charts(&self) -> &Arc<chart::Service> {
        &self.charts
    }

    /// The configured branch, if any.
    pub fn branch(&self) -> Option<&str> {
        self.repository.as_ref()?.branch()
    }

    /// The commits that changed an app: see [`Repository::steps`].
    pub async fn steps(
        &self,
        since: Option<Revision>,
        until: Revision,
        made_of: MadeOf,
    ) -> Result<Option<Vec<Step<Revision>>>, source::Error> {
        match &self.repository {
            Some(repository) => repository.steps(since, until, made_of).await,
            None => Ok(None),
        }
    }

    /// The folder of an app at a commit, with the final `/`; `None` if the commit lacks the app.
    pub async fn folder_at(&self, revision: &Revision, app: &AppId) -> Option<String> {
        let (_, fleet, _) = self.app_at(revision, app, manifest::Memory::default()).await?;
        fleet.apps.get(app).map(|app| app.folder().to_owned())
    }

    async fn rendered(
        &self,
        revision: &Revision,
        target: Target,
        discovered: Discovered,
    ) -> Option<Rendered> {
        let (state, charts) = (self.at(revision).await?, Arc::clone(&self.charts));
        // Only its own charts: others may be slow.
        let app = state.fleet.apps.get(&target.app)?;
        let own = charts.prefetch(&fleet::charts::remote_sources_of(app, &state.fleet)).await;
        let rendered = tokio::task::spawn_blocking(move || {
            let _own = own;
            let renderer = Renderer::knowing(&state.fleet, &state.snapshot, &*charts, discovered);
            renderer.render(&target).ok()
        });
        rendered.await.ok()?
    }
}

/// The history of one cluster.
pub struct Past<'a> {
    pub history: &'a History,
    pub cluster: &'a ClusterName,
    pub facts: &'a Option<Arc<Capabilities>>,
}

impl apply::Past for Past<'_> {
    fn object<'a>(
        &'a self,
        object: &'a RenderedObject,
        was: &'a Was,
    ) -> BoxFuture<'a, Option<RenderedObject>> {
        let Self { history, cluster, facts } = *self;
        async move {
            let discovered = facts.iter().map(|facts| (cluster.clone(), Arc::clone(facts))).collect();
            let target = Target { app: was.app.clone(), cluster: cluster.clone() };
            let rendered = history.rendered(&was.revision, target, discovered).await?;
            let is_it = |it: &&RenderedObject| {
                it.hash == was.hash || was.content.is_some_and(|content| it.content() == content)
            };
            rendered.objects.iter().filter(|it| it.id == object.id).find(is_it).cloned()
        }
        .boxed()
    }
}
