//! The conversation with a remote: which commit is the tip, and fetch it when it is new.
//!
//! One thread per remote holds the connection between two questions, because libgit2 keeps an idle
//! http connection (TLS handshake included) in its remote object, which may not move. A question that
//! gets no answer is given up by leaving the thread behind: libgit2 has no timeout of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use git2::{AutotagOption, Direction, ErrorClass, FetchOptions, Oid, ProxyOptions, Remote, Repository};
use secrecy::ExposeSecret;

use super::credentials::{Cause, callbacks};
use super::place::credentials_in;
use super::reader::nearest;
use super::{Credentials, Error, translate};

/// How often a waiting question looks whether anything still moves.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) enum Failure {
    Told(Error),
    /// The local copy is not usable; it can be made again.
    Damaged(String),
}

/// Everything a question needs, without its answers.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub shown: String,
    pub url: String,
    pub credentials: Credentials,
    pub branch: Option<String>,
    pub clone: PathBuf,
}

#[derive(Debug)]
pub(super) struct Conversation {
    questions: Sender<SyncSender<Result<Oid, Failure>>>,
    progress: Arc<Progress>,
    shown: String,
}

#[derive(Debug, Default)]
struct Progress {
    steps: AtomicU64,
    given_up: AtomicBool,
}

impl Conversation {
    pub(super) fn start(address: Address) -> Result<Self, Error> {
        let (questions, asked) = channel();
        let progress = Arc::new(Progress::default());
        let shown = address.shown.clone();
        let seen = Arc::clone(&progress);
        let failed = |error: std::io::Error| Error::Remote { url: shown.clone(), message: error.to_string() };
        std::thread::Builder::new()
            .name("source".to_owned())
            .spawn(move || converse(&address, &asked, &seen))
            .map_err(failed)?;
        Ok(Self { questions, progress, shown })
    }

    /// The tip of the branch, which is then in the local copy. Blocks; gives up when nothing moved for
    /// `patience`, after which this conversation is of no more use.
    pub(super) fn tip(&self, patience: Duration) -> Result<Oid, Failure> {
        let (answer, answered) = sync_channel(1);
        let ended = || Failure::Damaged("the conversation ended".to_owned());
        self.questions.send(answer).map_err(|_| ended())?;
        let (mut seen, mut still) = (self.progress.steps.load(Ordering::Relaxed), Duration::ZERO);
        loop {
            match answered.recv_timeout(LOOK.min(patience)) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
                Err(RecvTimeoutError::Timeout) => still += LOOK.min(patience),
            }
            let steps = self.progress.steps.load(Ordering::Relaxed);
            if steps != seen {
                (seen, still) = (steps, Duration::ZERO);
            } else if still >= patience {
                self.progress.given_up.store(true, Ordering::Relaxed);
                let silent = Error::Silent { url: self.shown.clone(), seconds: patience.as_secs() };
                return Err(Failure::Told(silent));
            }
        }
    }
}

fn converse(address: &Address, asked: &Receiver<SyncSender<Result<Oid, Failure>>>, progress: &Progress) {
    let repository = Repository::open_bare(&address.clone);
    let mut kept: Option<Remote<'_>> = None;
    while let Ok(answer) = asked.recv() {
        let result = match &repository {
            Ok(repository) => ask_again(repository, &mut kept, address, progress),
            Err(error) => Err(Failure::Damaged(error.message().to_owned())),
        };
        // Whoever asked may have given up.
        let _ = answer.send(result);
    }
}

/// A kept connection may have been closed by the other side meanwhile: then once more with a new one.
fn ask_again<'a>(
    repository: &'a Repository,
    kept: &mut Option<Remote<'a>>,
    address: &Address,
    progress: &Progress,
) -> Result<Oid, Failure> {
    if let Some(mut remote) = kept.take()
        && let Ok(tip) = ask(repository, &mut remote, address, progress)
    {
        *kept = Some(remote);
        return Ok(tip);
    }
    let mut remote = repository.remote_anonymous(&address.url).map_err(|error| told(address, &error))?;
    let tip = ask(repository, &mut remote, address, progress)?;
    *kept = Some(remote).filter(|_| address.url.starts_with("http"));
    Ok(tip)
}

