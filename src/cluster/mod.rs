//! One cluster: connect, discover, watch, look up, apply one object, delete one object, review the rights of tutti.
//!
//! A connection needs a [`ClusterLink`]. Each function is one request or one stream; callers decide what to request, in
//! which order, and what the response means. A delete always carries the uid and the resourceVersion. Only this
//! module names `kube::Client`.
//!
//! - `link`, `kubeconfig`, `login`, `credential`, `authorization_header`, `plug_in_renewal`, `plug_in`, `proxy`: address
//!   and credential of a cluster;
//! - `transport`: HTTP/2 connections, shared by requests; watches have their own;
//! - `discover`, `catalog`, `inventory`: the served kinds, and those with objects of ours;
//! - `watch`, `watch_change`, `watch_loop`, `stream_support`: lists and watches. Only a whole list proves that an object
//!   is gone (`WatchChange::ListEnded`);
//! - `client`, `name_cache`, `name_lookup`, `object`: single requests; `permit`, `fence`: the right to write, checked
//!   when bytes are sent;
//! - `response_bounds`, `budget`: limits of responses, for one cluster and for all;
//! - `server_state`: `Retry-After`, for the server or for one API group; `home`, `lease`, `stored_kubeconfig`: the home cluster.
//!
//! `home`, `link` and `stored_kubeconfig` are one unit: a link may lead to a kubeconfig in the home cluster, which is
//! reached by a link itself.

mod agent;
mod authorization_header;
mod budget;
mod catalog;
mod client;
mod credential;
mod discover;
mod error;
mod events;
mod fence;
mod home;
mod identity;
mod inventory;
mod kubeconfig;
mod lease;
mod link;
mod log;
mod login;
mod name_cache;
mod name_lookup;
mod object;
mod permit;
mod plug_in;
mod plug_in_renewal;
mod proxy;
mod response_bounds;
mod review;
mod server_state;
mod stored_kubeconfig;
mod stream_support;
mod transport;
mod watch;
mod watch_change;
mod watch_loop;

#[cfg(test)]
mod tests;

pub use agent::host_name;
pub use catalog::{Catalog, Resource};
pub use client::{Client, DeleteOutcome, PodPage};
pub use credential::Credential;
pub use error::{Error, FieldConflict, ImmutableField, field_without_values};
pub use events::{EventPage, EventSubject};
pub use home::{HomeCluster, HomeError, KeyObjectKind, describe_registry};
pub use inventory::KindsInUse;
pub use lease::Lease;
pub use link::ClusterLink;
pub use log::ContainerLogRef;
pub use permit::{LeaderTerm, WritePermit};
pub use review::AccessQuestion;
pub use stored_kubeconfig::StoredKubeconfig;
pub use watch_change::WatchChange;
