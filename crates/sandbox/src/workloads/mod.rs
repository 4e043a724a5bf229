//! The controllers, the scheduler and the kubelets of a cluster.
//!
//! One task for each cluster takes the written objects in order and calls the controller of each kind. Controllers
//! write through [`crate::verbs`] as clients do, and set timers for later reconciles. All waits use `tokio::time`, so
//! a paused clock runs a rollout at once.

mod adoption;
mod autoscaler;
mod claim;
mod condition;
mod context;
mod cron_job;
mod daemon_set;
mod definition;
pub(crate) mod demand;
mod deployment;
mod deployment_status;
mod disruption;
mod driver;
mod endpoints;
mod event;
mod failure;
mod garbage;
mod job;
mod job_pods;
mod job_policy;
mod job_status;
mod kubelet;
mod labelled;
mod log;
mod namespace;
mod pod_events;
mod pod_status;
mod pods;
mod quota;
mod replica_set;
mod replica_sets;
mod revision;
mod rolling;
mod rollout;
mod schedule;
mod scheduler;
mod service;
mod stateful_pod;
mod stateful_set;
mod virtual_pods;
pub(crate) mod words;

pub(crate) use disruption::condition as disruption_condition;
pub(crate) use driver::run;
pub(crate) use log::{LogQuery, log_of};

/// The hash of a pod template in the server's alphabet. The values differ from the real ones, which hash Go memory;
/// equal templates have equal hashes. The number of collisions distinguishes a hash whose name is taken.
fn template_hash(template: &serde_json::Value, collisions: i64) -> String {
    let mut template = template.clone();
    // independent of the order of its fields
    template.sort_all_objects();
    let text = if collisions == 0 { template.to_string() } else { format!("{template}{collisions}") };
    crate::seed::short_hash(&text)
}
