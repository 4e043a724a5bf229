//! What goes wrong between a client and the cluster, on purpose.
//!
//! Two ways: single faults that a test plans (`fail_next`, `set_down`, …), and a [`FaultPlan`]: rules
//! for classes of requests with a chance and times, webhooks, and events of the whole cluster. All of
//! a plan is drawn from its seed, every rule from its own numbers, so the same requests at the same
//! (virtual) times meet the same faults. What struck is counted. Watches are disturbed from outside,
//! line by line; the cluster itself does not know.

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
