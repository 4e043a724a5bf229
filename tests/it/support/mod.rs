//! Shared helpers of the behaviour tests: the peers of the controller, and the controller in this process.
//!
//! [`repository`] is a config repository; [`fleet`] has embedded clusters and starts the controller;
//! [`wires`] are the connections of one process, which end with it. Peers: [`forge`] (commit statuses), [`chat`]
//! (chats), [`ci`] (Drone and Woodpecker), [`kruise`] (OpenKruise), [`guarded`] (client certificates), [`strangers`] and [`senders`]
//! (webhooks), [`http1`] (servers with unusual answers).
//! [`manifests`] and [`package`] make manifests and charts; [`folders`] reads and writes files; [`live`] reads
//! clusters directly; [`oracle`] checks rollouts; [`log`] captures logs; [`program`] and [`lasting`] run the real binary.
//! [`monitoring`] reads the alert rules and the dashboard, [`image_root`] runs the content of an image.
//! Nothing here replaces a part of tutti itself.

pub mod chat;
pub mod ci;
pub mod fleet;
pub mod folders;
pub mod forge;
pub mod guarded;
pub mod http1;
pub mod image_root;
pub mod kruise;
pub mod lasting;
pub mod live;
pub mod log;
pub mod manifests;
pub mod monitoring;
pub mod oracle;
pub mod package;
pub mod probes;
pub mod program;
pub mod repository;
pub mod senders;
pub mod strangers;
pub mod wires;
