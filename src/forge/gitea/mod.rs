//! The API of Gitea and Forgejo.

mod comments;
mod contents;
mod http;
mod pulls;
mod reviews;
mod settings;
mod statuses;

#[cfg(test)]
mod tests;

pub use http::GiteaClient;
