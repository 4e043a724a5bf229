//! The objects of one cluster, with their history for watches.
//!
//! One counter gives every write its `resourceVersion`; it starts high and jumps, so that a client
//! that does arithmetic on it is found out. Each resource keeps a ring of its last changes; what
//! fell out of the ring is compacted, and a watch from there is told 410.
//!
//! Objects are kept as compressed JSON text, a tenth of the size of the parsed form. Whoever works
//! with an object parses it once; the parsed form is shared until the controllers have nothing left
//! to do ([`Store::cool`]). Whole objects are answered from the text without parsing.

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
