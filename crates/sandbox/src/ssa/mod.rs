//! Server-side apply by the rules of structured-merge-diff: field ownership and conflicts.
//!
//! An object becomes a set of field paths. An apply merges its configuration into the live object by the merge schema. It removes
//! fields that its manager no longer applies and nobody else owns. It conflicts when it changes fields of other managers. Every other
//! write takes ownership of the fields that it changes, without conflicts.
//!
//! Each layer uses only the layers before it:
//! - [`types`] and [`TypeRef`]: the merge schema of a kind, and the type of one field;
//! - [`FieldSet`](fieldset::FieldSet) and [`Comparison`](compare::Comparison): the paths of an object, a change or a manager;
//! - [`Managed`](managed::Managed): the entries of `metadata.managedFields`;
//! - [`Write`]: the ownership rules, with the two entry points [`apply`] and [`track`].
//!
//! Sets borrow their names from the values that they describe. The module never stores, defaults or admits objects: [`crate::verbs`]
//! calls it with plain values and stores the result.

mod apply;
mod cap;
mod compare;
mod conflict;
mod cursor;
mod encode;
mod fields_of;
mod fieldset;
pub(crate) mod go;
mod items;
mod last_applied;
mod literal;
mod managed;
mod merge;
mod path;
mod prune;
mod reconcile;
mod remove;
mod reset;
mod scale;
mod settle;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod tests;
mod track;
pub(crate) mod types;
mod untracked;
mod validate;
mod values;
#[cfg(test)]
mod vectors;
mod write;
mod writer;

pub(crate) use apply::{ApplyError, Live, apply};
pub(crate) use cursor::TypeRef;
#[cfg(test)]
use fieldset::FieldSet;
pub(crate) use reset::filter;
pub(crate) use scale::{ReplicaPaths, owners_of_scale, owners_of_workload};
pub(crate) use settle::settle_nulls;
pub(crate) use track::track;
pub(crate) use untracked::untracked;
pub(crate) use write::{Types, Write};
pub(crate) use writer::{Operation, Writer};
