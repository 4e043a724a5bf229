//! Shared helpers of the behaviour tests: the peers of the controller, and the controller in this process.
//!
//! [`repository`] is a config repository; [`fleet`] has embedded clusters and starts the controller;
//! [`connections`] are the connections of one process, which end with it. Peers: [`forge`] (commit statuses), [`chat`]
//! (chats), [`ci`] (Drone and Woodpecker), [`kruise`] (OpenKruise), [`client_certificates`] (client certificates), [`hostile_clients`] and [`senders`]
//! (webhooks), [`http1`] (servers with unusual answers).
//! [`manifests`] and [`package`] make manifests and charts; [`folders`] reads and writes files; [`live_objects`] reads
//! clusters directly; [`oracle`] checks rollouts; [`log`] captures logs; [`program`] and [`persistent_fixture`] run the real binary.
//! [`monitoring`] reads the alert rules and the dashboard, [`image_root`] runs the content of an image.
//! Nothing here replaces a part of tutti itself.

pub mod chat;
pub mod ci;
pub mod client_certificates;
pub mod connections;
pub mod fleet;
pub mod folders;
pub mod forge;
pub mod hostile_clients;
pub mod http1;
pub mod image_root;
pub mod kruise;
pub mod live_objects;
pub mod log;
pub mod manifests;
pub mod metrics_server;
pub mod monitoring;
pub mod oracle;
pub mod package;
pub mod persistent_fixture;
pub mod program;
pub mod repository;
pub mod senders;

/// A setting of a test from the environment.
pub fn env_number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}
