//! Notifications about rollouts: the real controller on embedded clusters, and a chat that checks its requests.

mod crashes;
mod fixture;
mod promotions;
mod rollouts;
mod routes;
#[cfg(feature = "sops")]
mod secrets;
