//! The handle of the config repository, which the controller and the commands use. It serializes access to the reader and runs Git work
//! on blocking threads.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::http::HttpRemote;
use super::remote::{self, RemoteFailure};
use super::repository_location::{RepositoryLocation, RepositoryLocationKind};
use super::revision_reader::{RevisionReader, revision_of};
use super::watch::RepositoryWatch;
use super::{
    AppSourceCommit, AppSources, CommitInfo, ContentChange, Error, MergePreview, SourceOptions, git_errors,
};
use crate::model::{Revision, Snapshot, SnapshotFileChange};

/// How long a remote may be silent.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Every fetch leaves one pack behind; above this many, the next start clones again into one.
const MANY_PACKS: usize = 500;

/// A config repository. Clones share one copy.
#[derive(Clone)]
pub struct ConfigRepository {
    inner: Arc<ConfigRepositoryInner>,
}

struct ConfigRepositoryInner {
    location: RepositoryLocation,
    reader: Mutex<RevisionReader>,
    /// For http; one request at a time.
    http: tokio::sync::Mutex<Option<HttpRemote>>,
    /// Requests by libgit2 that have not ended.
    open_requests: Arc<AtomicUsize>,
    idle_timeout: Duration,
}

impl std::fmt::Debug for ConfigRepository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigRepository")
            .field("url", &self.inner.location.display_url)
            .finish_non_exhaustive()
    }
}

impl ConfigRepository {
    /// Opens a local path, or the copy of a remote, which is created when it is missing or damaged. Does not contact the remote.
    pub async fn open(options: SourceOptions) -> Result<Self, Error> {
        Self::open_with(options, IDLE_TIMEOUT).await
    }

