//! tutti: a GitOps reconciler for many Kubernetes clusters. See ARCHITECTURE.md for the map.

pub mod cluster;
pub mod health;
pub mod model;
pub mod plan;
