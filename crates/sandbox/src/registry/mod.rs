//! The kinds that a cluster serves: the built-in ones and those of its CustomResourceDefinitions.

mod kind;
mod kinds;
mod merge;
mod served;

pub(crate) use kind::{ResourceKind, ScalePaths, Subresource};
pub(crate) use merge::CustomMerge;
pub(crate) use served::Registry;
