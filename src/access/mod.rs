//! Computes the RBAC rights that tutti needs on a cluster for its rendered objects.
//!
//! Input is the renders of one cluster and the instance; output is single rights ([`needs`]) with reasons, and the
//! ClusterRole and Roles that grant exactly those ([`manifest`]). The rights follow the requests of the engine: watches and
//! the inventory cover all namespaces, other requests one object by name. A new request in `cluster` needs its right here; a
//! live test runs tutti with nothing but the printed rights.
//!
//! This module never reads a cluster; others check whether the rights are granted.

mod home;
mod manifest;
mod naming;
mod needs;
mod right;
#[cfg(test)]
mod tests;

pub use home::{LeaseAt, home_needs};
pub use manifest::{Account, Place, manifest, role_name, rule_of};
pub use needs::{Input, Needs, needs};
pub use right::{Right, Verb, Why};
