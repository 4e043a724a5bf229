//! The address of a remote, with everything that a request to it needs.

use std::path::PathBuf;

use super::GitCredentials;

/// Everything that a request needs.
#[derive(Clone, Debug)]
pub(super) struct RemoteAddress {
    /// Without credentials.
    pub display_url: String,
    pub url: String,
    pub credentials: GitCredentials,
    pub branch: Option<String>,
    /// Fetched instead of the branch, by its full name. The copy gets no reference of that name.
    pub reference: Option<String>,
    pub clone: PathBuf,
}

impl RemoteAddress {
    /// Whether the address itself holds a password.
    pub(super) fn has_password(&self) -> bool {
        credentials_in(&self.url).is_some()
    }
}

/// The text between `://` (a slash may be missing) and `@`, so that libgit2's messages can be redacted.
pub(super) fn credentials_in(url: &str) -> Option<&str> {
    let rest = url.split_once(":/")?.1.trim_start_matches('/');
    let authority = &rest[..rest.find('/').unwrap_or(rest.len())];
    let (user, _) = authority.rsplit_once('@')?;
    user.contains(':').then_some(user)
}
