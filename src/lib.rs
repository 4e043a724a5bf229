//! tutti: a GitOps reconciler for many Kubernetes clusters. See ARCHITECTURE.md for the map.

pub mod cli;
pub mod fleet;
pub mod manifest;
pub mod model;
pub mod render;
pub mod schedule;
