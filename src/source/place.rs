//! Where a repository is: a local folder or an address, and how that is shown and cached.

use std::path::{Path, PathBuf};

use super::remote::Address;
use super::{Credentials, Listed, Options};
use crate::model::{Digest, shown_address};

/// A repository's whereabouts, decided once.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// How people see it: without credentials.
    pub shown: String,
    pub branch: Option<String>,
    /// Folder inside, without `/` at its ends; empty is all of it.
    pub folder: String,
    pub listed: Listed,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Local(PathBuf),
    Remote { url: String, credentials: Credentials, clone: PathBuf },
}

impl Place {
    pub(super) fn of(options: Options) -> Self {
        let shown = shown_address(&options.url);
        let folder = normal_folder(&options.path);
        let kind = if is_local(&options.url) {
            Kind::Local(PathBuf::from(&options.url))
        } else {
            let name = Digest::of(shown.as_bytes()).short();
            let clone = options.state.join("repository").join(name);
            Kind::Remote { url: options.url, credentials: options.credentials, clone }
        };
        Self { shown, branch: options.branch, folder, listed: options.listed, kind }
    }

    /// Whom to ask; `None` for a local path.
    pub(super) fn address(&self) -> Option<Address> {
        let Kind::Remote { url, credentials, clone } = &self.kind else { return None };
        Some(Address {
            shown: self.shown.clone(),
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
            Kind::Local(path) => path,
            Kind::Remote { clone, .. } => clone,
        }
    }
}

fn normal_folder(path: &str) -> String {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    names.join("/")
}

/// The checkout that a local path is in, without links; a folder that is no repository is one by itself.
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

/// What stands between `://` (a slash may be missing) and `@`, for scrubbing messages of others.
pub(super) fn credentials_in(url: &str) -> Option<&str> {
    let rest = url.split_once(":/")?.1.trim_start_matches('/');
    let authority = &rest[..rest.find('/').unwrap_or(rest.len())];
    let (user, _) = authority.rsplit_once('@')?;
    user.contains(':').then_some(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_from_an_address() {
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
        let check = |path: &str, expected: &str| assert_eq!(normal_folder(path), expected, "{path}");
        check(".", "");
        check("", "");
        check("./deploy/", "deploy");
        check("/deploy//prod", "deploy/prod");
    }
}
