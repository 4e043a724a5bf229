//! Reconciles one app on one cluster at one revision: looks up new objects, plans, applies.
//!
//! The input is a render, an observation and a connection. The pure `plan` decides everything. This module does not wait for
//! health: the watches report it to the controller.

mod admission;
mod dry_run;
mod history;
mod job;
mod lookups;
mod object_removal;
mod observe;
mod ownership;
mod reconciliation;

pub use admission::unjudged_writes;
pub use dry_run::is_dry_run;
pub use history::RenderHistory;
pub use job::{AppDependencies, ReconcileJob};
pub use lookups::{LookupResult, record_lookup};
pub use object_removal::{ObjectRemoval, RemovalResult};
pub use observe::{is_copy, live_object};
pub use ownership::{keep_replicas_owner, record_foreign_changes, settle_ownership, settled_ownership};
pub use reconciliation::{ReconcileOutcome, preview, run};
