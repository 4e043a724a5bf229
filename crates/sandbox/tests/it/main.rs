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
mod chaos;
mod contract;
mod custom;
mod discovery;
mod draw;
mod faults;
mod fuzz;
mod kubectl;
mod objects;
mod plans;
mod rollout;
mod scale;
mod scenario;
mod seeded;
mod sequences;
mod support;
mod watching;
mod workloads;
