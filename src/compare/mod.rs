//! What one revision would change in what another one renders: Git against Git, without a request to a cluster.
//!
//! Needs two fleets with their snapshots and what renders charts and templates; gives a [`Comparison`], plain data for a comment, a
//! status or a program. Renders only the apps that can differ, so that the cost follows the change.
//!
//! - [`comparison`] holds the data; [`changes`] asks the renderer for both sides, and widens what is rendered where one app decides
//!   about others; [`apps`] puts together what is told of an app;
//! - [`objects`] compares the objects of one target, [`fields`] their fields, [`fold`] puts clusters together whose change is the same;
//! - [`placement`] says where an app comes and goes, and why; [`order`] in which order clusters take it; [`removal`] what becomes of
//!   objects that are no longer rendered, as far as that is decided without a cluster;
//! - [`origins`] says which changed line a field is made from;
//! - [`mistakes`] tells new errors from those that the base has too.
//!
//! Values of Secrets, and what is encrypted in the repository, are digests in it.

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
