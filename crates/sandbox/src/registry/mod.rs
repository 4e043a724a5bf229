//! The kinds that a cluster serves: the built-in ones and those of its CustomResourceDefinitions.

mod built_in_kinds;
mod custom_merge;
mod kind_merge;
mod kind_registry;
mod resource_kind;

pub(crate) use custom_merge::CustomMergeTypes;
pub(crate) use kind_registry::KindRegistry;
pub(crate) use resource_kind::{ResourceKind, ScalePaths, Subresource};
