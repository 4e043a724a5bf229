//! The config repository: a Git repository at a revision, as a [`Snapshot`](crate::model::Snapshot).
//!
//! What it does: asks the remote for the tip of one branch, keeps a bare clone of it under the state
//! folder (a local path is opened where it lies), reads the files of a revision, tells which commit
//! changed which path last, and wakes whoever waits when there may be something new.
//!
//! What it needs: an address, credentials that were already resolved, a folder for caches. The
//! caches may be wiped at any time; a damaged one is cloned again.
//!
//! What it never does: check out files, write to the remote, run `git`, or print a credential.
//!
//! Only this module names `git2` and `notify`. Blocking Git work runs on tokio's blocking threads.

mod age;
mod area;
mod authors;
mod bounds;
mod create;
mod credentials;
mod difference;
mod error;
mod folder;
mod heads;
mod history;
mod http;
mod http_answers;
mod ignored;
mod known_hosts;
mod links;
mod merged;
mod options;
mod packets;
mod place;
mod reader;
mod remote;
mod repository;
mod translate;
mod watch;

#[cfg(test)]
mod tests;

pub use age::Change;
pub use area::Listed;
pub use authors::{MadeOf, Step};
pub use create::create;
pub use error::{Error, ErrorKind};
pub use folder::read_folder;
pub use merged::Merged;
pub use options::{Credentials, Options};
pub use place::{is_local, work_tree};
pub use reader::Commit;
pub use repository::Repository;
pub use watch::{Wake, Waker, Watch};

/// Text files that tutti reads: a [`File`](crate::model::File) stands for one that is too large, and is an error where it is
/// used. Any other file that large is left out.
const READ_ENDINGS: [&str; 3] = [".yaml", ".yml", ".j2"];

/// In bytes.
const LARGEST_FILE: usize = 1024 * 1024;
/// Of one file that an Objects app may list. Manifests, templates and values have the limit of their readers.
const LARGEST_OBJECTS: usize = 16 * 1024 * 1024;
/// Of one file of a chart, as in Helm.
const LARGEST_CHART_FILE: usize = 5 * 1024 * 1024;

fn largest(path: &str) -> usize {
    match path {
        _ if path.starts_with("charts/") => LARGEST_CHART_FILE,
        _ if must_be_read(path) || path.ends_with(".json") => LARGEST_OBJECTS,
        _ => LARGEST_FILE,
    }
}

/// Whether a name in the repository is left out: `.git`, editor folders, CI files of the forge. Charts have a file with
/// such a name.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.') && name != ".helmignore"
}

fn must_be_read(path: &str) -> bool {
    READ_ENDINGS.iter().any(|ending| path.ends_with(ending))
}