/// One connection for both the list and the fetch.
fn ask(
    repository: &Repository,
    remote: &mut Remote<'_>,
    address: &Address,
    progress: &Progress,
) -> Result<Oid, Failure> {
    let cause = Cause::default();
    let failed = |error: &git2::Error| cause.take().map_or_else(|| told(address, error), Failure::Told);
    let mut proxy = ProxyOptions::new();
    proxy.auto();
    let talk = callbacks(&address.url, &address.credentials, &cause);
    let mut connection =
        remote.connect_auth(Direction::Fetch, Some(talk), Some(proxy)).map_err(|error| failed(&error))?;
    progress.steps.fetch_add(1, Ordering::Relaxed);
    let (branch, tip) = {
        let heads = connection.list().map_err(|error| failed(&error))?;
        choose(address, heads).map_err(Failure::Told)?
    };
    let name = format!("refs/heads/{branch}");
    let known = repository.find_reference(&name).ok().and_then(|reference| reference.target());
    if known == Some(tip) && repository.find_commit(tip).is_ok() {
        return Ok(tip);
    }
    let mut talk = callbacks(&address.url, &address.credentials, &cause);
    talk.transfer_progress(|_| {
        progress.steps.fetch_add(1, Ordering::Relaxed);
        !progress.given_up.load(Ordering::Relaxed)
    });
    let mut options = FetchOptions::new();
    options.remote_callbacks(talk).download_tags(AutotagOption::None).update_fetchhead(false);
    let refspec = format!("+{name}:{name}");
    connection.remote().fetch(&[&refspec], Some(&mut options), None).map_err(|error| failed(&error))?;
    drop(options);
    repository.find_commit(tip).map_err(|error| Failure::Damaged(error.message().to_owned()))?;
    Ok(tip)
}

/// The branch to read, out of what the remote has.
fn choose(address: &Address, heads: &[git2::RemoteHead<'_>]) -> Result<(String, Oid), Error> {
    let branches: Vec<(&str, Oid)> = heads
        .iter()
        .filter_map(|head| Some((head.name().strip_prefix("refs/heads/")?, head.oid())))
        .collect();
    let url = address.shown.clone();
    if branches.is_empty() {
        return Err(Error::Empty { url });
    }
    let wanted = match &address.branch {
        Some(branch) => Some(branch.as_str()),
        None => default_branch(heads, &branches),
    };
    let found = branches.iter().find(|(name, _)| Some(*name) == wanted);
    if let Some((name, tip)) = found {
        return Ok(((*name).to_owned(), *tip));
    }
    let names = branches.iter().map(|(name, _)| (*name).to_owned()).collect();
    Err(match &address.branch {
        Some(branch) => {
            Error::MissingBranch { url, branch: branch.clone(), branches: nearest(branch, names) }
        }
        None => Error::NoDefaultBranch { url, branches: names },
    })
}

/// What `HEAD` points to; an old server that does not say so leaves its commit to go by.
fn default_branch<'a>(heads: &'a [git2::RemoteHead<'_>], branches: &[(&'a str, Oid)]) -> Option<&'a str> {
    let head = heads.iter().find(|head| head.name() == "HEAD");
    if let Some(target) = head.and_then(|head| head.symref_target()) {
        return target.strip_prefix("refs/heads/");
    }
    match (head, branches) {
        (Some(head), _) => branches.iter().find(|(_, tip)| *tip == head.oid()).map(|(name, _)| *name),
        (None, [(only, _)]) => Some(only),
        (None, _) => None,
    }
}

fn told(address: &Address, error: &git2::Error) -> Failure {
    use ErrorClass::{Indexer, Object, Odb, Reference, Tree, Zlib};
    if matches!(error.class(), Odb | Object | Reference | Tree | Zlib | Indexer) {
        return Failure::Damaged(error.message().to_owned());
    }
    let mut scrub: Vec<String> = credentials_in(&address.url).map(str::to_owned).into_iter().collect();
    if let Credentials::Token(token) = &address.credentials {
        scrub.push(token.expose_secret().to_owned());
    }
    Failure::Told(translate::remote(&address.shown, &scrub, error))
}
