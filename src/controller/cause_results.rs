//! The results of searches for a cause.

use std::sync::Arc;

use super::cause_searches::WorkloadKey;
use crate::fleet::Target;
use crate::health::PodCause;
use crate::model::{ClusterName, Digest, ObjectId};

/// The result of a search: why the pods of a workload are not ready.
#[derive(Clone, Debug)]
pub struct CauseSearchResult {
    pub target: Target,
    /// Digest of the render at the time of the search.
    pub rendered: Digest,
    pub workload: ObjectId,
    pub cause: Option<PodCause>,
    /// The pod whose crash was reported still exists.
    pub pod_exists: bool,
}

/// The result of one list, or a part of it.
#[derive(Debug)]
pub struct PodsListed {
    pub cluster: ClusterName,
    /// The namespace whose list ended. `None` if all workloads are pods themselves, because nothing is listed then.
    pub listed_namespace: Option<Arc<str>>,
    pub results: Vec<PodListResult>,
}

#[derive(Debug)]
pub enum PodListResult {
    Explained(Box<CauseSearchResult>),
    /// The list was cut off, and has no pod of this workload.
    CutOff(WorkloadKey),
    /// The server did not answer. The known cause stays, and the search is repeated after its pause.
    Unknown(WorkloadKey),
}
