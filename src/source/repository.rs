//! The handle of the config repository, which the controller and the commands use. It serializes access to the reader and runs Git work
//! on blocking threads.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::http::Http;
use super::place::{Kind, Place};
use super::reader::{Reader, revision_of};
use super::remote::{self, Failure};
use super::watch::Watch;
use super::{Change, Commit, Error, MadeOf, Merged, Options, Step, translate};
use crate::model::{Changed, Revision, Snapshot};

/// How long a remote may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// Every fetch leaves one pack behind; above this many, the next start clones again into one.
const MANY_PACKS: usize = 500;

/// A config repository. Clones share one copy.
#[derive(Clone)]
pub struct Repository {
    inner: Arc<Inner>,
}

struct Inner {
    place: Place,
    reader: Mutex<Reader>,
    /// For http; one request at a time.
    http: tokio::sync::Mutex<Option<Http>>,
    /// Requests by libgit2 that have not ended.
    open: Arc<AtomicUsize>,
    patience: Duration,
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repository").field("url", &self.inner.place.shown).finish_non_exhaustive()
    }
}

impl Repository {
    /// Opens a local path, or the copy of a remote, which is created when it is missing or damaged. Does not contact the remote.
    pub async fn open(options: Options) -> Result<Self, Error> {
        Self::open_with(options, PATIENCE).await
    }

