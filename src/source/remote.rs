//! Fetches from a remote by libgit2's own transports: ssh and files. Http: [`super::http`].
//!
//! libgit2 has no timeout of its own: a request without a response is abandoned together with its thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use git2::{AutotagOption, Direction, ErrorClass, FetchOptions, Oid, ProxyOptions, Repository};
use secrecy::ExposeSecret;

use super::branch_names::BRANCHES;
use super::credentials::{CallbackError, callbacks};
use super::http_responses::{MOST_OBJECTS, PACK_LIMITS};
use super::remote_address::{RemoteAddress, credentials_in};
use super::remote_references::{RemoteReference, choose_branch, find_reference};
use super::{Error, GitCredentials, git_errors};

/// Abandoned threads; above this number no request starts.
const MOST_ABANDONED: usize = 8;
/// How often a waiting request checks for progress.
const PROGRESS_CHECK_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) enum RemoteFailure {
    Failed(Error),
    /// The local copy is not usable; it can be made again.
    DamagedCopy(String),
}

impl From<Error> for RemoteFailure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl RemoteAddress {
    /// Opens the copy for one request.
    pub(super) fn open_copy(&self) -> Result<Repository, RemoteFailure> {
        Repository::open_bare(&self.clone).map_err(|error| damaged_copy(&error))
    }
}

/// Whether the branch of the copy already is at this commit.
pub(super) fn is_at_tip(copy: &Repository, branch: &str, tip: Oid) -> bool {
    copy.refname_to_id(&format!("{BRANCHES}{branch}")).is_ok_and(|known| known == tip)
        && copy.find_commit(tip).is_ok()
}

#[derive(Debug)]
pub(super) struct FetchProgress {
    steps: AtomicU64,
    is_cancelled: AtomicBool,
    /// Of one pack, as over http.
    pub most_objects: usize,
    pub most_bytes: usize,
}

impl Default for FetchProgress {
    fn default() -> Self {
        let most_bytes = usize::try_from(PACK_LIMITS.bytes).unwrap_or(usize::MAX);
        Self {
            steps: AtomicU64::new(0),
            is_cancelled: AtomicBool::new(false),
            most_objects: MOST_OBJECTS as usize,
            most_bytes,
        }
    }
}

impl FetchProgress {
    /// The limit that a pack exceeds.
    fn exceeded_limit(&self, objects: usize, bytes: usize) -> Option<String> {
        match self {
            Self { most_objects: most, .. } if objects > *most => {
                Some(format!("it sends more than {most} objects"))
            }
            Self { most_bytes: most, .. } if bytes > *most => {
                Some(format!("its answer has more than {most} bytes"))
            }
            _ => None,
        }
    }
}

/// Fetches the tip of the branch into the copy. Blocks; fails when there is no progress for `patience`, or when it takes too long.
pub(super) fn fetch_tip(
    address: &RemoteAddress,
    patience: Duration,
    open: &Arc<AtomicUsize>,
) -> Result<Oid, RemoteFailure> {
    let unable = |message: String| Error::Remote { url: address.display_url.clone(), message };
    if open.load(Ordering::Relaxed) >= MOST_ABANDONED {
        return Err(unable(format!("{MOST_ABANDONED} earlier requests have not ended")).into());
    }
    let (answer, answered) = sync_channel(1);
    let progress = Arc::new(FetchProgress::default());
    let (asked, seen) = (address.clone(), Arc::clone(&progress));
    let ended = Arc::clone(open);
    let question = move || {
        // The receiver may have timed out.
        let _ = answer.send(list_and_fetch(&asked, &seen));
        ended.fetch_sub(1, Ordering::Relaxed);
    };
    open.fetch_add(1, Ordering::Relaxed);
    let thread = std::thread::Builder::new().name("source".to_owned());
    if let Err(error) = thread.spawn(question) {
        open.fetch_sub(1, Ordering::Relaxed);
        return Err(unable(error.to_string()).into());
    }
    let begun = Instant::now();
    let (mut steps, mut still) = (0, Duration::ZERO);
    loop {
        match answered.recv_timeout(PROGRESS_CHECK_INTERVAL.min(patience)) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Disconnected) => return Err(unable("the thread ended".to_owned()).into()),
            Err(RecvTimeoutError::Timeout) => still += PROGRESS_CHECK_INTERVAL.min(patience),
        }
        let now = progress.steps.load(Ordering::Relaxed);
        if begun.elapsed() > PACK_LIMITS.time {
            progress.is_cancelled.store(true, Ordering::Relaxed);
            let message = format!("its answer did not end within {} s", PACK_LIMITS.time.as_secs());
            return Err(unable(message).into());
        }
        if now != steps {
            (steps, still) = (now, Duration::ZERO);
        } else if still >= patience {
            progress.is_cancelled.store(true, Ordering::Relaxed);
            return Err(
                Error::Timeout { url: address.display_url.clone(), seconds: patience.as_secs() }.into()
            );
        }
    }
}

