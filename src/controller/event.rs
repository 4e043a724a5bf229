//! Everything that can happen to the controller: one closed list into one queue.
//!
//! | sender | events |
//! |---|---|
//! | webhooks, polls, the Lease, the registry | `Hint`, `Wake`, `Elected`, `Registered` |
//! | tasks that read Git, render, or read an earlier commit | `Loaded`, `Rendered`, `RenderCrashed`, `ChartArrived`, `PastApp` |
//! | supervisors and watches of clusters | `Cluster` |
//! | the task of one target or one delete | `Reconciled`, `Crashed`, `Deleted` |
//! | searches for a cause | `PodsListed`, `LastLine` |
//! | the forge and the home cluster | `Agreed`, `UnderWay`, `Recalled`, `Token` |

use std::collections::BTreeSet;
use std::sync::Arc;

use secrecy::SecretString;

use super::apps::{Heads, PastApp};
use super::cause_lists::PodsListed;
use super::claims::Binding;
use super::last_lines::Explanation;
use super::load::Loaded;
use super::secrets::SecretError;
use super::weight::Room;
use crate::cluster::{Catalog, Change, Client, Error};
use crate::fleet::Target;
use crate::forge::Hint;
use crate::health::Crash;
use crate::model::{Answer, AppId, ClusterName, Denial, Kind, Question, Revision, SecretRef};
use crate::plan::Candidate;
use crate::reconcile::{Outcome, Went};
use crate::render::{Admission, Renders};

#[derive(Debug)]
pub enum Event {
    /// Ask Git: the time has come, or something in a local repository moved.
    Wake,
    /// From now on this process writes.
    Elected,
    /// A webhook says so; Git is asked all the same.
    Hint(Hint),
    /// The registry of clusters says something else than before.
    Registered,
    /// The newest revision, read and checked.
    Loaded(Result<Box<Loaded>, LoadError>),
    /// All apps of a revision, rendered; which render it was.
    Rendered {
        number: u64,
        renders: Box<Renders>,
        /// Of apps in waves.
        heads: Arc<Heads>,
        /// What its policies say of what is deployed.
        admission: Option<Arc<Admission>>,
    },
    /// Nothing comes of a render, by a fault of ours.
    RenderCrashed {
        number: u64,
    },
    Cluster {
        cluster: ClusterName,
        epoch: u64,
        news: ClusterNews,
    },
    Reconciled {
        target: Target,
        /// Of the task that it was.
        number: u64,
        epoch: u64,
        outcome: Box<Outcome>,
    },
    /// A reconciliation ended without an outcome: a fault of ours.
    Crashed {
        target: Target,
        number: u64,
        error: String,
    },
    Deleted {
        candidate: Box<Candidate>,
        /// Of the connection that it was asked over.
        epoch: u64,
        result: Result<Went, Error>,
    },
    /// Pods of a namespace were listed, or could not be.
    PodsListed(Box<PodsListed>),
    /// The cause of one workload, with what the container that crashed wrote last; `None` when nobody can say.
    LastLine {
        told: Box<Explanation>,
        crash: Crash,
        line: Option<Arc<str>>,
    },
    /// The token of the forge, asked for again.
    Token {
        reference: SecretRef,
        token: Result<SecretString, SecretError>,
    },
    /// A chart that the head names was fetched, or could not be.
    ChartArrived,
    /// An app in waves was read at an earlier commit, or cannot be.
    PastApp {
        app: AppId,
        revision: Revision,
        past: Option<Box<PastApp>>,
    },
    /// Who agreed, or why that is not known for now.
    Agreed {
        asked: Question,
        answer: Answer,
    },
    /// What an earlier process said of this commit, or did not come to say, is not the end of it.
    UnderWay {
        revision: Revision,
        /// What it took away.
        left: BTreeSet<Target>,
    },
    /// The forge has said all that it knows of recent commits: posting to it may begin.
    Recalled {
        /// Of the posting that it was asked for.
        number: u64,
    },
}

/// What a look for objects of ours has found.
#[derive(Debug, Default)]
pub struct Looked {
    /// Kinds of which there are any.
    pub in_use: Vec<Kind>,
    /// Kinds that cannot be listed, for the moment.
    pub unlisted: Vec<Kind>,
    /// Kinds that we may not list: taken to hold nothing of ours.
    pub denied: Vec<Kind>,
}

#[derive(Debug)]
pub enum ClusterNews {
    Up {
        client: Client,
        catalog: Arc<Catalog>,
        looked: Looked,
    },
    /// It serves other kinds than before.
    Serves(Arc<Catalog>),
    /// It was looked for what is ours again: of all kinds, or of those that could not be listed before.
    Listed(Looked),
    /// Its kubeconfig is another one by now: what is known was said over a connection that is given up.
    Left,
    Down {
        detail: String,
        /// Counted from 1 since it last answered.
        attempts: u32,
        /// It will not get better by itself: no kubeconfig, or a wrong one.
        lasting: bool,
    },
    /// When claims of a storage class are bound; `None` when the class could not be read.
    StorageClass {
        class: Arc<str>,
        binding: Option<Binding>,
    },
    /// An object was read, for what these policies say of its delete.
    DeleteJudged {
        candidate: Box<Candidate>,
        admission: Arc<Admission>,
        result: Result<Option<Denial>, Error>,
    },
    Watch {
        kind: Kind,
        /// Which watch of the cluster.
        number: u64,
        change: Change,
        /// In the queue.
        room: Room,
    },
}

/// The repository could not be read; what runs goes on.
#[derive(Clone, Debug)]
pub struct LoadError {
    pub message: String,
    pub help: Option<String>,
    pub kind: crate::source::ErrorKind,
}

impl LoadError {
    /// With what to do about it.
    pub(super) fn in_words(&self) -> String {
        let help = self.help.as_ref().map(|help| format!("; {help}"));
        format!("{}{}", self.message, help.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_the_repository_says_what_to_do() {
        let error = |help: Option<&str>| LoadError {
            message: "failed to read a: it is empty".to_owned(),
            help: help.map(str::to_owned),
            kind: crate::source::ErrorKind::Configuration,
        };
        assert_eq!(
            error(Some("commit something")).in_words(),
            "failed to read a: it is empty; commit something"
        );
        assert_eq!(error(None).in_words(), "failed to read a: it is empty");
    }
}
