//! One registered cluster: connect, discover, watch, look up, apply one object, delete one object, ask about our rights.
//!
//! Needs a [`Link`] (a kubeconfig, in a file or kept by the [`Home`] cluster, the service account of the pod that tutti
//! runs in, or an in-process service). Everything here is one request or one stream; what to ask for, in which
//! order, and what to do with the answer is decided elsewhere. It never deletes without the uid and
//! the resourceVersion of the object that was meant. Only this module names `kube::Client`.
//!
//! - `link`, `kubeconfig`, `login`, `credential`, `renewal`, `plug_in`, `proxy`: how a cluster is reached, and as whom;
//! - `transport`: all requests share connections over HTTP/2, and watches have connections of their own;
//! - `discover`, `catalog`, `inventory`: what is served, and of which kinds there are objects of ours;
//! - `watch`, `watching`, `streams`: lists and watches. Only a whole list makes what it did not contain gone (`Change::Listed`);
//! - `client`, `names`, `object`: one request each; `permit`, `fence`: the right to write, checked when bytes go out;
//! - `bounds`, `budget`: how much of an answer is read, of one cluster and of all;
//! - `standing`: `Retry-After`, which holds for the server or for one API group; `home`, `lease`, `stored`: the home cluster.

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
