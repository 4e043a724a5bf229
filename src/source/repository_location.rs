//! The location of a repository: a local folder or a remote address, with its display form and the path of its clone.

use std::path::{Path, PathBuf};

use super::remote_address::RemoteAddress;
use super::{GitCredentials, OutsideFileLister, SourceOptions};
use crate::model::{Digest, redacted_address};

/// The location of a repository, parsed once.
#[derive(Clone, Debug)]
pub(super) struct RepositoryLocation {
    /// For display, without credentials.
    pub display_url: String,
    pub branch: Option<String>,
    /// The configured folder without `/` at its ends; empty for the whole repository.
    pub folder: String,
    pub outside_file_lister: OutsideFileLister,
    pub kind: RepositoryLocationKind,
}

#[derive(Clone, Debug)]
pub(super) enum RepositoryLocationKind {
    Local(PathBuf),
    Remote { url: String, credentials: GitCredentials, clone: PathBuf },
}

impl RepositoryLocation {
    pub(super) fn of(options: SourceOptions) -> Self {
        let shown = redacted_address(&options.url);
        let folder = normalize_folder(&options.path);
        let kind = if is_local(&options.url) {
            RepositoryLocationKind::Local(PathBuf::from(&options.url))
        } else {
            let name = Digest::of(shown.as_bytes()).short();
            let clone = options.state_folder.join("repository").join(name);
            RepositoryLocationKind::Remote { url: options.url, credentials: options.credentials, clone }
        };
        Self {
            display_url: shown,
            branch: options.branch,
            folder,
            outside_file_lister: options.outside_file_lister,
            kind,
        }
    }

    /// `None` for a local path.
    pub(super) fn remote_address(&self) -> Option<RemoteAddress> {
        let RepositoryLocationKind::Remote { url, credentials, clone } = &self.kind else { return None };
        Some(RemoteAddress {
            display_url: self.display_url.clone(),
            url: url.clone(),
            credentials: credentials.clone(),
            branch: self.branch.clone(),
            reference: None,
            clone: clone.clone(),
        })
    }

    /// The Git folder that is read.
    pub(super) fn git_folder(&self) -> &Path {
        match &self.kind {
            RepositoryLocationKind::Local(path) => path,
            RepositoryLocationKind::Remote { clone, .. } => clone,
        }
    }
}

fn normalize_folder(path: &str) -> String {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    names.join("/")
}

/// The worktree that contains a local path, with links resolved; a folder without a repository is its own.
pub fn work_tree(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("file://").unwrap_or(url);
    if !is_local(path) {
        return None;
    }
    let found = git2::Repository::discover(path).ok();
    let root = found.as_ref().and_then(|found| found.workdir()).unwrap_or(Path::new(path));
    root.canonicalize().ok()
}

/// Git's own rule: a scheme is an address; `host:path` is one unless a `/` stands before the colon.
pub fn is_local(url: &str) -> bool {
    if url.contains("://") {
        return false;
    }
    match url.split_once(':') {
        Some((host, _)) => host.contains('/') || Path::new(url).exists(),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_paths_differ_from_addresses() {
        let check = |url: &str, expected: bool| assert_eq!(is_local(url), expected, "{url}");
        check("/srv/config", true);
        check("../config", true);
        check("./odd:name", true);
        check("config", true);
        check("git@host:a/b.git", false);
        check("https://host/a", false);
        check("file:///srv/config", false);
    }

    #[test]
    fn folders_are_normal() {
        let check = |path: &str, expected: &str| assert_eq!(normalize_folder(path), expected, "{path}");
        check(".", "");
        check("", "");
        check("./deploy/", "deploy");
        check("/deploy//prod", "deploy/prod");
    }
}
