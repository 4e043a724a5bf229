//! PersistentVolumeClaims whose storage class binds them only when a pod uses them.
//!
//! The claim does not show this; its storage class does.

use super::cluster_entry::ClusterEntry;
use super::target_entry::TargetEntry;
use crate::model::ObjectId;

/// Detail of the phase for such a claim.
pub const IDLE_CLAIM_MESSAGE: &str =
    "Suspended, its storage class waits for the first consumer, and no running workload of its app uses it";

/// The claim is unbound because its class waits for a pod, and no running workload of the app uses it.
pub fn is_idle_claim(claim: &ObjectId, entry: &TargetEntry, cluster: &ClusterEntry) -> bool {
    cluster.unbound_claims.waits_for_consumer(claim)
        && !entry.claim_uses().is_in_use(claim, &cluster.observation)
}
