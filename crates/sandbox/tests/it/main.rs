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
mod busy;
mod chaos;
mod contract;
mod controllers;
mod custom;
mod defaults;
mod discovery;
mod draw;
mod extremes;
mod failing;
mod faults;
mod fields;
mod fuzz;
mod kubectl;
mod logs;
mod neighbours;
mod objects;
mod plans;
mod refusals;
mod releases;
mod rollout;
mod scale;
mod scenario;
mod seeded;
mod seen;
mod sequences;
mod support;
mod virtual_pods;
mod watching;
mod workloads;
