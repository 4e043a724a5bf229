//! Injects faults between clients and the cluster.
//!
//! Tests plan single faults (`fail_next`, `set_down`, …) or a [`FaultPlan`]: rules for classes of requests with a
//! chance and times, webhooks, and events of the whole cluster. Each rule draws from its own seeded numbers. So the
//! same requests at the same virtual times meet the same faults. Every fault that occurred is counted. Faults of
//! watches change the stream of lines; the cluster's own state is not affected.

mod calendar;
mod control;
mod disturbed;
mod fault;
mod matching;
mod plan;
mod random;
mod restore;
mod strike;
mod webhook;

pub use fault::Fault;
pub use matching::RequestMatch;
pub use plan::{ClusterEvent, FaultPlan, FaultRule, Trouble};
pub use restore::Backup;
pub use webhook::{Mutation, Webhook};

pub(crate) use calendar::start as start_calendar;
pub(crate) use disturbed::disturb;
use strike::WatchTrouble;
pub(crate) use strike::{Faults, Strike};
pub(crate) use webhook::admit;
