//! The objects of one cluster, with their history for watches.
//!
//! One counter gives every write its `resourceVersion`. It starts high and jumps, which exposes clients that do
//! arithmetic on it. Each resource keeps a ring of its last changes. Older changes are compacted, and a watch from
//! before them gets 410.
//!
//! Objects are kept as compressed JSON text, a tenth of the parsed size. An object is parsed at first use; the parsed
//! form is shared until the controllers are idle ([`Store::cool`]). Responses with whole objects use the text without
//! parsing.

mod change;
#[cfg(test)]
pub(crate) mod counters;
mod history;
mod index;
mod labels;
mod place;
mod saved;
mod selecting;
mod stored;
mod table;
mod tables;
#[cfg(test)]
mod tests;
pub(crate) mod text;

pub(crate) use change::{Change, ChangeKind, Compacted, Key, Object, ObjectName};
pub(crate) use place::Place;
pub(crate) use saved::Saved;
pub(crate) use stored::Stored;
pub(crate) use tables::Store;
