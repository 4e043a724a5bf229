//! Which rights tutti needs on a cluster for what the repository renders there.
//!
//! Needs the renders of one cluster and what the instance wants of them; gives single rights ([`needs`]), each with why
//! it is needed, and the ClusterRole and Roles that grant exactly those ([`manifest`]). It follows the requests of the
//! engine: watches and the inventory are over all namespaces, everything else is about one object, by its name. Whoever
//! adds a request to `cluster` adds its right here; a live test runs tutti with nothing but what is printed.
//!
//! Never asks a cluster: whether it has the rights is for others to find out.

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
