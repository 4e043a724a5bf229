//! What the behaviour tests share: the peers of the controller, and the controller in this process.
//!
//! [`repository`] is a config repository that tests commit to; [`fleet`] holds embedded clusters and
//! starts the controller between the two; [`wires`] are one process's connections, which end with
//! it; [`forge`] answers as Gitea's status API does; [`chat`] takes messages as chats do; [`http1`] reads requests for servers that answer as none should; [`guarded`] lets guests with client certificates into a cluster;
//! [`manifests`] writes manifests; [`folders`] reads and writes files; [`live`] looks
//! into clusters behind the controller's back; [`oracle`] holds rollouts to what they must wait for; [`kruise`] stands for OpenKruise; [`log`] keeps what the controller logs; [`package`] packs charts; [`program`] runs the real binary,
//! [`strangers`] are at the port of webhooks, [`senders`] sign as each kind of sender does; [`ci`] says what Drone and Woodpecker say of a build; [`lasting`] runs it again and again on clusters that last.
//! [`monitoring`] reads the alert rules and the dashboard, [`image_root`] runs what an image holds.
//! Nothing here fakes a part of tutti itself.

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