    pub(super) async fn open_with(options: SourceOptions, patience: Duration) -> Result<Self, Error> {
        let place = RepositoryLocation::of(options);
        let url = place.display_url.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let reader = match &place.kind {
                RepositoryLocationKind::Local(path) => open_local(&place, path)?,
                RepositoryLocationKind::Remote { clone, .. } => open_clone(&place, clone)?,
            };
            let http = place
                .remote_address()
                .map(|address| HttpRemote::of(&address, patience))
                .transpose()?
                .flatten();
            let (reader, http, open) = (Mutex::new(reader), tokio::sync::Mutex::new(http), Arc::default());
            Ok(ConfigRepositoryInner {
                location: place,
                reader,
                http,
                open_requests: open,
                idle_timeout: patience,
            })
        });
        let inner = opened.await.map_err(|_| Error::Stopped { url })??;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The address for display, without credentials.
    pub fn url(&self) -> &str {
        &self.inner.location.display_url
    }

    /// Asks the remote for the tip and fetches it when it is new. A local path is only read.
    pub async fn fetch(&self) -> Result<Revision, Error> {
        self.run_blocking(|inner| match &inner.location.kind {
            RepositoryLocationKind::Local(_) => inner.reader.lock().tip(),
            RepositoryLocationKind::Remote { .. } => inner.fetch(),
        })
        .await
    }

    /// The commit that a reference of the remote points to (`refs/pull/7/head`), which is then here too. Only its commits are kept:
    /// nothing in the copy has its name.
    pub async fn fetch_reference(&self, reference: &str) -> Result<Revision, Error> {
        let reference = reference.to_owned();
        self.run_blocking(move |inner| {
            let is_reference = reference.starts_with("refs/") && git2::Reference::is_valid_name(&reference);
            let missing = || Error::MissingReference {
                url: inner.location.display_url.clone(),
                reference: reference.clone(),
            };
            match &inner.location.kind {
                _ if !is_reference => Err(missing()),
                RepositoryLocationKind::Local(_) => {
                    inner.reader.lock().resolve(&reference).map_err(|_| missing())
                }
                RepositoryLocationKind::Remote { .. } => inner.fetch_reference(&reference),
            }
        })
        .await
    }

    /// Merges a commit into another in memory. The last read of the base is reused.
    pub async fn preview_merge(&self, base: &Revision, head: &Revision) -> Result<MergePreview, Error> {
        let (base, head) = (base.clone(), head.clone());
        self.run_blocking(move |inner| {
            let beside = inner.reader.lock().open_another_with_last()?;
            beside.preview_merge(&base, &head)
        })
        .await
    }

    /// Everything the revision holds below the configured folder.
    pub async fn snapshot(&self, revision: &Revision) -> Result<Snapshot, Error> {
        let revision = revision.clone();
        self.run_blocking(move |inner| {
            let first = inner.reader.lock().snapshot(&revision);
            match (first, &inner.location.kind) {
                // A copy that lost objects is cloned again; a local path belongs to the user.
                (Err(Error::Read { message, .. }), RepositoryLocationKind::Remote { .. }) => {
                    tracing::warn!(
                        url = inner.location.display_url,
                        message,
                        "damaged copy of the repository, cloning again"
                    );
                    inner.recreate_copy()?;
                    inner.fetch()?;
                    inner.reader.lock().snapshot(&revision)
                }
                (first, _) => first,
            }
        })
        .await
    }

    /// The snapshot of an earlier revision, without history and without placeholders for links. It does not replace the last read.
    pub async fn files_without_history(&self, revision: &Revision) -> Result<Snapshot, Error> {
        let revision = revision.clone();
        self.run_blocking(move |inner| inner.reader.lock().files_without_history(&revision)).await
    }

    /// The files that differ between two revisions, by their path in the configured folder, as they are in both. What is too large, or
    /// there and no file, is no text.
    pub async fn changed_between(
        &self,
        from: &Revision,
        to: &Revision,
    ) -> Result<Vec<SnapshotFileChange>, Error> {
        let (from, to) = (from.clone(), to.clone());
        self.run_blocking(move |inner| inner.reader.lock().changed_between(&from, &to)).await
    }

    /// The branch that is read, where one was named.
    pub fn branch(&self) -> Option<&str> {
        self.inner.location.branch.as_deref()
    }

    /// The commits after `since` up to `until` that changed a source of the app; without `since`, all of them. Returns `None` when `since`
    /// is not on the first-parent line of `until`, or when there are too many commits.
    pub async fn app_commits(
        &self,
        since: Option<Revision>,
        until: Revision,
        made_of: AppSources,
    ) -> Result<Option<Vec<AppSourceCommit<Revision>>>, Error> {
        self.run_blocking(move |inner| {
            let beside = inner.reader.lock().open_another()?;
            beside.app_commits((since.as_ref(), &until), &made_of)
        })
        .await
    }

    /// The number of consecutive commits, back from `tip`, at which each file satisfies `says`.
    pub async fn content_ages(
        &self,
        tip: &Revision,
        files: Vec<String>,
        says: impl Fn(&str, &[u8]) -> bool + Send + 'static,
    ) -> Result<Vec<usize>, Error> {
        let tip = tip.clone();
        self.run_blocking(move |inner| {
            let beside = inner.reader.lock().open_another()?;
            beside.content_ages(&tip, &files, &says)
        })
        .await
    }

    /// The newest commit of the first-parent line, not older than `since`, that changed the value `says` of a file.
    pub async fn last_content_change(
        &self,
        tip: &Revision,
        path: &str,
        since: i64,
        says: impl Fn(&[u8]) -> Option<String> + Send + 'static,
    ) -> Result<Option<ContentChange>, Error> {
        let (tip, path) = (tip.clone(), path.to_owned());
        self.run_blocking(move |inner| {
            let beside = inner.reader.lock().open_another()?;
            beside.last_content_change(&tip, &path, since, &says)
        })
        .await
    }

    /// Whether `revision` is a fast-forward of `earlier`. Always true for a local path, because there the user moves the branch and no
    /// copy can be behind.
    pub async fn is_fast_forward(&self, revision: &Revision, earlier: &Revision) -> Result<bool, Error> {
        if matches!(self.inner.location.kind, RepositoryLocationKind::Local(_)) {
            return Ok(true);
        }
        let (revision, earlier) = (revision.clone(), earlier.clone());
        self.run_blocking(move |inner| inner.reader.lock().is_fast_forward(&revision, &earlier)).await
    }

    /// Whether the commit is already here.
    pub async fn contains(&self, revision: &Revision) -> Result<bool, Error> {
        let revision = revision.clone();
        self.run_blocking(move |inner| inner.reader.lock().contains(&revision)).await
    }

    /// Fetches the commit of a remote reference, unless the copy has it.
    pub async fn fetch_missing(&self, reference: &str, revision: &Revision) -> Result<(), Error> {
        if !self.contains(revision).await? {
            self.fetch_reference(reference).await?;
        }
        Ok(())
    }

    /// The commit that a person named: an id or its beginning, a branch, a tag, `HEAD~2`.
    pub async fn resolve(&self, name: &str) -> Result<Revision, Error> {
        let name = name.to_owned();
        self.run_blocking(move |inner| inner.reader.lock().resolve(&name)).await
    }

    /// At most `limit` commits of the first-parent line, newest first.
    pub async fn recent_commits(&self, tip: &Revision, limit: usize) -> Result<Vec<CommitInfo>, Error> {
        let tip = tip.clone();
        self.run_blocking(move |inner| inner.reader.lock().recent_commits(&tip, limit)).await
    }

    /// The commits that the newest `limit` commits revert, including those of merged branches. A commit whose revert was reverted is not
    /// among them.
    pub async fn reverted_commits(&self, tip: &Revision, limit: usize) -> Result<BTreeSet<Revision>, Error> {
        let tip = tip.clone();
        self.run_blocking(move |inner| inner.reader.lock().reverted_commits(&tip, limit)).await
    }

    /// Wakes by polling, and for a local path as soon as a reference moves. `seed` drives the jitter.
    pub fn watch(&self, poll: Duration, seed: u64) -> RepositoryWatch {
        match &self.inner.location.kind {
            RepositoryLocationKind::Local(_) => {
                let reader = self.inner.reader.lock();
                let (own, common) = (reader.repository().path(), reader.repository().commondir());
                RepositoryWatch::of_references(poll, seed, own, common)
            }
            RepositoryLocationKind::Remote { .. } => RepositoryWatch::polling(poll, seed),
        }
    }

    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ConfigRepositoryInner) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.map_err(|_| Error::Stopped { url: self.inner.location.display_url.clone() })?
    }
}

