//! Gitea, and Forgejo, which speaks the same with a few more headers.

mod client;
mod form;
mod receive;
mod signature;

#[cfg(test)]
mod tests;

pub use client::Client;
pub use receive::{Genuine, authenticate, check_signed, delivery, read};
