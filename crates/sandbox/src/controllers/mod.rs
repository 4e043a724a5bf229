//! The controllers, the scheduler and the kubelets of a cluster.
//!
//! One task for each cluster takes the written objects in order and calls the controller of each kind. Controllers
//! write through [`crate::verbs`] as clients do, and set timers for later reconciles. All waits use `tokio::time`, so
//! a paused clock runs a rollout at once.

mod adoptable_objects;
mod adoption;
mod autoscaler;
mod controller_condition;
mod controller_context;
mod controller_loop;
mod controller_revision;
mod cron_job;
mod cron_job_schedule;
mod custom_definition;
mod daemon_set;
mod deployment;
mod deployment_replica_sets;
mod deployment_rollout;
mod deployment_status;
mod disruption_budget;
mod endpoints;
mod event;
mod event_component;
mod event_recorder;
mod garbage_collector;
mod job;
mod job_indexes;
mod job_pods;
mod job_policy;
mod job_status;
mod kubelet;
mod label_lookup;
mod namespace;
mod pod;
mod pod_events;
mod pod_failure;
mod pod_log;
mod pod_run;
mod pod_status;
mod pods;
mod quota;
mod replica_set;
pub(crate) mod resource_requests;
mod rolling_limits;
mod rolling_update;
mod scheduler;
mod service;
pub(crate) mod sim_annotations;
mod stateful_pod;
mod stateful_set;
mod virtual_pods;
mod volume_claim;

pub(crate) use controller_loop::run;
pub(crate) use disruption_budget::condition as disruption_condition;
pub(crate) use pod_log::{PodLogQuery, container_log};

/// The hash of a pod template in the server's alphabet. The values differ from the real ones, which hash Go memory;
/// equal templates have equal hashes. The number of collisions distinguishes a hash whose name is taken.
fn template_hash(template: &serde_json::Value, collisions: i64) -> String {
    let mut template = template.clone();
    // independent of the order of its fields
    template.sort_all_objects();
    let text = if collisions == 0 { template.to_string() } else { format!("{template}{collisions}") };
    crate::seed::short_hash(&text)
}
