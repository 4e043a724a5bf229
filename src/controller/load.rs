//! From Git to renders: fetch, read, check, then render.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::event::{Event, LoadError};
use crate::fleet::{self, Fleet, Target};
use crate::model::{
    AppSpec, Capabilities, Charts, Cluster, ClusterName, DeployType, Diagnostic, Rendered, Revision, Scope,
    Snapshot,
};
use crate::source::{self, Repository};
use crate::{chart, manifest, render};

/// How far back commits are told about.
pub(super) const RECENT: usize = 20;

/// Where manifests are read from.
#[derive(Clone, Debug)]
pub enum Origin {
    Repository(Repository),
    /// A folder as it stands on disk: for commands that look before a commit.
    Folder(PathBuf),
}

/// What asking Git brought.
#[derive(Debug)]
pub struct Loaded {
    /// `None`: nothing new.
    pub news: Option<News>,
    /// A hook spoke of a commit that the remote does not have yet.
    pub behind: bool,
}

/// A revision, read and checked.
#[derive(Debug)]
pub struct News {
    pub revision: Revision,
    /// The newest commits of the branch, this one first.
    pub recent: Vec<Revision>,
    pub fleet: Fleet,
    pub snapshot: Snapshot,
}

/// A target's objects, or why there are none; and the commit that it is told on.
pub type Render = (Revision, Result<Arc<Rendered>, Vec<Diagnostic>>);

/// What clusters say of themselves, as far as they were asked.
pub type Facts = BTreeMap<ClusterName, Arc<Capabilities>>;

/// Every target of a revision.
#[derive(Debug)]
pub struct Renders {
    pub revision: Revision,
    pub targets: BTreeMap<Target, Render>,
    /// Of those that a mistake over all targets has spoilt: what they were without it.
    spoilt: BTreeMap<Target, Render>,
    /// They were rendered with these.
    facts: Facts,
}

impl Renders {
    /// What does not hold (any more) on a cluster that says this of itself.
    pub fn stale<'a>(
        &'a self,
        cluster: &'a Cluster,
        found: Option<&Arc<Capabilities>>,
    ) -> impl Iterator<Item = &'a Target> {
        let now = Capabilities::of(cluster, found);
        let same = self.facts.get(&cluster.name) == found;
        let here = self.targets.keys().filter(|target| target.cluster == cluster.name);
        here.filter(move |target| match self.plain(target) {
            Some((_, Ok(rendered))) => !rendered.questions.hold(&now),
            _ => !same,
        })
    }

    /// As it was rendered, whatever other targets are.
    fn plain(&self, target: &Target) -> Option<&Render> {
        self.spoilt.get(target).or_else(|| self.targets.get(target))
    }
}

/// Reads the newest revision, unless it is `known`. `after` is a commit that a hook spoke of.
pub async fn load(
    origin: &Origin,
    charts: &chart::Service,
    known: Option<&Revision>,
    after: Option<&str>,
) -> Result<Loaded, LoadError> {
    let (revision, recent, snapshot, behind) = match origin {
        Origin::Folder(path) => {
            let snapshot = source::read_folder(path).map_err(|error| explain(&error))?;
            (snapshot.revision.clone(), vec![snapshot.revision.clone()], snapshot, false)
        }
        Origin::Repository(repository) => {
            let revision = repository.fetch().await.map_err(|error| explain(&error))?;
            let behind = match after {
                // A commit of another branch is never contained: only what is not there at all counts.
                Some(after) if after != revision.as_str() => {
                    !repository.contains(&Revision::from(after)).await.map_err(|error| explain(&error))?
                }
                _ => false,
            };
            if known == Some(&revision) {
                return Ok(Loaded { news: None, behind });
            }
            let commits = repository.recent(&revision, RECENT).await.map_err(|error| explain(&error))?;
            let recent = commits.into_iter().map(|commit| commit.revision).collect();
            let snapshot = repository.snapshot(&revision).await.map_err(|error| explain(&error))?;
            (revision, recent, snapshot, behind)
        }
    };
    let assembled = tokio::task::spawn_blocking(move || {
        let fleet = fleet::assemble(manifest::read(&snapshot), &snapshot);
        News { revision, recent, fleet, snapshot }
    });
    match assembled.await {
        Ok(news) => {
            charts.prefetch(&fleet::charts::remote_sources(&news.fleet)).await;
            Ok(Loaded { news: Some(news), behind })
        }
        Err(error) => Err(LoadError {
            message: format!("failed to read the manifests: {error}"),
            help: None,
            kind: source::ErrorKind::Transient,
        }),
    }
}

/// For each error that no target carries: the commit that changed its file last.
pub fn blame(fleet: &Fleet, snapshot: &Snapshot) -> Vec<(Revision, Diagnostic)> {
    fleet
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.is_error() && !matches!(diagnostic.scope, Scope::Target(..)))
        .map(|diagnostic| {
            let file = diagnostic.location.as_ref().map(|location| location.file.as_str());
            (snapshot.last_change(file).clone(), diagnostic.clone())
        })
        .collect()
}

/// Renders every target, without asking any cluster. As long as the fleet is large: call it off the async threads.
pub fn render_all(revision: &Revision, fleet: &Fleet, snapshot: &Snapshot, charts: &dyn Charts) -> Renders {
    render_for(revision, fleet, snapshot, charts, Facts::new(), None)
}

