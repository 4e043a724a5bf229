//! Injects faults between clients and the cluster.
//!
//! Tests plan single faults (`fail_next`, `set_down`, …) or a [`FaultPlan`]: rules for classes of requests with a
//! chance and times, webhooks, and events of the whole cluster. Each rule draws from its own seeded numbers. So the
//! same requests at the same virtual times meet the same faults. Every fault that occurred is counted. Faults of
//! watches change the stream of lines; the cluster's own state is not affected.

mod cluster_backup;
mod control;
mod event_schedule;
mod fault;
mod fault_state;
mod faulty_watch;
mod plan;
mod random;
mod request_match;
mod webhook;

pub use cluster_backup::ClusterBackup;
pub use fault::Fault;
pub use plan::{FaultEffect, FaultPlan, FaultRule, PlannedClusterEvent};
pub use request_match::RequestMatch;
pub use webhook::{MutatingWebhook, WebhookMutation};

pub(crate) use event_schedule::start as start_calendar;
pub(crate) use fault_state::{FaultState, RequestFaults};
pub(crate) use faulty_watch::with_watch_faults;
pub(crate) use webhook::apply_webhooks;
