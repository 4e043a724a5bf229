//! tutti: a GitOps reconciler for many Kubernetes clusters. See ARCHITECTURE.md for the map.

pub mod access;
pub mod api;
pub mod apply;
pub mod chart;
pub mod child;
pub mod cli;
pub mod cluster;
pub mod controller;
pub mod fleet;
pub mod forge;
pub mod health;
pub mod leader;
pub mod manifest;
pub mod metrics;
pub mod model;
pub mod plan;
pub mod promotion;
pub mod reconcile;
pub mod render;
pub mod report;
pub mod rollout;
pub mod schedule;
pub mod sops;
pub mod source;
pub mod telemetry;
pub mod worker;
