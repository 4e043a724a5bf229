//! Measures after waves: asks Prometheus and HTTP servers, looks at the wave itself, reads commit statuses of others.
//!
//! Runs beside the controller. What has to be measured stands in the overview (`RolloutReport::measures`); what came of it goes
//! back by a watch channel, and the decision of a rollout goes by it. One task measures one thing, and ends when nobody waits for it
//! any more: then what came of it is dropped. Nothing is stored, so another process measures again.
//!
//! [`judge`] is pure: what an answer says, and what follows from several. [`probe`] asks, within bounds: redirects are not followed, an
//! answer has a size and a time, and a host is asked a few things at once.

mod judge;
mod probe;
mod run;
mod statuses;
#[cfg(test)]
mod tests;

pub use run::{Inputs, Settings, run};
