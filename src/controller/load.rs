//! Loads a revision: fetches, parses and checks it.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::event::Event;
use super::grants::RepositoryGrants;
use super::load_result::{GitLoadResult, LoadError, LoadedHead};
use super::registry::ClusterRegistry;
use crate::cluster::HomeCluster;
use crate::fleet::{self, Fleet, IdentityOwners};
use crate::model::{Diagnostic, DiagnosticScope, RegistryContents, Revision, Snapshot};
use crate::source::{self, ConfigRepository};
use crate::{chart, manifest};

/// Commits back from the head that get statuses.
pub(super) const MAX_TRACKED_COMMITS: usize = 20;

#[derive(Clone, Debug)]
pub enum ManifestOrigin {
    Repository(ConfigRepository),
    /// A folder on disk: for commands that run before a commit.
    Folder {
        path: PathBuf,
        /// The repository of the folder, to find what was applied from it.
        history: Option<ConfigRepository>,
    },
}

impl ManifestOrigin {
    /// The repository with earlier commits.
    pub fn history(&self) -> Option<ConfigRepository> {
        match self {
            Self::Repository(repository) => Some(repository.clone()),
            Self::Folder { history, .. } => history.clone(),
        }
    }
}

/// The input of a load.
#[derive(Debug)]
pub struct LoadRequest {
    pub origin: ManifestOrigin,
    pub charts: Arc<chart::ChartService>,
    pub home: HomeCluster,
    pub grants: Arc<RepositoryGrants>,
    pub registry: Arc<ClusterRegistry>,
    pub manifest_cache: Arc<Mutex<manifest::ManifestCache>>,
    pub events: mpsc::Sender<Event>,
    /// The revision of the last load.
    pub known_revision: Option<Revision>,
    /// The registered clusters of the last load.
    pub registered: Option<Arc<RegistryContents>>,
    /// The holder of each name in the last load.
    pub holders: Arc<IdentityOwners>,
    /// The commit that a hook named.
    pub awaited_commit: Option<String>,
    /// Accepts a non-fast-forward head, because the branch has been so for a while.
    pub accepts_non_fast_forward: bool,
}

/// Reads the newest revision, unless revision and registered clusters are those of the last load.
pub async fn load(ask: LoadRequest) -> Result<GitLoadResult, LoadError> {
    let LoadRequest { origin, charts, home, grants, registry, .. } = ask;
    let LoadRequest {
        manifest_cache: reading,
        events,
        known_revision: known,
        registered,
        holders,
        awaited_commit: after,
        accepts_non_fast_forward: believes,
        ..
    } = ask;
    let mut unread = None;
    let mut seen = Instant::now();
    let (revision, recent, snapshot, behind) = match &origin {
        ManifestOrigin::Folder { path, .. } => {
            let snapshot =
                source::read_folder(path, manifest::listed_beside).map_err(|error| to_load_error(&error))?;
            (snapshot.revision.clone(), vec![snapshot.revision.clone()], snapshot, false)
        }
        ManifestOrigin::Repository(repository) => {
            let fetched = repository.fetch().await.map_err(|error| to_load_error(&error));
            seen = Instant::now();
            let said = registry.latest().await;
            let is_same = said.is_none() || said == registered;
            let revision = match (fetched, &known) {
                (Ok(revision), _) => revision,
                // Registry data, such as maintenance of a cluster, takes effect without Git, with the last revision.
                (Err(error), Some(known)) if !is_same => {
                    unread = Some(error);
                    known.clone()
                }
                (Err(error), _) => return Err(error),
            };
            let behind = match after.as_deref() {
                // A commit of another branch is never contained: only a commit that does not exist at all counts.
                Some(after) if unread.is_none() && after != revision.as_str() => !repository
                    .contains(&Revision::from(after))
                    .await
                    .map_err(|error| to_load_error(&error))?,
                _ => false,
            };
            if known.as_ref() == Some(&revision) && is_same {
                return Ok(GitLoadResult {
                    news: None,
                    is_behind: behind,
                    non_fast_forward: None,
                    git_error: unread,
                });
            }
            let is_expected = believes || after.as_deref() == Some(revision.as_str());
            if let Some(known) = known.filter(|known| *known != revision && !is_expected)
                && !repository
                    .is_fast_forward(&revision, &known)
                    .await
                    .map_err(|error| to_load_error(&error))?
            {
                return Ok(GitLoadResult {
                    news: None,
                    is_behind: behind,
                    non_fast_forward: Some(revision),
                    git_error: unread,
                });
            }
            let commits = repository
                .recent_commits(&revision, MAX_TRACKED_COMMITS)
                .await
                .map_err(|error| to_load_error(&error))?;
            let recent = commits.into_iter().map(|commit| commit.revision).collect();
            let snapshot = repository.snapshot(&revision).await.map_err(|error| to_load_error(&error))?;
            (revision, recent, snapshot, behind)
        }
    };
    let read = tokio::task::spawn_blocking(move || {
        let manifests = manifest::read_incremental(&snapshot, &mut reading.lock());
        (manifests, snapshot)
    });
    let (manifests, mut snapshot) = read.await.map_err(|error| crash_error(&error))?;
    let wanted = manifests.instance.as_ref().and_then(|instance| instance.registry.as_ref());
    snapshot.registry = match &manifests.instance {
        Some(_) => registry.watch_registry(wanted, Some(&events)).await,
        // A file with errors may name a registry.
        None => registered,
    };
    let forge = manifests.instance.as_ref().and_then(|instance| instance.forge.as_ref());
    let token = match forge.and_then(|forge| forge.token.as_ref()) {
        Some(reference) => Some(grants.resolve(reference, &home).await),
        None => None,
    };
    let holders = older_name_holders(holders, &manifests, &origin, &revision).await;
    let assembled = tokio::task::spawn_blocking(move || {
        let fleet = fleet::assemble_after(manifests, &snapshot, &holders);
        LoadedHead { revision, recent_commits: recent, fleet, snapshot, token, seen_at: seen }
    });
    let news = assembled.await.map_err(|error| crash_error(&error))?;
    let arrived = || {
        let events = events.clone();
        async move {
            // The send fails only when the controller has stopped.
            let _ = events.send(Event::ChartArrived).await;
        }
    };
    charts.start_fetching(&fleet::charts::remote_sources(&news.fleet), arrived);
    Ok(GitLoadResult { news: Some(news), is_behind: behind, non_fast_forward: None, git_error: unread })
}

