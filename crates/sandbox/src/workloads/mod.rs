//! What the controllers, the scheduler and the kubelets of a cluster do.
//!
//! One task for each cluster takes the objects that were written, in order, and lets the controller
//! of their kind look at them; controllers write as clients do and ask to be called again later.
//! All waiting is `tokio::time`, so a paused clock runs a rollout at once.

mod claim;
mod condition;
mod context;
mod daemon_set;
mod definition;
mod deployment;
mod deployment_status;
mod driver;
mod failure;
mod garbage;
mod job;
mod namespace;
mod pod_status;
mod pods;
mod replica_set;
mod revision;
mod rolling;
mod service;
mod stateful_set;

pub(crate) use driver::run;
pub(crate) use pod_status::log_of;
