//! Server-side apply: who owns which field, and what happens when managers disagree.
//!
//! Follows the rules of structured-merge-diff: an object becomes a set of field paths; an apply
//! merges the configuration into the live object by its merge schema, takes away what the same
//! manager dropped and nobody else owns, and conflicts when it changes what others own. Every other
//! write moves ownership of what it changed, without conflicts.
//!
//! In layers, each of which uses the ones before:
//! - [`types`] and [`TypeRef`]: what a kind's fields are to a merge, and a place in it;
//! - [`FieldSet`](fieldset::FieldSet) and [`Comparison`](compare::Comparison): the paths of an object, of a change, of a manager;
//! - [`Managed`](managed::Managed): the owners as objects carry them;
//! - [`Write`]: the rules of ownership, and [`apply`] and [`track`], the two doors.
//!
//! Sets borrow their names from the values they were made of. Needs the merge type of the kind; never
//! stores, defaults or admits: the verbs call it with plain values and write the result.

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
