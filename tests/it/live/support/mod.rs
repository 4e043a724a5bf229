//! Helpers of the live tests and benchmarks: the shared tier, a config repository, and the binary.

mod kubectl;
mod manifests;
mod people;
mod repository;
mod scene;
mod tier;
mod tutti;

pub use kubectl::{as_kubectl, bare};
pub use manifests::{configmap, definition, deployment, objects_app, open_schema, service};
pub use people::{People, component};
pub use repository::Worktree;
pub use scene::{RELEASE_TOKEN, SECRET, Scene};
pub use tier::{eventually, say, tier};
pub use tutti::{BINARY, Tutti, digests};
