//! One cluster: connect, discover, watch, look up, apply one object, delete one object, review our rights.
//!
//! A connection needs a [`Link`]. Each function is one request or one stream; callers decide what to request, in
//! which order, and what the response means. A delete always carries the uid and the resourceVersion. Only this
//! module names `kube::Client`.
//!
//! - `link`, `kubeconfig`, `login`, `credential`, `renewal`, `plug_in`, `proxy`: address and credential of a cluster;
//! - `transport`: HTTP/2 connections, shared by requests; watches have their own;
//! - `discover`, `catalog`, `inventory`: the served kinds, and those with objects of ours;
//! - `watch`, `watching`, `streams`: lists and watches. Only a whole list proves that an object is gone
//!   (`Change::Listed`);
//! - `client`, `names`, `object`: single requests; `permit`, `fence`: the right to write, checked when bytes are
//!   sent;
//! - `bounds`, `budget`: limits of responses, for one cluster and for all;
//! - `standing`: `Retry-After`, for the server or for one API group; `home`, `lease`, `stored`: the home cluster.

mod agent;
mod bounds;
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
mod names;
mod object;
mod permit;
mod plug_in;
mod proxy;
mod renewal;
mod review;
mod standing;
mod stored;
mod streams;
mod transport;
mod watch;
mod watching;

#[cfg(test)]
mod tests;

pub use agent::host_name;
pub use catalog::{Catalog, Resource};
pub use client::{Client, Deleted, PodPage};
pub use credential::Credential;
pub use error::{Conflict, Error, ImmutableField, field_without_values};
pub use events::{About, EventPage};
pub use home::{Home, HomeError, Keeper, what_of as registry_in_words};
pub use inventory::KindsInUse;
pub use lease::Lease;
pub use link::Link;
pub use log::LogOf;
pub use permit::{Term, WritePermit};
pub use review::Question;
pub use stored::Stored;
pub use watch::Change;