impl ConfigRepositoryInner {
    fn fetch(&self) -> Result<Revision, Error> {
        self.fetch_tip(None)
    }

    fn fetch_reference(&self, reference: &str) -> Result<Revision, Error> {
        self.fetch_tip(Some(reference))
    }

    fn fetch_tip(&self, reference: Option<&str>) -> Result<Revision, Error> {
        match self.query_tip(reference) {
            Ok(tip) => Ok(tip),
            Err(RemoteFailure::Failed(error)) => Err(error),
            Err(RemoteFailure::DamagedCopy(message)) => {
                tracing::warn!(
                    url = self.location.display_url,
                    message,
                    "damaged copy of the repository, cloning again"
                );
                self.recreate_copy()?;
                let told = |failure| match failure {
                    RemoteFailure::Failed(error) => error,
                    RemoteFailure::DamagedCopy(message) => {
                        Error::Remote { url: self.location.display_url.clone(), message }
                    }
                };
                if reference.is_some() {
                    self.query_tip(None).map_err(told)?;
                }
                self.query_tip(reference).map_err(told)
            }
        }
    }

    fn query_tip(&self, reference: Option<&str>) -> Result<Revision, RemoteFailure> {
        let asking = async {
            match self.http.lock().await.as_mut() {
                Some(http) => http.fetch_tip(reference).await.map(Some),
                None => Ok(None),
            }
        };
        if let Some(tip) = Handle::current().block_on(asking)? {
            return Ok(revision_of(tip));
        }
        let Some(mut address) = self.location.remote_address() else {
            return self.reader.lock().tip().map_err(RemoteFailure::Failed);
        };
        address.reference = reference.map(str::to_owned);
        remote::fetch_tip(&address, self.idle_timeout, &self.open_requests).map(revision_of)
    }

    /// Replaces the copy by an empty one.
    fn recreate_copy(&self) -> Result<(), Error> {
        let mut reader = self.reader.lock();
        let clone = self.location.git_folder();
        remove_copy(&self.location, clone)?;
        *reader = open_clone(&self.location, clone)?;
        Ok(())
    }
}

fn open_local(place: &RepositoryLocation, path: &Path) -> Result<RevisionReader, Error> {
    let repository = git2::Repository::open(path)
        .map_err(|error| git_errors::open_error(&place.display_url, path, &error))?;
    Ok(RevisionReader::new(repository, place))
}

fn open_clone(place: &RepositoryLocation, clone: &Path) -> Result<RevisionReader, Error> {
    if clone.exists() {
        match git2::Repository::open_bare(clone) {
            Ok(repository) if count_packs(clone) <= MANY_PACKS => {
                return Ok(RevisionReader::new(repository, place));
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(
                url = place.display_url,
                message = error.message(),
                "damaged copy of the repository, cloning again"
            ),
        }
        remove_copy(place, clone)?;
    }
    let mut options = git2::RepositoryInitOptions::new();
    options.bare(true).mkpath(true).external_template(false);
    let repository = git2::Repository::init_opts(clone, &options)
        .map_err(|error| cache_error(place, clone, error.message()))?;
    Ok(RevisionReader::new(repository, place))
}

fn count_packs(clone: &Path) -> usize {
    std::fs::read_dir(clone.join("objects/pack")).map_or(0, |entries| entries.count() / 2)
}

fn remove_copy(place: &RepositoryLocation, clone: &Path) -> Result<(), Error> {
    std::fs::remove_dir_all(clone).map_err(|error| cache_error(place, clone, &error.to_string()))
}

fn cache_error(place: &RepositoryLocation, clone: &Path, message: &str) -> Error {
    Error::Cache { url: place.display_url.clone(), folder: clone.to_owned(), message: message.to_owned() }
}
