//! All events of the controller: one closed enum, one queue.
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
    /// Read Git: a poll is due, or a local repository changed.
    Wake,
    /// This process was elected and may write.
    Elected,
    /// A webhook. Git is read all the same.
    Hint(Hint),
    /// The registered clusters changed.
    Registered,
    Loaded(Result<Box<Loaded>, LoadError>),
    /// All apps of a revision are rendered. `number` identifies the render.
    Rendered {
        number: u64,
        renders: Box<Renders>,
        /// The heads of apps in waves.
        heads: Arc<Heads>,
        /// What its policies say of the deployed objects.
        admission: Option<Arc<Admission>>,
    },
    /// A render ended without a result, which is a bug.
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
        /// The number of the reconciliation.
        number: u64,
        epoch: u64,
        outcome: Box<Outcome>,
    },
    /// A reconciliation ended without an outcome, which is a bug.
    Crashed {
        target: Target,
        number: u64,
        error: String,
    },
    Deleted {
        candidate: Box<Candidate>,
        /// The epoch of the connection that it was sent over.
        epoch: u64,
        result: Result<Went, Error>,
    },
    /// The pods of a namespace were listed, or the list failed.
    PodsListed(Box<PodsListed>),
    /// The cause of one workload, with the last log line of the crashed container; `None` if the log could not be read.
    LastLine {
        told: Box<Explanation>,
        crash: Crash,
        line: Option<Arc<str>>,
    },
    Token {
        reference: SecretRef,
        token: Result<SecretString, SecretError>,
    },
    /// A chart of the head was fetched, or the fetch failed.
    ChartArrived,
    /// An app in waves was read at an earlier commit, or cannot be read.
    PastApp {
        app: AppId,
        revision: Revision,
        past: Option<Box<PastApp>>,
    },
    /// An agreement was read, or the reason why it is unknown for now.
    Agreed {
        asked: Question,
        answer: Answer,
    },
    /// An earlier process left this commit unfinished.
    UnderWay {
        revision: Revision,
        /// The targets that the commit removed.
        left: BTreeSet<Target>,
    },
    /// The forge's statuses of recent commits were read: posting may begin.
    Recalled {
        /// The number of the posting that it was requested for.
        number: u64,
    },
}

/// The inventory of objects of this instance.
#[derive(Debug, Default)]
pub struct Looked {
    /// Kinds with at least one object.
    pub in_use: Vec<Kind>,
    /// Kinds whose list failed for the moment.
    pub unlisted: Vec<Kind>,
    /// Kinds that RBAC denies: they count as empty.
    pub denied: Vec<Kind>,
}

#[derive(Debug)]
pub enum ClusterNews {
    Up {
        client: Client,
        catalog: Arc<Catalog>,
        looked: Looked,
    },
    /// The served kinds changed.
    Serves(Arc<Catalog>),
    /// The inventory was repeated: for all kinds, or for those whose list failed before.
    Listed(Looked),
    /// The kubeconfig was replaced: the state was observed over a connection that is given up.
    Left,
    Down {
        detail: String,
        /// Counted from 1 since the last answer.
        attempts: u32,
        /// It does not recover without help: the kubeconfig is missing or wrong.
        lasting: bool,
    },
    /// The binding mode of a storage class; `None` if the class could not be read.
    StorageClass {
        class: Arc<str>,
        binding: Option<Binding>,
    },
    /// An object was read for the verdict of these policies on its delete.
    DeleteJudged {
        candidate: Box<Candidate>,
        admission: Arc<Admission>,
        result: Result<Option<Denial>, Error>,
    },
    Watch {
        kind: Kind,
        /// Identifies the watch of the cluster.
        number: u64,
        change: Change,
        /// The memory of the object in the event queue.
        room: Room,
    },
}

/// The repository could not be read. The running state stays.
#[derive(Clone, Debug)]
pub struct LoadError {
    pub message: String,
    pub help: Option<String>,
    pub kind: crate::source::ErrorKind,
}

impl LoadError {
    /// The message, with what to do about it.
    pub(super) fn in_words(&self) -> String {
        let help = self.help.as_ref().map(|help| format!("; {help}"));
        format!("{}{}", self.message, help.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_error_says_what_to_do() {
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
