//! The binary against real API servers and a real Gitea.
//!
//! Each test has its own config repository, instance name and namespace, all with the same name, so tests share the
//! clusters without conflicts. A test that stops API servers uses the last two clusters alone meanwhile
//! (`LiveFixture::with_exclusive_clusters`).

mod admission;
mod adopt;
mod analysis;
mod approvals;
mod capabilities;
mod chart_install;
mod charts;
mod credentials;
mod definitions;
mod diff;
mod drift;
mod forge;
mod forks;
mod home;
mod hooks;
mod immutable;
mod import;
mod install;
mod installation;
mod managed_field_shapes;
mod manifests_like_kubectl;
mod namespaces;
mod notifications;
mod nulls;
mod observe;
mod once;
mod outage;
mod ownership;
mod pages;
mod plan;
mod policies;
mod projects;
mod prometheus;
mod promotions;
mod prune;
mod pulls;
mod push;
mod refused;
mod releases;
mod removal;
mod replicas;
mod restart;
mod rights;
#[cfg(feature = "sops")]
mod secrets;
mod seeds;
mod self_install;
#[allow(dead_code, reason = "the benchmark uses more of it")]
mod support;
mod sync_waves;
mod tool_annotations;
mod triggers;
mod waves;
mod windows;
