//! Server-side apply by the rules of structured-merge-diff: field ownership and conflicts.
//!
//! An object becomes a set of field paths. An apply merges its configuration into the live object by the merge schema. It removes
//! fields that its manager no longer applies and nobody else owns. It conflicts when it changes fields of other managers. Every other
//! write takes ownership of the fields that it changes, without conflicts.
//!
//! Each layer uses only the layers before it:
//! - [`types`] and [`TypeRef`]: the merge schema of a kind, and the type of one field;
//! - [`FieldSet`](fieldset::FieldSet) and [`FieldComparison`](compare::FieldComparison): the paths of an object, a change or a manager;
//! - [`ManagedFields`](managed_fields::ManagedFields): the entries of `metadata.managedFields`;
//! - [`FieldWrite`]: the ownership rules, with the two entry points [`apply`] and [`update_tracking`].
//!
//! Sets borrow their names from the values that they describe. The module never stores, defaults or admits objects: [`crate::verbs`]
//! calls it with plain values and stores the result.

mod apply;
mod compare;
mod conflict;
mod encode;
mod field_write;
mod fieldset;
pub(crate) mod go_format;
mod last_applied;
mod list_items;
mod literal;
mod managed_fields;
mod managed_writer;
mod merge;
mod null_fields;
mod path;
mod prune;
mod reconcile;
mod remove;
mod reset_fields;
mod scale;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod tests;
mod type_ref;
pub(crate) mod types;
mod untracked;
mod update_tracking;
mod updater_limit;
mod validate;
mod value_fields;
mod values;
#[cfg(test)]
mod vectors;
mod write;

pub(crate) use apply::{ApplyBase, ApplyError, apply};
pub(crate) use field_write::{FieldWrite, VersionedMergeTypes};
#[cfg(test)]
use fieldset::FieldSet;
pub(crate) use managed_writer::{ManagedWriter, ManagerOperation};
pub(crate) use null_fields::normalize_nulls;
pub(crate) use reset_fields::reset_filter;
pub(crate) use scale::{ReplicaPaths, owners_of_scale, owners_of_workload};
pub(crate) use type_ref::TypeRef;
pub(crate) use untracked::untracked;
pub(crate) use update_tracking::track;
