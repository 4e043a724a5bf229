//! Gitea, and Forgejo, which speaks the same with a few more headers.

mod comments;
mod contents;
mod form;
mod http;
mod pulls;
mod receive;
mod reviews;
mod settings;
mod signature;
mod statuses;

#[cfg(test)]
mod tests;

pub use http::Client;
pub use receive::{Genuine, authenticate, check_signed, delivery, read};