/// Renders every target for clusters as they are. What holds of an earlier render of the same revision is not rendered
/// again.
fn render_for(
    revision: &Revision,
    fleet: &Fleet,
    snapshot: &Snapshot,
    charts: &dyn Charts,
    facts: Facts,
    before: Option<&Renders>,
) -> Renders {
    let mut targets = before.map_or_else(BTreeMap::new, |before| holding(before, fleet, &facts));
    let mut wanted = fleet.targets();
    wanted.retain(|target| !targets.contains_key(target));
    warm_up(fleet, snapshot, charts, &facts, &wanted);
    targets.extend(wanted.into_iter().map(|target| {
        let render = match render_one(fleet, snapshot, charts, &facts, &target) {
            Ok(rendered) => (rendered.revision.clone(), Ok(Arc::new(rendered))),
            Err(mistakes) => {
                let files = mistakes.iter().filter_map(|mistake| mistake.location.as_ref());
                (snapshot.last_change(files.map(|location| location.file.as_str())).clone(), Err(mistakes))
            }
        };
        (target, render)
    }));
    let spoilt = refuse_idle_patches(fleet, snapshot, &mut targets);
    Renders { revision: revision.clone(), targets, spoilt, facts }
}

/// What of an earlier render holds for these facts.
fn holding(before: &Renders, fleet: &Fleet, facts: &Facts) -> BTreeMap<Target, Render> {
    let clusters = fleet.clusters.values();
    let stale: BTreeSet<&Target> =
        clusters.flat_map(|cluster| before.stale(cluster, facts.get(&cluster.name))).collect();
    let holding = before.targets.keys().filter(|target| !stale.contains(target));
    holding.filter_map(|target| Some((target.clone(), before.plain(target)?.clone()))).collect()
}

/// A patch may fit nothing of one target and something of another; one that fits nothing at all is a
/// mistake of every target that reads it. What a target without a render would have taken is not known. Gives back what
/// those targets were without it.
fn refuse_idle_patches(
    fleet: &Fleet,
    snapshot: &Snapshot,
    targets: &mut BTreeMap<Target, Render>,
) -> BTreeMap<Target, Render> {
    let mut spoilt = BTreeMap::new();
    let rendered = targets.values().filter_map(|(_, render)| render.as_deref().ok());
    let mut idle = render::idle_patches(rendered);
    if idle.is_empty() {
        return spoilt;
    }
    for (target, _) in targets.iter().filter(|(_, (_, render))| render.is_err()) {
        for unknown in render::patches_of(fleet, snapshot, target) {
            idle.remove(&unknown);
        }
    }
    for (target, (revision, render)) in targets {
        let Ok(rendered) = &render else { continue };
        let scope = || Scope::Target(target.app.clone(), target.cluster.clone());
        let read = idle.iter().filter(|place| rendered.patches.contains_key(place));
        let mistakes: Vec<Diagnostic> = read.map(|place| render::idle_patch(place, scope())).collect();
        if !mistakes.is_empty() {
            let files = mistakes.iter().filter_map(|mistake| mistake.location.as_ref());
            let blamed = snapshot.last_change(files.map(|location| location.file.as_str())).clone();
            let plain = (std::mem::replace(revision, blamed), std::mem::replace(render, Err(mistakes)));
            spoilt.insert(target.clone(), plain);
        }
    }
    spoilt
}

/// Apps of charts, side by side: their renders wait for other processes, and one that hangs shall hold up no other. What
/// comes of it is kept where charts are rendered.
fn warm_up(fleet: &Fleet, snapshot: &Snapshot, charts: &dyn Charts, facts: &Facts, wanted: &[Target]) {
    let is_chart = |target: &&Target| {
        fleet.apps.get(&target.app).is_some_and(
            |app| matches!(&app.spec, AppSpec::AppSet(app_set) if app_set.deploy_type == DeployType::Helm),
        )
    };
    let targets: Vec<&Target> = wanted.iter().filter(is_chart).collect();
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(targets.len());
    if threads < 2 {
        return;
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let _ = render_one(fleet, snapshot, charts, facts, target);
                }
            });
        }
    });
}

/// A fault of ours in one render is an error of that target, and of no other.
fn render_one(
    fleet: &Fleet,
    snapshot: &Snapshot,
    charts: &dyn Charts,
    facts: &Facts,
    target: &Target,
) -> Result<Rendered, Vec<Diagnostic>> {
    let found = facts.get(&target.cluster);
    let rendering = std::panic::AssertUnwindSafe(|| render::render(fleet, snapshot, charts, found, target));
    std::panic::catch_unwind(rendering).unwrap_or_else(|_| {
        let scope = Scope::Target(target.app.clone(), target.cluster.clone());
        let message = format!("failed to render {target}: the renderer crashed, which is a fault of tutti");
        Err(vec![Diagnostic::error("E3999", message, scope)])
    })
}

/// What a render needs, on whatever thread.
#[derive(Debug)]
pub struct Rendering {
    pub revision: Revision,
    pub fleet: Arc<Fleet>,
    pub snapshot: Arc<Snapshot>,
    pub charts: Arc<chart::Service>,
    pub facts: Facts,
    /// Of the same revision.
    pub before: Option<Arc<Renders>>,
}

/// Renders on a blocking thread and reports to the queue.
pub fn render_in_background(rendering: Rendering, events: tokio::sync::mpsc::Sender<Event>) {
    tokio::task::spawn_blocking(move || {
        let Rendering { revision, fleet, snapshot, charts, facts, before } = rendering;
        let renders = render_for(&revision, &fleet, &snapshot, &*charts, facts, before.as_deref());
        // A closed queue means that the controller has stopped: nobody is left to tell.
        let _ = events.blocking_send(Event::Rendered(Box::new(renders)));
    });
}

fn explain(error: &source::Error) -> LoadError {
    LoadError { message: error.to_string(), help: error.help().map(ToOwned::to_owned), kind: error.kind() }
}
