//! Real Kubernetes control planes and a real forge, for tests and for a person's desk.
//!
//! What it does: finds the programs (or builds them from the Go modules in `tools/live/`), starts clusters and a Gitea on
//! free loopback ports, and stops every process again, also when a test panics or its process is killed.
//! What it needs: Linux, Git, and for a build Go and a C compiler.
//! What it never does: listen on anything but loopback, touch a process it did not start, or read the user's kubeconfig.
//!
//! A cluster is etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, which plays the kubelets of two
//! nodes by the stages in `tools/live/stages/`: so workloads roll out, and pods fail with the kubelet's reasons when a
//! test asks for it (`docs/development/live-tier.md` has the words).
//!
//! ```no_run
//! # async fn example() -> Result<(), live::Error> {
//! let programs = match live::Tier::from_env()? {
//!     live::Tier::Ready(programs) => programs,
//!     live::Tier::Absent(why) => return Ok(eprintln!("{why}")),
//! };
//! let tier = live::LiveEnvironment::start(&programs, &live::LiveSetup::new(2)).await?;
//! tier.cluster(0).kubectl(&["get", "nodes"]).await?;
//! # Ok(())
//! # }
//! ```

mod audit;
mod cache;
mod certificates;
mod client;
mod cluster;
mod compile;
mod error;
mod flux;
mod gitea;
mod go_module;
mod helm;
mod kubeconfig;
mod kustomize;
mod node;
mod ports;
mod process;
mod programs;
mod run_folder;
mod setup;
mod tier;

pub use audit::AuditedRequest;
pub use cache::folder as cache_folder;
pub use cluster::LiveCluster;
pub use error::Error;
pub use flux::FluxController;
pub use gitea::GiteaServer;
pub use helm::HelmPrograms;
pub use kustomize::KustomizePrograms;
pub use ports::free as free_port;
pub use programs::{ControlPlane, TierPrograms};
pub use setup::{LiveEnvironment, LiveSetup};
pub use tier::Tier;
