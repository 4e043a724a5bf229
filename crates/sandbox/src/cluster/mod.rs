//! One embedded cluster.
//!
//! Callers clone a handle ([`Sandbox`]). Requests, controllers and faults share the cluster ([`SandboxCluster`]), which
//! holds its state ([`SandboxState`]) behind one lock.

mod sandbox;
mod sandbox_cluster;
mod sandbox_state;

pub use sandbox::Sandbox;
pub(crate) use sandbox_cluster::SandboxCluster;
pub(crate) use sandbox_state::SandboxState;
