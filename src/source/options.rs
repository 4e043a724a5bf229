//! Settings of the config repository: address, branch, folder, credentials.

use std::path::PathBuf;

use secrecy::SecretString;

use super::OutsideFileLister;

#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// `https://…`, `http://…`, `ssh://…`, `git@host:path`, `file://…`, or a plain path.
    pub url: String,
    /// `None`: the default branch of a remote, or the current branch of a local path.
    pub branch: Option<String>,
    /// The folder inside the repository; `.` is all of it.
    pub path: String,
    /// Extracts the outside files that a file lists.
    pub outside_file_lister: OutsideFileLister,
    pub credentials: GitCredentials,
    /// Folder for caches, which may be deleted.
    pub state_folder: PathBuf,
}

#[derive(Clone, Debug, Default)]
pub enum GitCredentials {
    #[default]
    None,
    /// Sent as the password; forges take any user name with it.
    Token(SecretString),
    SshKey {
        /// A private key without a passphrase.
        key: PathBuf,
        /// Without one, the known hosts of the user.
        known_hosts: Option<PathBuf>,
    },
}