/// One connection for both the list and the fetch.
pub(super) fn list_and_fetch(
    address: &RemoteAddress,
    progress: &FetchProgress,
) -> Result<Oid, RemoteFailure> {
    let copy = address.open_copy()?;
    let cause = CallbackError::default();
    let failed = |error: &git2::Error| {
        cause.take().map_or_else(|| remote_failure(address, error), RemoteFailure::Failed)
    };
    let mut remote = copy.remote_anonymous(&address.url).map_err(|error| failed(&error))?;
    let mut proxy = ProxyOptions::new();
    proxy.auto();
    let talk = callbacks(&address.url, &address.credentials, &cause);
    let mut connection =
        remote.connect_auth(Direction::Fetch, Some(talk), Some(proxy)).map_err(|error| failed(&error))?;
    progress.steps.fetch_add(1, Ordering::Relaxed);
    let heads: Vec<RemoteReference> =
        connection.list().map_err(|error| failed(&error))?.iter().map(head_of).collect();
    let (refspec, tip) = match &address.reference {
        Some(reference) => {
            let tip = find_reference(&address.display_url, reference, &heads)?;
            if copy.find_commit(tip).is_ok() {
                return Ok(tip);
            }
            (reference.clone(), tip)
        }
        None => {
            let (branch, tip) = choose_branch(&address.display_url, address.branch.as_deref(), &heads)?;
            if is_at_tip(&copy, &branch, tip) {
                return Ok(tip);
            }
            (format!("+{BRANCHES}{branch}:{BRANCHES}{branch}"), tip)
        }
    };
    let mut talk = callbacks(&address.url, &address.credentials, &cause);
    let told_excess = CallbackError::clone(&cause);
    talk.transfer_progress(move |pack| {
        progress.steps.fetch_add(1, Ordering::Relaxed);
        let excess = progress.exceeded_limit(pack.total_objects(), pack.received_bytes());
        let goes_on = excess.is_none() && !progress.is_cancelled.load(Ordering::Relaxed);
        if let Some(message) = excess {
            told_excess.replace(Some(Error::Remote { url: address.display_url.clone(), message }));
        }
        goes_on
    });
    let mut options = FetchOptions::new();
    options.remote_callbacks(talk).download_tags(AutotagOption::None).update_fetchhead(false);
    connection.remote().fetch(&[&refspec], Some(&mut options), None).map_err(|error| failed(&error))?;
    drop(options);
    copy.find_commit(tip).map_err(|error| damaged_copy(&error))?;
    Ok(tip)
}

fn head_of(head: &git2::RemoteHead<'_>) -> RemoteReference {
    RemoteReference {
        name: head.name().to_owned(),
        tip: head.oid(),
        target: head.symref_target().map(str::to_owned),
    }
}

fn damaged_copy(error: &git2::Error) -> RemoteFailure {
    RemoteFailure::DamagedCopy(git_errors::clean_line(error.message()))
}

fn remote_failure(address: &RemoteAddress, error: &git2::Error) -> RemoteFailure {
    use ErrorClass::{Indexer, Object, Odb, Reference, Tree, Zlib};
    if matches!(error.class(), Odb | Object | Reference | Tree | Zlib | Indexer) {
        return damaged_copy(error);
    }
    let mut scrub: Vec<String> = credentials_in(&address.url).map(str::to_owned).into_iter().collect();
    if let GitCredentials::Token(token) = &address.credentials {
        scrub.push(token.expose_secret().to_owned());
    }
    RemoteFailure::Failed(git_errors::remote_error(&address.display_url, &scrub, error))
}