    pub(super) async fn open_with(options: Options, patience: Duration) -> Result<Self, Error> {
        let place = Place::of(options);
        let url = place.shown.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let reader = match &place.kind {
                Kind::Local(path) => open_local(&place, path)?,
                Kind::Remote { clone, .. } => open_clone(&place, clone)?,
            };
            let http = place.address().map(|address| Http::of(&address, patience)).transpose()?.flatten();
            let (reader, http, open) = (Mutex::new(reader), tokio::sync::Mutex::new(http), Arc::default());
            Ok(Inner { place, reader, http, open, patience })
        });
        let inner = opened.await.map_err(|_| Error::Stopped { url })??;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The address for display, without credentials.
    pub fn url(&self) -> &str {
        &self.inner.place.shown
    }

    /// Asks the remote for the tip and fetches it when it is new. A local path is only read.
    pub async fn fetch(&self) -> Result<Revision, Error> {
        self.blocking(|inner| match &inner.place.kind {
            Kind::Local(_) => inner.reader.lock().tip(),
            Kind::Remote { .. } => inner.fetch(),
        })
        .await
    }

    /// The commit that a reference of the remote points to (`refs/pull/7/head`), which is then here too. Only its commits are kept:
    /// nothing in the copy has its name.
    pub async fn fetch_reference(&self, reference: &str) -> Result<Revision, Error> {
        let reference = reference.to_owned();
        self.blocking(move |inner| {
            let is_reference = reference.starts_with("refs/") && git2::Reference::is_valid_name(&reference);
            let missing =
                || Error::MissingReference { url: inner.place.shown.clone(), reference: reference.clone() };
            match &inner.place.kind {
                _ if !is_reference => Err(missing()),
                Kind::Local(_) => inner.reader.lock().resolve(&reference).map_err(|_| missing()),
                Kind::Remote { .. } => inner.fetch_reference(&reference),
            }
        })
        .await
    }

    /// Merges a commit into another in memory. The last read of the base is reused.
    pub async fn merged(&self, base: &Revision, head: &Revision) -> Result<Merged, Error> {
        let (base, head) = (base.clone(), head.clone());
        self.blocking(move |inner| {
            let beside = inner.reader.lock().beside_with_last()?;
            beside.merged(&base, &head)
        })
        .await
    }

    /// Everything the revision holds below the configured folder.
    pub async fn snapshot(&self, revision: &Revision) -> Result<Snapshot, Error> {
        let revision = revision.clone();
        self.blocking(move |inner| {
            let first = inner.reader.lock().snapshot(&revision);
            match (first, &inner.place.kind) {
                // A copy that lost objects is cloned again; a local path belongs to the user.
                (Err(Error::Read { message, .. }), Kind::Remote { .. }) => {
                    tracing::warn!(
                        url = inner.place.shown,
                        message,
                        "damaged copy of the repository, cloning again"
                    );
                    inner.renew()?;
                    inner.fetch()?;
                    inner.reader.lock().snapshot(&revision)
                }
                (first, _) => first,
            }
        })
        .await
    }

    /// The snapshot of an earlier revision, without history and without placeholders for links. It does not replace the last read.
    pub async fn files(&self, revision: &Revision) -> Result<Snapshot, Error> {
        let revision = revision.clone();
        self.blocking(move |inner| inner.reader.lock().files(&revision)).await
    }

    /// The files that differ between two revisions, by their path in the configured folder, as they are in both. What is too large, or
    /// there and no file, is no text.
    pub async fn changed(&self, from: &Revision, to: &Revision) -> Result<Vec<Changed>, Error> {
        let (from, to) = (from.clone(), to.clone());
        self.blocking(move |inner| inner.reader.lock().changed(&from, &to)).await
    }

    /// The branch that is read, where one was named.
    pub fn branch(&self) -> Option<&str> {
        self.inner.place.branch.as_deref()
    }

    /// The commits after `since` up to `until` that changed a source of the app; without `since`, all of them. Returns `None` when `since`
    /// is not on the first-parent line of `until`, or when there are too many commits.
    pub async fn steps(
        &self,
        since: Option<Revision>,
        until: Revision,
        made_of: MadeOf,
    ) -> Result<Option<Vec<Step<Revision>>>, Error> {
        self.blocking(move |inner| {
            let beside = inner.reader.lock().beside()?;
            beside.steps((since.as_ref(), &until), &made_of)
        })
        .await
    }

    /// The number of consecutive commits, back from `tip`, at which each file satisfies `says`.
    pub async fn ages(
        &self,
        tip: &Revision,
        files: Vec<String>,
        says: impl Fn(&str, &[u8]) -> bool + Send + 'static,
    ) -> Result<Vec<usize>, Error> {
        let tip = tip.clone();
        self.blocking(move |inner| {
            let beside = inner.reader.lock().beside()?;
            beside.ages(&tip, &files, &says)
        })
        .await
    }

    /// The newest commit of the first-parent line, not older than `since`, that changed the value `says` of a file.
    pub async fn last_change(
        &self,
        tip: &Revision,
        path: &str,
        since: i64,
        says: impl Fn(&[u8]) -> Option<String> + Send + 'static,
    ) -> Result<Option<Change>, Error> {
        let (tip, path) = (tip.clone(), path.to_owned());
        self.blocking(move |inner| {
            let beside = inner.reader.lock().beside()?;
            beside.last_change(&tip, &path, since, &says)
        })
        .await
    }

    /// Whether `revision` is a fast-forward of `earlier`. Always true for a local path, because there the user moves the branch and no
    /// copy can be behind.
    pub async fn goes_on(&self, revision: &Revision, earlier: &Revision) -> Result<bool, Error> {
        if matches!(self.inner.place.kind, Kind::Local(_)) {
            return Ok(true);
        }
        let (revision, earlier) = (revision.clone(), earlier.clone());
        self.blocking(move |inner| inner.reader.lock().follows(&revision, &earlier)).await
    }

    /// Whether the commit is already here.
    pub async fn contains(&self, revision: &Revision) -> Result<bool, Error> {
        let revision = revision.clone();
        self.blocking(move |inner| inner.reader.lock().contains(&revision)).await
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
        self.blocking(move |inner| inner.reader.lock().resolve(&name)).await
    }

    /// At most `limit` commits of the first-parent line, newest first.
    pub async fn recent(&self, tip: &Revision, limit: usize) -> Result<Vec<Commit>, Error> {
        let tip = tip.clone();
        self.blocking(move |inner| inner.reader.lock().recent(&tip, limit)).await
    }

    /// The commits that the newest `limit` commits revert, including those of merged branches. A commit whose revert was reverted is not
    /// among them.
    pub async fn reverted(&self, tip: &Revision, limit: usize) -> Result<BTreeSet<Revision>, Error> {
        let tip = tip.clone();
        self.blocking(move |inner| inner.reader.lock().reverted(&tip, limit)).await
    }

    /// Wakes by polling, and for a local path as soon as a reference moves. `seed` drives the jitter.
    pub fn watch(&self, poll: Duration, seed: u64) -> Watch {
        match &self.inner.place.kind {
            Kind::Local(_) => {
                let reader = self.inner.reader.lock();
                let (own, common) = (reader.repository().path(), reader.repository().commondir());
                Watch::of_references(poll, seed, own, common)
            }
            Kind::Remote { .. } => Watch::polling(poll, seed),
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.map_err(|_| Error::Stopped { url: self.inner.place.shown.clone() })?
    }
}

