//! The part of the repository that is read: the configured folder, and files outside it that apps list with `../`.
//! The reader takes from it which folders to enter, and the history walk which paths a commit changed.

use std::collections::{BTreeMap, BTreeSet};

use git2::{Commit, Oid, Repository};
use globset::Glob;

use super::commit_tree::folder_tree;
use super::difference::{FolderFilter, difference};
use crate::model::glob::{self, Globs, SeparatorMatching};
use crate::model::{SnapshotFile, outside_path};

/// Extracts from the path and text of a file the outside files that it lists: paths or patterns that begin with `../`.
pub type OutsideFileLister = fn(path: &str, text: &str) -> Vec<String>;

/// The outside patterns by the file that lists them. Files without patterns have no entry.
#[derive(Clone, Debug, Default)]
pub(super) struct OutsidePatterns(BTreeMap<String, Vec<String>>);

impl OutsidePatterns {
    /// Updates the patterns of one file; `None` for a deleted file.
    pub(super) fn update(&mut self, listed: OutsideFileLister, path: &str, file: Option<&SnapshotFile>) {
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
pub(super) struct RepositoryScope {
    /// The configured folder, from the root of the repository; empty for the whole.
    folder: String,
    /// Patterns of files outside the folder. All of them stay in the repository.
    patterns: BTreeSet<String>,
    /// By the number of leading `../`.
    globs_by_depth: BTreeMap<usize, Globs>,
    /// From the root of the repository, each with its final `/`. Only files in and below them can match.
    outside_folders: BTreeSet<String>,
}

impl RepositoryScope {
    pub(super) fn of(folder: &str, lists: &OutsidePatterns) -> Self {
        let placed =
            lists.0.values().flatten().filter_map(|pattern| outside_path::normalize(folder, pattern));
        let patterns: BTreeSet<String> = placed.filter(|pattern| outside_path::is_outside(pattern)).collect();
        let (mut fits, mut folders) = (BTreeMap::<usize, Vec<Glob>>::new(), BTreeSet::new());
        for pattern in &patterns {
            let (up, rest) = outside_path::split_parents(pattern);
            // An invalid pattern matches nothing; the reader of its app reports it.
            let glob = glob::parse(rest, SeparatorMatching::Literal);
            let (Ok(glob), Some(path)) = (glob, outside_path::from_root(folder, pattern)) else { continue };
            fits.entry(up).or_default().push(glob);
            let plain = outside_path::literal_prefix(&path);
            folders.insert(plain.rfind('/').map_or("", |slash| &plain[..=slash]).to_owned());
        }
        let fits = fits.into_iter().map(|(up, globs)| (up, Globs::of(&globs))).collect();
        Self { folder: folder.to_owned(), patterns, globs_by_depth: fits, outside_folders: folders }
    }

    pub(super) fn has_same_patterns(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }

    /// Whether no file outside the folder is read.
    pub(super) fn is_folder_only(&self) -> bool {
        self.outside_folders.is_empty()
    }

    /// Whether `folder` may contain outside files. Its path is from the root of the repository, with a final `/`.
    pub(super) fn may_contain(&self, folder: &str) -> bool {
        let is_own = folder.strip_suffix('/').is_some_and(|folder| folder == self.folder);
        let is_above = || {
            self.outside_folders.range(folder.to_owned()..).next().is_some_and(|it| it.starts_with(folder))
        };
        let mut above = folder.match_indices('/').map(|(slash, _)| &folder[..=slash]);
        !is_own
            && (is_above()
                || self.outside_folders.contains("")
                || above.any(|it| self.outside_folders.contains(it)))
    }

    /// Turns a path from the root of the repository into the path of an outside file.
    pub(super) fn outside_path(&self, path: &str) -> Option<String> {
        let path = outside_path::from_folder(&self.folder, path);
        let (up, rest) = outside_path::split_parents(&path);
        (up > 0 && self.globs_by_depth.get(&up)?.fits(rest)).then_some(path)
    }

    /// The outside files that differ between the root trees of two commits, each with its path from the root. `enters` gets folder
    /// paths relative to the configured folder.
    pub(super) fn outside_changes(
        &self,
        repository: &Repository,
        old: Option<Oid>,
        new: Option<Oid>,
        enters: FolderFilter<'_>,
    ) -> Result<Vec<(String, String)>, git2::Error> {
        if self.is_folder_only() || old == new {
            return Ok(Vec::new());
        }
        let find = |tree: Option<Oid>| tree.map(|tree| repository.find_tree(tree)).transpose();
        let (old, new) = (find(old)?, find(new)?);
        let enters = &mut |folder: &str, trees: [Option<Oid>; 2]| {
            self.may_contain(folder) && enters(&outside_path::from_folder(&self.folder, folder), trees)
        };
        let paths = difference(repository, old.as_ref(), new.as_ref(), enters)?;
        Ok(paths.into_iter().filter_map(|path| Some((self.outside_path(&path)?, path))).collect())
    }

    /// The paths that a commit changed, in the folders that `enters` accepts.
    pub(super) fn paths_changed_by(
        &self,
        repository: &Repository,
        parent: Option<&Commit<'_>>,
        commit: &Commit<'_>,
        enters: FolderFilter<'_>,
    ) -> Result<Vec<String>, git2::Error> {
        let before = match parent {
            Some(parent) => folder_tree(repository, &self.folder, parent)?,
            None => None,
        };
        let after = folder_tree(repository, &self.folder, commit)?;
        let mut paths = difference(repository, before.as_ref(), after.as_ref(), enters)?;
        let old = parent.map(Commit::tree_id);
        let beside = self.outside_changes(repository, old, Some(commit.tree_id()), enters)?;
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
            OutsidePatterns(BTreeMap::from([("apps/web/app.yaml".to_owned(), patterns)]))
        };
        let check = |patterns: &[&str], entered: &[&str], left: &[&str]| {
            let area = RepositoryScope::of("teams/config", &lists(patterns));
            entered.iter().for_each(|folder| assert!(area.may_contain(folder), "{folder}"));
            left.iter().for_each(|folder| assert!(!area.may_contain(folder), "{folder}"));
        };
        check(
            &patterns[..1],
            &["", "teams/", "teams/deploy/", "teams/deploy/x/"],
            &["teams/config/", "te/", "other/"],
        );
        check(&patterns[1..2], &["", "teams/", "other/"], &["teams/config/"]);
        check(&patterns[2..3], &[], &["", "teams/"]);
        let area = RepositoryScope::of("teams/config", &lists(&patterns[..2]));
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(area.outside_path(path).as_deref(), expected, "{path}")
        };
        check("teams/deploy/a.yaml", Some("../deploy/a.yaml"));
        check("teams/deploy/b/a.yaml", None);
        check("other/x.yaml", Some("../../other/x.yaml"));
        check("teams/config/x.yaml", None);
        check("teams/config/apps/a.yaml", None);
        let area = RepositoryScope::of("teams/config", &lists(&["../**/*.yaml", "../*/deploy.yaml"]));
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(area.outside_path(path).as_deref(), expected, "{path}");
        };
        check("teams/a/b/c.yaml", Some("../a/b/c.yaml"));
        check("deploy.yaml", None);
        check("other/deploy.yaml", None);
    }
}
