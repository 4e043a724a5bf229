//! Compares the renders of two revisions, without a request to a cluster. The result is a [`Comparison`], plain data for the comment on a
//! pull request, a status or a command. Only apps that can differ are rendered, so that the cost follows the change.
//!
//! - [`comparison`] holds the data; [`compare_revisions`] renders both sides, and renders more apps when one affects others; [`apps`] builds the
//!   change of an app;
//! - [`objects`] compares the objects of one target, [`fields`] their fields; [`group_clusters`] groups clusters with equal changes;
//! - [`placement`] lists placement changes with reasons, [`wave_order`] the waves, [`removal`] the outcome for objects that are no longer
//!   rendered, as far as it is decided without a cluster;
//! - [`origins`] finds the changed line behind a field;
//! - [`mistakes`] separates new errors from those of the base.
//!
//! Values of Secrets and encrypted values appear as digests.

mod apps;
mod compare_revisions;
mod comparison;
pub mod fields;
mod group_clusters;
mod mistakes;
mod objects;
mod origins;
mod placement;
mod removal;
#[cfg(test)]
mod tests;
mod wave_order;

pub use compare_revisions::{ComparedRevision, ComparisonCache, compare, fleet_after};
pub use comparison::{
    AppChange, AppPresence, ClusterColumn, ClusterPresence, Comparison, ComparisonTotals, FieldChange,
    FieldGroup, ObjectChange, ObjectChangeAction, ObjectCounts, PlacementChange, PlacementTransition,
    RemovalOutcome, VersionChange, WaveStep,
};
