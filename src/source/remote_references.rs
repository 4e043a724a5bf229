//! References of a remote, and the choice of the branch to read.

use git2::Oid;

use super::Error;
use super::branch_names::{BRANCHES, displayable_names, nearest_names};

/// One reference of the remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RemoteReference {
    pub name: String,
    pub tip: Oid,
    /// The target of a symbolic reference.
    pub target: Option<String>,
}

/// The branch to read with its tip.
pub(super) fn choose_branch(
    url: &str,
    wanted: Option<&str>,
    heads: &[RemoteReference],
) -> Result<(String, Oid), Error> {
    let branches: Vec<(&str, Oid)> =
        heads.iter().filter_map(|head| Some((head.name.strip_prefix(BRANCHES)?, head.tip))).collect();
    let url = url.to_owned();
    if branches.is_empty() {
        return Err(Error::Empty { url });
    }
    let name = wanted.or_else(|| default_branch(heads, &branches));
    if let Some((name, tip)) = branches.iter().find(|(branch, _)| Some(*branch) == name) {
        return Ok(((*name).to_owned(), *tip));
    }
    let names = branches.iter().map(|(name, _)| (*name).to_owned());
    Err(match wanted {
        Some(branch) => {
            Error::MissingBranch { url, branch: branch.to_owned(), branches: nearest_names(branch, names) }
        }
        None => Error::NoDefaultBranch { url, branches: displayable_names(names) },
    })
}

/// The tip of a reference by its full name.
pub(super) fn find_reference(url: &str, reference: &str, heads: &[RemoteReference]) -> Result<Oid, Error> {
    let found = heads.iter().find(|head| head.name == reference).map(|head| head.tip);
    found.ok_or_else(|| Error::MissingReference { url: url.to_owned(), reference: reference.to_owned() })
}

/// The branch that `HEAD` points to. Old servers send only its commit; then a branch at that commit is used.
fn default_branch<'a>(heads: &'a [RemoteReference], branches: &[(&'a str, Oid)]) -> Option<&'a str> {
    let head = heads.iter().find(|head| head.name == "HEAD");
    if let Some(target) = head.and_then(|head| head.target.as_deref()) {
        return target.strip_prefix(BRANCHES);
    }
    match (head, branches) {
        (Some(head), _) => branches.iter().find(|(_, tip)| *tip == head.tip).map(|(name, _)| *name),
        (None, [(only, _)]) => Some(only),
        (None, _) => None,
    }
}
