//! Server-side apply: who owns which field, and what happens when managers disagree.
//!
//! Follows the rules of structured-merge-diff: an object becomes a set of field paths; an apply
//! merges the configuration into the live object by its merge schema, takes away what the same
//! manager dropped and nobody else owns, and conflicts when it changes what others own. Every other
//! write moves ownership of what it changed, without conflicts.
//!
//! Needs the merge schema of the kind ([`Schema`]). Never stores, defaults or validates: the verbs
//! call [`apply`] and [`track`] with plain values and write the result.

mod compare;
mod encode;
mod fieldset;
mod managed;
mod merge;
mod path;
mod prune;
mod schema;
mod tables;
#[cfg(test)]
mod tests;
#[allow(dead_code, reason = "read once the schemas are generated")]
pub(crate) mod types;
mod untracked;
mod update;

use fieldset::FieldSet;
pub(crate) use managed::{Operation, Writer};
pub(crate) use schema::Schema;
pub(crate) use update::{ApplyError, Live, apply, track};
