//! An in-process Kubernetes API server, small enough to run hundreds of them in one test.
//!
//! ```no_run
//! # fn client_of<S>(_: S, _: &str) {}
//! use sandbox::{Sandbox, SandboxOptions};
//! let cluster = Sandbox::new(SandboxOptions { name: "bj1".to_owned(), ..SandboxOptions::default() });
//! // kube::Client::new
//! let client = client_of(cluster.service(), "default");
//! ```
//!
//! It stores objects, watches, applies server-side, defaults and validates the common kinds, and
//! runs their controllers on simulated pods, all by `tokio::time` and one seed: under a paused clock
//! a rollout takes no time. What it does not simulate it refuses with 501 `NotSimulated`.
//!
//! It is not a Kubernetes: no access control, no admission webhooks, no protobuf, no exec.

#[cfg(test)]
mod budgets;
mod clock;
mod cluster;
mod custom;
mod decoding;
mod defaults;
mod discovery;
mod faults;
mod listener;

mod api_error;
mod controllers;
mod object;
mod options;
mod partial_metadata;
mod quantity;
mod registry;
mod release;
mod request_log;
mod request_record;
mod scenario;
mod schema;
mod seed;
mod selectors;
mod service;
mod signal;
mod spliced_json;
mod ssa;
mod store;
mod table;
mod validation;
mod verbs;
mod watch;
mod wire;

pub use cluster::Sandbox;
pub use faults::{
    ClusterBackup, Fault, FaultEffect, FaultPlan, FaultRule, MutatingWebhook, PlannedClusterEvent,
    RequestMatch, WebhookMutation,
};
pub use listener::{ListenError, SandboxListener};
pub use options::{PodMode, SandboxOptions};
pub use release::{Release, UnknownRelease};
pub use request_record::RequestRecord;
pub use scenario::{Scenario, ScenarioError};
pub use service::SandboxService;
pub use wire::response::ResponseBody;
