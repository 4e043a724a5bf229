//! tutti: a GitOps reconciler for many Kubernetes clusters. See ARCHITECTURE.md for the map.

pub mod api;
pub mod cli;
pub mod controller;
pub mod fleet;
pub mod render;
pub mod schedule;
pub mod apply;
pub mod cluster;
pub mod forge;
pub mod health;
pub mod manifest;
pub mod model;
pub mod plan;
pub mod reconcile;
pub mod report;
pub mod source;
pub mod fleet;
pub mod manifest;
pub mod model;
pub mod render;
pub mod schedule;
