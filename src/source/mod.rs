//! Reads the config repository: a Git repository at a revision, as a [`Snapshot`](crate::model::Snapshot).
//!
//! It fetches the tip of one branch into a bare clone under the state folder (a local path is opened in place), reads the files of a
//! revision with the last commit of each path, and wakes the controller when there may be a new commit. The clone may be deleted at
//! any time; a damaged one is cloned again.
//!
//! It never checks out files, writes to the remote, runs `git` or prints a credential. Only this module names `git2` and `notify`.
//! Blocking Git work runs on tokio's blocking threads.

mod app_commits;
mod bounds;
mod branch_names;
mod commit_tree;
mod config_repository;
mod content_age;
mod create;
mod credentials;
mod difference;
mod error;
mod folder;
mod git_errors;
mod gitignore;
mod history;
mod http;
mod http_responses;
mod known_hosts;
mod links;
mod merge_preview;
mod options;
mod packets;
mod readable_files;
mod remote;
mod remote_address;
mod remote_references;
mod repository_location;
mod repository_scope;
mod revision_reader;
mod watch;

#[cfg(test)]
mod tests;

pub use app_commits::{AppSourceCommit, AppSources};
pub use config_repository::ConfigRepository;
pub use content_age::ContentChange;
pub use create::create;
pub use error::{Error, ErrorKind};
pub use folder::read_folder;
pub use merge_preview::MergePreview;
pub use options::{GitCredentials, SourceOptions};
pub use repository_location::{is_local, work_tree};
pub use repository_scope::OutsideFileLister;
pub use revision_reader::CommitInfo;
pub use watch::{RepositoryWatch, WakeReason, WatchControl};
