//! Notifications about rollouts: the real controller on embedded clusters, and a chat that checks its requests.

mod deaths;
mod promotions;
mod rollouts;
mod routes;
mod scene;
#[cfg(feature = "sops")]
mod secrets;
