//! All events of the controller: one closed enum, one queue.
//!
//! | sender | events |
//! |---|---|
//! | webhooks, polls, the Lease, the registry | `Hint`, `Wake`, `Elected`, `Registered` |
//! | tasks that read Git, render, or read an earlier commit | `Loaded`, `Rendered`, `RenderCrashed`, `ChartArrived`, `PastAppRead` |
//! | supervisors and watches of clusters | `Cluster` |
//! | the task of one target or one delete | `Reconciled`, `ReconcileCrashed`, `ObjectDeleted` |
//! | searches for a cause | `PodsListed`, `CrashLogRead` |
//! | the forge and the home cluster | `AgreementAnswered`, `UnfinishedCommit`, `PostedStatusesRead`, `ForgeTokenRead` |

use std::collections::BTreeSet;
use std::sync::Arc;

use secrecy::SecretString;

use super::apps::{AppHeads, PastApp};
use super::cause_results::{CauseSearchResult, PodsListed};
use super::load_result::{GitLoadResult, LoadError};
use super::queue_memory::QueueMemoryPermit;
use super::secrets::SecretError;
use super::unbound_claims::VolumeBindingMode;
use crate::cluster::{Catalog, Client, Error, WatchChange};
use crate::fleet::Target;
use crate::forge::WebhookHint;
use crate::health::ContainerCrash;
use crate::model::{
    AppId, ApprovalQuery, ApprovalQueryResult, ClusterName, GroupVersionKind, PolicyDenial, Revision,
    SecretRef,
};
use crate::plan::PruneCandidate;
use crate::reconcile::{ReconcileOutcome, RemovalResult};
use crate::render::{Admission, Renders};

#[derive(Debug)]
pub enum Event {
    /// Read Git: a poll is due, or a local repository changed.
    Wake,
    /// This process was elected and may write.
    Elected,
    /// A webhook. Git is read all the same.
    Hint(WebhookHint),
    /// The registered clusters changed.
    Registered,
    Loaded(Result<Box<GitLoadResult>, LoadError>),
    /// All apps of a revision are rendered. `number` identifies the render.
    Rendered {
        number: u64,
        renders: Box<Renders>,
        /// The heads of apps in waves.
        heads: Arc<AppHeads>,
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
        outcome: Box<ReconcileOutcome>,
    },
    /// A reconciliation ended without an outcome, which is a bug.
    ReconcileCrashed {
        target: Target,
        number: u64,
        error: String,
    },
    ObjectDeleted {
        candidate: Box<PruneCandidate>,
        /// The epoch of the connection that it was sent over.
        epoch: u64,
        result: Result<RemovalResult, Error>,
    },
    /// The pods of a namespace were listed, or the list failed.
    PodsListed(Box<PodsListed>),
    /// The cause of one workload, with the last log line of the crashed container; `None` if the log could not be read.
    CrashLogRead {
        told: Box<CauseSearchResult>,
        crash: ContainerCrash,
        line: Option<Arc<str>>,
    },
    ForgeTokenRead {
        reference: SecretRef,
        token: Result<SecretString, SecretError>,
    },
    /// A chart of the head was fetched, or the fetch failed.
    ChartArrived,
    /// An app in waves was read at an earlier commit, or cannot be read.
    PastAppRead {
        app: AppId,
        revision: Revision,
        past: Option<Box<PastApp>>,
    },
    /// An agreement was read, or the reason why it is unknown for now.
    AgreementAnswered {
        asked: ApprovalQuery,
        answer: ApprovalQueryResult,
    },
    /// An earlier process left this commit unfinished.
    UnfinishedCommit {
        revision: Revision,
        /// The targets that the commit removed.
        left: BTreeSet<Target>,
    },
    /// The forge's statuses of recent commits were read: posting may begin.
    PostedStatusesRead {
        /// The number of the posting that it was requested for.
        number: u64,
    },
}

/// The inventory of objects of this instance.
#[derive(Debug, Default)]
pub struct InventoryResult {
    /// Kinds with at least one object.
    pub in_use: Vec<GroupVersionKind>,
    /// Kinds whose list failed for the moment.
    pub unlisted: Vec<GroupVersionKind>,
    /// Kinds that RBAC denies: they count as empty.
    pub denied: Vec<GroupVersionKind>,
}

#[derive(Debug)]
pub enum ClusterNews {
    Up {
        client: Client,
        catalog: Arc<Catalog>,
        looked: InventoryResult,
    },
    /// The served kinds changed.
    ApisChanged(Arc<Catalog>),
    /// The inventory was repeated: for all kinds, or for those whose list failed before.
    InventoryTaken(InventoryResult),
    /// The kubeconfig was replaced: the state was observed over a connection that is given up.
    KubeconfigChanged,
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
        binding: Option<VolumeBindingMode>,
    },
    /// An object was read for the verdict of these policies on its delete.
    DeleteJudged {
        candidate: Box<PruneCandidate>,
        admission: Arc<Admission>,
        result: Result<Option<PolicyDenial>, Error>,
    },
    Watch {
        kind: GroupVersionKind,
        /// Identifies the watch of the cluster.
        number: u64,
        change: WatchChange,
        /// The memory of the object in the event queue.
        room: QueueMemoryPermit,
    },
}
