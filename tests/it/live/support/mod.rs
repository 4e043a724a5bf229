//! Helpers of the live tests and benchmarks: the shared tier, a config repository, and the binary.

mod fixture;
mod forge_users;
mod kubectl;
mod manifests;
mod repository;
mod tier;
mod tutti;

pub use fixture::{HOOK_SECRET, LiveFixture, RELEASE_TOKEN};
pub use forge_users::{ForgeUsers, component};
pub use kubectl::{dry_run_by_kubectl, without_identity};
pub use manifests::{configmap, definition, deployment, objects_app, open_schema, service};
pub use repository::Worktree;
pub use tier::{eventually, print_uncaptured, tier};
pub use tutti::{BINARY, TuttiProcess, approval_digests};