/// Names that are looked up in history.
const MAX_NAME_LOOKUPS: usize = 32;

/// For a name that several files claim and whose holder is unknown: the file that has had it for longer.
async fn older_name_holders(
    holders: Arc<IdentityOwners>,
    manifests: &manifest::Manifests,
    origin: &ManifestOrigin,
    head: &Revision,
) -> Arc<IdentityOwners> {
    let disputed = fleet::disputed_identities(manifests, &holders);
    let ManifestOrigin::Repository(repository) = origin else { return holders };
    let mut holders = holders;
    for (scope, files) in disputed.into_iter().take(MAX_NAME_LOOKUPS) {
        let defaults = manifests.instance.as_ref().map(|instance| instance.defaults.clone());
        let (name, namespace) = (scope.clone(), defaults.unwrap_or_default().namespace);
        let says =
            move |path: &str, content: &[u8]| manifest::has_manifest_of(path, content, &name, &namespace);
        match repository.content_ages(head, files.clone(), says).await {
            Ok(ages) => {
                let oldest = ages.iter().copied().max().unwrap_or_default();
                let mut of_oldest = files.into_iter().zip(&ages).filter(|(_, age)| **age == oldest);
                if let (Some((file, _)), None) = (of_oldest.next(), of_oldest.next()) {
                    Arc::make_mut(&mut holders).insert(scope, file);
                }
            }
            Err(error) => tracing::warn!(%error, "the first owner of a name is not known"),
        }
    }
    holders
}

fn crash_error(error: &tokio::task::JoinError) -> LoadError {
    LoadError {
        message: format!("failed to read the manifests: {error}"),
        help: None,
        kind: source::ErrorKind::Transient,
    }
}

/// For each error outside of a target: the last commit that changed its file. If nothing can be applied at all, the head reports
/// the error too, because its changes are not applied either.
pub fn blame(fleet: &Fleet, snapshot: &Snapshot) -> Vec<(Revision, Diagnostic)> {
    let head = &snapshot.revision;
    let mut blamed: Vec<(Revision, Diagnostic)> = fleet
        .diagnostics
        .iter()
        .filter(|diagnostic| {
            diagnostic.is_error() && !matches!(diagnostic.scope, DiagnosticScope::Target(..))
        })
        .map(|diagnostic| {
            let file = diagnostic.location.as_ref().map(|location| location.file.as_str());
            (snapshot.last_change(file).clone(), diagnostic.clone())
        })
        .collect();
    let of_all =
        blamed.iter().filter(|(revision, it)| it.scope == DiagnosticScope::Instance && revision != head);
    let again: Vec<_> = of_all.map(|(_, mistake)| (head.clone(), mistake.clone())).collect();
    blamed.extend(again);
    blamed
}

fn to_load_error(error: &source::Error) -> LoadError {
    LoadError { message: error.to_string(), help: error.help().map(ToOwned::to_owned), kind: error.kind() }
}
