//! Loads a revision: fetches, parses and checks it.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::event::{Event, LoadError};
use super::grants::Grants;
use super::registry::Registry;
use super::secrets::SecretError;
use crate::cluster::Home;
use crate::fleet::{self, Fleet, Holders};
use crate::model::{Diagnostic, Registered, Revision, Scope, Snapshot};
use crate::source::{self, Repository};
use crate::{chart, manifest};

/// Commits back from the head that get statuses.
pub(super) const RECENT: usize = 20;

#[derive(Clone, Debug)]
pub enum Origin {
    Repository(Repository),
    /// A folder on disk: for commands that run before a commit.
    Folder {
        path: PathBuf,
        /// The repository of the folder, to find what was applied from it.
        history: Option<Repository>,
    },
}

impl Origin {
    /// The repository with earlier commits.
    pub fn history(&self) -> Option<Repository> {
        match self {
            Self::Repository(repository) => Some(repository.clone()),
            Self::Folder { history, .. } => history.clone(),
        }
    }
}

/// The result of a load.
#[derive(Debug)]
pub struct Loaded {
    /// `None`: nothing new.
    pub news: Option<News>,
    /// A hook named a commit that the remote does not have yet.
    pub behind: bool,
    /// The remote returned a commit that does not descend from the last one.
    pub went_back: Option<Revision>,
    /// Git did not answer and is read again; only the registry of clusters has changed.
    pub unread: Option<LoadError>,
}

/// A revision, read and checked.
#[derive(Debug)]
pub struct News {
    pub revision: Revision,
    /// The newest commits of the branch, this one first.
    pub recent: Vec<Revision>,
    pub fleet: Fleet,
    pub snapshot: Snapshot,
    /// The token of the forge; `None` if it needs none.
    pub token: Option<Result<SecretString, SecretError>>,
    /// When Git returned it.
    pub seen: Instant,
}

/// The input of a load.
#[derive(Debug)]
pub struct Ask {
    pub origin: Origin,
    pub charts: Arc<chart::Service>,
    pub home: Home,
    pub grants: Arc<Grants>,
    pub registry: Arc<Registry>,
    pub reading: Arc<Mutex<manifest::Memory>>,
    pub events: mpsc::Sender<Event>,
    /// The revision of the last load.
    pub known: Option<Revision>,
    /// The registered clusters of the last load.
    pub registered: Option<Arc<Registered>>,
    /// The holder of each name in the last load.
    pub holders: Arc<Holders>,
    /// The commit that a hook named.
    pub after: Option<String>,
    /// Accepts a non-fast-forward head, because the branch has been so for a while.
    pub believes: bool,
}

