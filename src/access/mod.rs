//! Computes the RBAC rights that tutti needs on a cluster for its rendered objects.
//!
//! Input is the renders of one cluster and the instance; output is single rights ([`required_rights`]) with reasons, and the
//! ClusterRole and Roles that grant exactly those ([`rbac_manifest`]). The rights follow the requests of the engine: watches and
//! the inventory cover all namespaces, other requests one object by name. A new request in `cluster` needs its right here; a
//! live test runs tutti with nothing but the printed rights.
//!
//! This module never reads a cluster; others check whether the rights are granted.

mod home;
mod plurals;
mod rbac_manifest;
mod required_rights;
mod right;
#[cfg(test)]
mod tests;

pub use home::{LeaseName, home_rights};
pub use rbac_manifest::{RbacScope, ServiceAccountName, rbac_manifest, role_name, rules_for};
pub use required_rights::{AccessInput, RequiredRights, required_rights};
pub use right::{Right, RightReason, Verb};