impl Inner {
    fn fetch(&self) -> Result<Revision, Error> {
        self.fetch_of(None)
    }

    fn fetch_reference(&self, reference: &str) -> Result<Revision, Error> {
        self.fetch_of(Some(reference))
    }

    fn fetch_of(&self, reference: Option<&str>) -> Result<Revision, Error> {
        match self.ask(reference) {
            Ok(tip) => Ok(tip),
            Err(Failure::Told(error)) => Err(error),
            Err(Failure::Damaged(message)) => {
                tracing::warn!(
                    url = self.place.shown,
                    message,
                    "damaged copy of the repository, cloning again"
                );
                self.renew()?;
                let told = |failure| match failure {
                    Failure::Told(error) => error,
                    Failure::Damaged(message) => Error::Remote { url: self.place.shown.clone(), message },
                };
                if reference.is_some() {
                    self.ask(None).map_err(told)?;
                }
                self.ask(reference).map_err(told)
            }
        }
    }

    fn ask(&self, reference: Option<&str>) -> Result<Revision, Failure> {
        let asking = async {
            match self.http.lock().await.as_mut() {
                Some(http) => http.tip(reference).await.map(Some),
                None => Ok(None),
            }
        };
        if let Some(tip) = Handle::current().block_on(asking)? {
            return Ok(revision_of(tip));
        }
        let Some(mut address) = self.place.address() else {
            return self.reader.lock().tip().map_err(Failure::Told);
        };
        address.reference = reference.map(str::to_owned);
        remote::tip(&address, self.patience, &self.open).map(revision_of)
    }

    /// Replaces the copy by an empty one.
    fn renew(&self) -> Result<(), Error> {
        let mut reader = self.reader.lock();
        let clone = self.place.git_folder();
        remove(&self.place, clone)?;
        *reader = open_clone(&self.place, clone)?;
        Ok(())
    }
}

fn open_local(place: &Place, path: &Path) -> Result<Reader, Error> {
    let repository =
        git2::Repository::open(path).map_err(|error| translate::open(&place.shown, path, &error))?;
    Ok(Reader::new(repository, place))
}

fn open_clone(place: &Place, clone: &Path) -> Result<Reader, Error> {
    if clone.exists() {
        match git2::Repository::open_bare(clone) {
            Ok(repository) if packs(clone) <= MANY_PACKS => return Ok(Reader::new(repository, place)),
            Ok(_) => {}
            Err(error) => tracing::warn!(
                url = place.shown,
                message = error.message(),
                "damaged copy of the repository, cloning again"
            ),
        }
        remove(place, clone)?;
    }
    let mut options = git2::RepositoryInitOptions::new();
    options.bare(true).mkpath(true).external_template(false);
    let repository = git2::Repository::init_opts(clone, &options)
        .map_err(|error| cache_failure(place, clone, error.message()))?;
    Ok(Reader::new(repository, place))
}

fn packs(clone: &Path) -> usize {
    std::fs::read_dir(clone.join("objects/pack")).map_or(0, |entries| entries.count() / 2)
}

fn remove(place: &Place, clone: &Path) -> Result<(), Error> {
    std::fs::remove_dir_all(clone).map_err(|error| cache_failure(place, clone, &error.to_string()))
}

fn cache_failure(place: &Place, clone: &Path, message: &str) -> Error {
    Error::Cache { url: place.shown.clone(), folder: clone.to_owned(), message: message.to_owned() }
}
