//! The simulator as its clients see it: through `kube::Client`, and through kubectl.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::panic,
    clippy::needless_pass_by_value,
    clippy::large_futures,
    reason = "helpers of tests are tests"
)]

mod apply;
mod busy_determinism;
mod chaos;
mod cluster_controllers;
mod container_logs;
mod contract;
mod custom_resources;
mod defaults;
mod deployment_sequences;
mod deployments;
mod discovery;
mod draw;
mod extreme_values;
mod fault_plans;
mod faults;
mod field_validation;
mod fuzz;
mod kubectl;
mod kubernetes_releases;
mod many_clusters;
mod objects;
mod pod_failures;
mod refusals;
mod scenario;
mod seed_determinism;
mod support;
mod virtual_pods;
mod watch_log;
mod watches;
mod workload_sequences;
mod workloads;
