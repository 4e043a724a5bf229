//! tutti: a GitOps reconciler for many Kubernetes clusters. See ARCHITECTURE.md for the map.

pub mod api;
pub mod forge;
pub mod model;
pub mod source;
