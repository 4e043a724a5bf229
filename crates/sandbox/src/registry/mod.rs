//! The kinds that a cluster serves: the built-in ones from a table, and those of its
//! CustomResourceDefinitions.
//!
//! Needs nothing but the table. Never looks at objects other than CustomResourceDefinitions.

mod kind;
mod kinds;
mod merge;
mod served;

pub(crate) use kind::{ResourceKind, ScalePaths, Subresource};
pub(crate) use merge::CustomMerge;
pub(crate) use served::Registry;
