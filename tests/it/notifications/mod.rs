//! What people are told of rollouts: by the real controller on embedded clusters, in a chat that checks what it gets.

mod deaths;
mod promotions;
mod rollouts;
mod routes;
mod scene;
#[cfg(feature = "sops")]
mod secrets;
