//! Gitea's API, and Forgejo's, which is the same.

mod client;

#[cfg(test)]
mod tests;

pub use client::Client;
