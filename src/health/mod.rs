//! The health of one live object, computed from its JSON alone.
//!
//! The shipped rules are code in this module. Rules of a config repository override them ([`HealthRules`]).
//! `docs/reference/health.md` lists all of them, with the differences from kstatus and Argo CD. The object must be whole; kinds
//! of [`is_metadata_only`] need only metadata. The module does no IO and never panics.
//!
//! Three traps shape the rules:
//! * a status is outdated until `observedGeneration` reaches `generation`;
//! * a Deployment stays `Available` during a broken rollout, so replicas are counted;
//! * a running Job is not a completed Job.
//!
//! If other tools disagree, the rule serves a rollout: Current if there is nothing to wait for, Failed only if
//! waiting alone does not help.

mod batch;
mod cause;
mod cluster_scoped;
mod container_log;
mod dump;
mod gateway;
mod generic;
mod json_fields;
mod kruise;
mod network;
mod own_pods;
mod pod;
mod pod_creation_failure;
mod pod_index;
mod progress;
mod progressive;
mod rules;
mod scaling;
mod selector;
mod shipped_rules;
mod storage;
#[cfg(test)]
mod tests;
mod workload;

pub use cause::{ContainerCrash, PodCause, find_pod_cause, may_have_new_pods};
pub use container_log::{LOG_BYTES, last_line};
pub use dump::read_dump;
pub use kruise::daemon_set_pods;
pub use own_pods::{OwnPods, expected_pod_count, have_pods, own_pods};
pub use pod::is_ready;
pub use pod_creation_failure::{lacks_pods, pod_creation_failure, reports_by_events};
pub use pod_index::PodIndex;
pub use progress::{ProgressChange, RolloutProgress};
pub use rules::{Expressions, HealthRules, RuleBody, RuleDigest, RuleMistake, RulePart, RuleSource};
pub use selector::{PodSelector, SelectorUnion};
pub use shipped_rules::is_metadata_only;
pub use storage::unbound_class;

use serde_json::Value;

use crate::model::Health;

/// The health of one object by the shipped rules.
pub fn health_of(object: &Value) -> Health {
    HealthRules::default().health_of(object)
}