/// Reads the newest revision, unless revision and registered clusters are those of the last load.
pub async fn load(ask: Ask) -> Result<Loaded, LoadError> {
    let Ask { origin, charts, home, grants, registry, .. } = ask;
    let Ask { reading, events, known, registered, holders, after, believes, .. } = ask;
    let mut unread = None;
    let mut seen = Instant::now();
    let (revision, recent, snapshot, behind) = match &origin {
        Origin::Folder { path, .. } => {
            let snapshot =
                source::read_folder(path, manifest::listed_beside).map_err(|error| explain(&error))?;
            (snapshot.revision.clone(), vec![snapshot.revision.clone()], snapshot, false)
        }
        Origin::Repository(repository) => {
            let fetched = repository.fetch().await.map_err(|error| explain(&error));
            seen = Instant::now();
            let said = registry.said().await;
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
                Some(after) if unread.is_none() && after != revision.as_str() => {
                    !repository.contains(&Revision::from(after)).await.map_err(|error| explain(&error))?
                }
                _ => false,
            };
            if known.as_ref() == Some(&revision) && is_same {
                return Ok(Loaded { news: None, behind, went_back: None, unread });
            }
            let is_expected = believes || after.as_deref() == Some(revision.as_str());
            if let Some(known) = known.filter(|known| *known != revision && !is_expected)
                && !repository.goes_on(&revision, &known).await.map_err(|error| explain(&error))?
            {
                return Ok(Loaded { news: None, behind, went_back: Some(revision), unread });
            }
            let commits = repository.recent(&revision, RECENT).await.map_err(|error| explain(&error))?;
            let recent = commits.into_iter().map(|commit| commit.revision).collect();
            let snapshot = repository.snapshot(&revision).await.map_err(|error| explain(&error))?;
            (revision, recent, snapshot, behind)
        }
    };
    let read = tokio::task::spawn_blocking(move || {
        let manifests = manifest::read_again(&snapshot, &mut reading.lock());
        (manifests, snapshot)
    });
    let (manifests, mut snapshot) = read.await.map_err(|error| crashed(&error))?;
    let wanted = manifests.instance.as_ref().and_then(|instance| instance.registry.as_ref());
    snapshot.registered = match &manifests.instance {
        Some(_) => registry.ask(wanted, Some(&events)).await,
        // A file with errors may name a registry.
        None => registered,
    };
    let forge = manifests.instance.as_ref().and_then(|instance| instance.forge.as_ref());
    let token = match forge.and_then(|forge| forge.token.as_ref()) {
        Some(reference) => Some(grants.resolve(reference, &home).await),
        None => None,
    };
    let holders = with_the_older(holders, &manifests, &origin, &revision).await;
    let assembled = tokio::task::spawn_blocking(move || {
        let fleet = fleet::assemble_after(manifests, &snapshot, &holders);
        News { revision, recent, fleet, snapshot, token, seen }
    });
    let news = assembled.await.map_err(|error| crashed(&error))?;
    let arrived = || {
        let events = events.clone();
        async move {
            // The send fails only when the controller has stopped.
            let _ = events.send(Event::ChartArrived).await;
        }
    };
    charts.start_fetching(&fleet::charts::remote_sources(&news.fleet), arrived);
    Ok(Loaded { news: Some(news), behind, went_back: None, unread })
}

/// Names that are looked up in history.
const LOOKED_FOR: usize = 32;

/// For a name that several files claim and whose holder is unknown: the file that has had it for longer.
async fn with_the_older(
    holders: Arc<Holders>,
    manifests: &manifest::Manifests,
    origin: &Origin,
    head: &Revision,
) -> Arc<Holders> {
    let disputed = fleet::disputed(manifests, &holders);
    let Origin::Repository(repository) = origin else { return holders };
    let mut holders = holders;
    for (scope, files) in disputed.into_iter().take(LOOKED_FOR) {
        let defaults = manifests.instance.as_ref().map(|instance| instance.defaults.clone());
        let (name, namespace) = (scope.clone(), defaults.unwrap_or_default().namespace);
        let says = move |path: &str, content: &[u8]| manifest::claims(path, content, &name, &namespace);
        match repository.ages(head, files.clone(), says).await {
            Ok(ages) => {
                let oldest = ages.iter().copied().max().unwrap_or_default();
                let mut of_oldest = files.into_iter().zip(&ages).filter(|(_, age)| **age == oldest);
                if let (Some((file, _)), None) = (of_oldest.next(), of_oldest.next()) {
                    Arc::make_mut(&mut holders).insert(scope, file);
                }
            }
            Err(error) => tracing::warn!(%error, "who held a name first is not known"),
        }
    }
    holders
}

fn crashed(error: &tokio::task::JoinError) -> LoadError {
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
        .filter(|diagnostic| diagnostic.is_error() && !matches!(diagnostic.scope, Scope::Target(..)))
        .map(|diagnostic| {
            let file = diagnostic.location.as_ref().map(|location| location.file.as_str());
            (snapshot.last_change(file).clone(), diagnostic.clone())
        })
        .collect();
    let of_all = blamed.iter().filter(|(revision, it)| it.scope == Scope::Instance && revision != head);
    let again: Vec<_> = of_all.map(|(_, mistake)| (head.clone(), mistake.clone())).collect();
    blamed.extend(again);
    blamed
}

fn explain(error: &source::Error) -> LoadError {
    LoadError { message: error.to_string(), help: error.help().map(ToOwned::to_owned), kind: error.kind() }
}
