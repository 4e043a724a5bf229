//! Compares the renders of two revisions, without a request to a cluster. The result is a [`Comparison`], plain data for the comment on a
//! pull request, a status or a command. Only apps that can differ are rendered, so that the cost follows the change.
//!
//! - [`comparison`] holds the data; [`changes`] renders both sides, and renders more apps when one affects others; [`apps`] builds the
//!   change of an app;
//! - [`objects`] compares the objects of one target, [`fields`] their fields; [`fold`] groups clusters with equal changes;
//! - [`placement`] lists placement changes with reasons, [`order`] the waves, [`removal`] the outcome for objects that are no longer
//!   rendered, as far as it is decided without a cluster;
//! - [`origins`] finds the changed line behind a field;
//! - [`mistakes`] separates new errors from those of the base.
//!
//! Values of Secrets and encrypted values appear as digests.

mod apps;
mod changes;
mod comparison;
pub mod fields;
mod fold;
mod mistakes;
mod objects;
mod order;
mod origins;
mod placement;
mod removal;
#[cfg(test)]
mod tests;

pub use changes::{Kept, Side, compare, fleet_after};
pub use comparison::{
    Action, AppChange, AppState, ClusterColumn, ClusterState, Comparison, Counts, Fate, FieldChange,
    FieldGroup, ObjectChange, Placed, PlacementChange, Totals, VersionChange, WaveStep,
};
