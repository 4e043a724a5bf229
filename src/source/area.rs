//! The part of the repository that is read: the configured folder, and files outside it that apps list with `../`.
//! The reader takes from it which folders to enter, and the history walk which paths a commit changed.

use std::collections::{BTreeMap, BTreeSet};

use git2::{Commit, Oid, Repository};
use globset::Glob;

use super::difference::{Enters, difference};
use super::history::tree_of;
use crate::model::glob::{self, Globs, Separator};
use crate::model::{File, beside};

/// Extracts from the path and text of a file the outside files that it lists: paths or patterns that begin with `../`.
pub type Listed = fn(path: &str, text: &str) -> Vec<String>;

/// The outside patterns by the file that lists them. Files without patterns have no entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists(BTreeMap<String, Vec<String>>);

impl Lists {
    /// Updates the patterns of one file; `None` for a deleted file.
    pub(super) fn see(&mut self, listed: Listed, path: &str, file: Option<&File>) {
        let text = file.and_then(|file| std::str::from_utf8(&file.content).ok());
        let patterns = text.map(|text| listed(path, text)).unwrap_or_default();
        if patterns.is_empty() {
            self.0.remove(path);
        } else {
            self.0.insert(path.to_owned(), patterns);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Area {
    /// The configured folder, from the root of the repository; empty for the whole.
    folder: String,
    /// Patterns of files outside the folder. All of them stay in the repository.
    patterns: BTreeSet<String>,
    /// By the number of leading `../`.
    fits: BTreeMap<usize, Globs>,
    /// From the root of the repository, each with its final `/`. Only files in and below them can match.
    folders: BTreeSet<String>,
}

impl Area {
    pub(super) fn of(folder: &str, lists: &Lists) -> Self {
        let placed = lists.0.values().flatten().filter_map(|pattern| beside::placed(folder, pattern));
        let patterns: BTreeSet<String> = placed.filter(|pattern| beside::is_beside(pattern)).collect();
        let (mut fits, mut folders) = (BTreeMap::<usize, Vec<Glob>>::new(), BTreeSet::new());
        for pattern in &patterns {
            let (up, rest) = beside::split(pattern);
            // An invalid pattern matches nothing; the reader of its app reports it.
            let glob = glob::parse(rest, Separator::Ends);
            let (Ok(glob), Some(path)) = (glob, beside::from_root(folder, pattern)) else { continue };
            fits.entry(up).or_default().push(glob);
            let plain = beside::before_wildcards(&path);
            folders.insert(plain.rfind('/').map_or("", |slash| &plain[..=slash]).to_owned());
        }
        let fits = fits.into_iter().map(|(up, globs)| (up, Globs::of(&globs))).collect();
        Self { folder: folder.to_owned(), patterns, fits, folders }
    }

    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }

    /// Whether no file outside the folder is read.
    pub(super) fn is_folder(&self) -> bool {
        self.folders.is_empty()
    }

    /// Whether `folder` may contain outside files. Its path is from the root of the repository, with a final `/`.
    pub(super) fn enters(&self, folder: &str) -> bool {
        let is_own = folder.strip_suffix('/').is_some_and(|folder| folder == self.folder);
        let is_above =
            || self.folders.range(folder.to_owned()..).next().is_some_and(|it| it.starts_with(folder));
        let mut above = folder.match_indices('/').map(|(slash, _)| &folder[..=slash]);
        !is_own && (is_above() || self.folders.contains("") || above.any(|it| self.folders.contains(it)))
    }

    /// Turns a path from the root of the repository into the path of an outside file.
    pub(super) fn path_of(&self, path: &str) -> Option<String> {
        let path = beside::from_folder(&self.folder, path);
        let (up, rest) = beside::split(&path);
        (up > 0 && self.fits.get(&up)?.fits(rest)).then_some(path)
    }

    /// The outside files that differ between the root trees of two commits, each with its path from the root. `enters` gets folder
    /// paths relative to the configured folder.
    pub(super) fn beside(
        &self,
        repository: &Repository,
        old: Option<Oid>,
        new: Option<Oid>,
        enters: Enters<'_>,
    ) -> Result<Vec<(String, String)>, git2::Error> {
        if self.is_folder() || old == new {
            return Ok(Vec::new());
        }
        let find = |tree: Option<Oid>| tree.map(|tree| repository.find_tree(tree)).transpose();
        let (old, new) = (find(old)?, find(new)?);
        let enters = &mut |folder: &str, trees: [Option<Oid>; 2]| {
            self.enters(folder) && enters(&beside::from_folder(&self.folder, folder), trees)
        };
        let paths = difference(repository, old.as_ref(), new.as_ref(), enters)?;
        Ok(paths.into_iter().filter_map(|path| Some((self.path_of(&path)?, path))).collect())
    }

    /// The paths that a commit changed, in the folders that `enters` accepts.
    pub(super) fn changed_by(
        &self,
        repository: &Repository,
        parent: Option<&Commit<'_>>,
        commit: &Commit<'_>,
        enters: Enters<'_>,
    ) -> Result<Vec<String>, git2::Error> {
        let before = match parent {
            Some(parent) => tree_of(repository, &self.folder, parent)?,
            None => None,
        };
        let after = tree_of(repository, &self.folder, commit)?;
        let mut paths = difference(repository, before.as_ref(), after.as_ref(), enters)?;
        let old = parent.map(Commit::tree_id);
        let beside = self.beside(repository, old, Some(commit.tree_id()), enters)?;
        paths.extend(beside.into_iter().map(|(path, _)| path));
        Ok(paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_with_listed_files_are_entered() {
        let patterns = ["../deploy/*.yaml", "../../*/x.yaml", "../../../gone.yaml", "../apps/a.yaml"];
        let lists = |patterns: &[&str]| {
            let patterns = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            Lists(BTreeMap::from([("apps/web/app.yaml".to_owned(), patterns)]))
        };
        let check = |patterns: &[&str], entered: &[&str], left: &[&str]| {
            let area = Area::of("teams/config", &lists(patterns));
            entered.iter().for_each(|folder| assert!(area.enters(folder), "{folder}"));
            left.iter().for_each(|folder| assert!(!area.enters(folder), "{folder}"));
        };
        check(
            &patterns[..1],
            &["", "teams/", "teams/deploy/", "teams/deploy/x/"],
            &["teams/config/", "te/", "other/"],
        );
        check(&patterns[1..2], &["", "teams/", "other/"], &["teams/config/"]);
        check(&patterns[2..3], &[], &["", "teams/"]);
        let area = Area::of("teams/config", &lists(&patterns[..2]));
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(area.path_of(path).as_deref(), expected, "{path}")
        };
        check("teams/deploy/a.yaml", Some("../deploy/a.yaml"));
        check("teams/deploy/b/a.yaml", None);
        check("other/x.yaml", Some("../../other/x.yaml"));
        check("teams/config/x.yaml", None);
        check("teams/config/apps/a.yaml", None);
        let area = Area::of("teams/config", &lists(&["../**/*.yaml", "../*/deploy.yaml"]));
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(area.path_of(path).as_deref(), expected, "{path}");
        };
        check("teams/a/b/c.yaml", Some("../a/b/c.yaml"));
        check("deploy.yaml", None);
        check("other/deploy.yaml", None);
    }
}
