//! The objects of one cluster, with their history for watches.
//!
//! One counter gives every write its `resourceVersion`; it starts high and jumps, so that a client
//! that does arithmetic on it is found out. Each resource keeps a ring of its last changes; what
//! fell out of the ring is compacted, and a watch from there is told 410.
//!
//! Objects are held as shared JSON values and handed out only through [`Object`], so that another
//! representation can take their place.

mod change;
mod index;
mod tables;

pub(crate) use change::{Change, ChangeKind, Compacted, Key, Object, ObjectName};
pub(crate) use tables::Store;
