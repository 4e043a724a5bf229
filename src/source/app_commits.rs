//! Lists the commits that changed the sources of an app. Approval rules use them to find the authors of a change.

use std::collections::BTreeSet;

use git2::{Oid, Repository};

use super::commit_tree::{first_parent, folder_tree};
use super::difference::difference;

/// Commits of the first-parent line that are walked at most, which takes about a second.
const MOST_WALKED: usize = 10_000;
/// Commits that are returned at most, including those of merged branches.
const MOST_FOUND: usize = 1_000;

/// Folders that contribute nothing to a render.
const NOT_RENDERED: [&str; 5] = ["approvals/", "policies/", "notifications/", "servers/", "triggers/"];
const APPS: &str = "apps/";

/// The files that a render of an app may depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppSources {
    /// The app's current and former folders, with a final `/`, and every file outside `apps/`.
    OwnAndShared { folders: BTreeSet<String> },
    /// The app's folders alone.
    OwnOnly { folders: BTreeSet<String> },
}

impl AppSources {
    fn folders(&self) -> &BTreeSet<String> {
        let (Self::OwnOnly { folders } | Self::OwnAndShared { folders }) = self;
        folders
    }

    fn includes(&self, path: &str) -> bool {
        let is_own = || self.folders().iter().any(|folder| path.starts_with(folder.as_str()));
        match self {
            Self::OwnAndShared { .. } if !path.starts_with(APPS) => {
                !NOT_RENDERED.iter().any(|it| path.starts_with(it))
            }
            Self::OwnOnly { .. } | Self::OwnAndShared { .. } => is_own(),
        }
    }

    /// Whether a folder may contain such files.
    fn may_contain(&self, path: &str) -> bool {
        path.is_empty() || self.folders().iter().any(|folder| folder.starts_with(path)) || self.includes(path)
    }
}

/// A commit of the deployed branch that changed an app, with the commits of the branches that it merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppSourceCommit<C> {
    pub commit: C,
    pub merged_commits: Vec<C>,
}

/// The commits after `since` up to `until` that changed a source of the app; without `since`, all of them. Returns `None` when `since` is
/// not on the first-parent line of `until`, or when there are too many commits.
pub(super) fn app_commits(
    repository: &Repository,
    folder: &str,
    (since, until): (Option<Oid>, Oid),
    made_of: &AppSources,
) -> Result<Option<Vec<AppSourceCommit<Oid>>>, git2::Error> {
    let (mut steps, mut found) = (Vec::new(), 0);
    let mut commit = repository.find_commit(until)?;
    let mut after = folder_tree(repository, folder, &commit)?;
    let mut enters = |path: &str, _: [Option<Oid>; 2]| made_of.may_contain(path);
    for _ in 0..MOST_WALKED {
        if since == Some(commit.id()) {
            return Ok(Some(steps));
        }
        let parent = first_parent(&commit)?;
        let before = match &parent {
            Some(parent) => folder_tree(repository, folder, parent)?,
            None => None,
        };
        let paths = difference(repository, before.as_ref(), after.as_ref(), &mut enters)?;
        if paths.iter().any(|path| made_of.includes(path)) {
            let merged = merged_by(repository, &commit, parent.as_ref())?;
            found += 1 + merged.len();
            steps.push(AppSourceCommit { commit: commit.id(), merged_commits: merged });
        }
        if found > MOST_FOUND {
            return Ok(None);
        }
        let Some(parent) = parent else { return Ok(since.is_none().then_some(steps)) };
        (commit, after) = (parent, before);
    }
    Ok(None)
}

fn merged_by(
    repository: &Repository,
    commit: &git2::Commit<'_>,
    parent: Option<&git2::Commit<'_>>,
) -> Result<Vec<Oid>, git2::Error> {
    if commit.parent_count() < 2 {
        return Ok(Vec::new());
    }
    let mut walk = repository.revwalk()?;
    walk.push(commit.id())?;
    if let Some(parent) = parent {
        walk.hide(parent.id())?;
    }
    let is_other = |id: &Result<Oid, git2::Error>| !id.as_ref().is_ok_and(|id| *id == commit.id());
    walk.filter(is_other).take(MOST_FOUND + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository of commits: each has parents by number, and one file that it writes.
    struct CommitGraph {
        repository: Repository,
        commits: Vec<Oid>,
        _folder: tempfile::TempDir,
    }

    impl CommitGraph {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let repository = Repository::init(folder.path()).expect("a repository");
            Self { repository, commits: Vec::new(), _folder: folder }
        }

        fn add(&mut self, parents: &[usize], path: &str) -> usize {
            let number = self.commits.len();
            let parents: Vec<git2::Commit<'_>> = parents
                .iter()
                .map(|parent| self.repository.find_commit(self.commits[*parent]).expect("a commit"))
                .collect();
            let mut index = git2::Index::new().expect("an index");
            for parent in parents.iter().rev() {
                let tree = parent.tree().expect("a tree");
                let mut of_parent = git2::Index::new().expect("an index");
                of_parent.read_tree(&tree).expect("read");
                of_parent.iter().for_each(|entry| index.add(&entry).expect("added"));
            }
            let blob = self.repository.blob(number.to_string().as_bytes()).expect("a blob");
            let entry = git2::IndexEntry {
                ctime: git2::IndexTime::new(0, 0),
                mtime: git2::IndexTime::new(0, 0),
                dev: 0,
                ino: 0,
                mode: 0o100_644,
                uid: 0,
                gid: 0,
                file_size: 0,
                id: blob,
                flags: 0,
                flags_extended: 0,
                path: path.as_bytes().to_vec(),
            };
            if !path.is_empty() {
                index.add(&entry).expect("added");
            }
            let tree = index.write_tree_to(&self.repository).expect("a tree");
            let tree = self.repository.find_tree(tree).expect("a tree");
            let who = git2::Signature::new("a", "a@example.com", &git2::Time::new(number as i64, 0))
                .expect("somebody");
            let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
            let id = self.repository.commit(None, &who, &who, "a change", &tree, &parents).expect("a commit");
            drop((tree, parents));
            self.commits.push(id);
            number
        }

        /// Commits of the line, each with those that it merged: `4 2 3`.
        fn steps(&self, since: Option<usize>, until: usize, made_of: &AppSources) -> Option<Vec<String>> {
            let since = since.map(|since| self.commits[since]);
            let found =
                app_commits(&self.repository, "", (since, self.commits[until]), made_of).expect("read")?;
            let number = |id: &Oid| self.commits.iter().position(|it| it == id).expect("known").to_string();
            let line = |step: &AppSourceCommit<Oid>| {
                let mut merged: Vec<String> = step.merged_commits.iter().map(number).collect();
                merged.sort();
                [vec![number(&step.commit)], merged].concat().join(" ")
            };
            Some(found.iter().map(line).collect())
        }
    }

    #[test]
    fn commits_that_changed_sources_of_the_app() {
        let mut line = CommitGraph::new();
        line.add(&[], "apps/pay/app.yaml");
        line.add(&[0], "apps/web/app.yaml");
        line.add(&[1], "approvals/pay.yaml");
        line.add(&[2], "templates/base/a.yaml.j2");
        line.add(&[3], "services/pay/deploy.yaml");
        // A branch, with a merge of its own.
        line.add(&[1], "apps/pay/layer/values.yaml");
        line.add(&[5, 3], "");
        line.add(&[4, 6], "");
        let folders = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>();
        let shared = AppSources::OwnAndShared { folders: folders(&["apps/pay/"]) };
        let own = AppSources::OwnOnly { folders: folders(&["apps/pay/"]) };
        let check = |since: Option<usize>, until: usize, made_of: &AppSources, expected: Option<&[&str]>| {
            let found = line.steps(since, until, made_of);
            let expected = expected.map(|all| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
            assert_eq!(found, expected, "{since:?} {until}");
        };
        check(Some(0), 7, &shared, Some(&["7 5 6", "4", "3"]));
        check(Some(3), 7, &shared, Some(&["7 5 6", "4"]));
        check(Some(7), 7, &shared, Some(&[]));
        check(None, 4, &shared, Some(&["4", "3", "0"]));
        check(None, 7, &own, Some(&["7 5 6", "0"]));
        check(Some(1), 4, &own, Some(&[]));
        // It was moved from one folder to another.
        let moved = AppSources::OwnAndShared { folders: folders(&["apps/pay/", "apps/web/"]) };
        check(Some(0), 7, &moved, Some(&["7 5 6", "4", "3", "1"]));
        check(
            None,
            4,
            &AppSources::OwnOnly { folders: folders(&["apps/pay/", "apps/web/"]) },
            Some(&["1", "0"]),
        );
        // It is not on the line.
        check(Some(5), 7, &shared, None);
        // A merge that changes what neither side has.
        let evil = line.add(&[4, 3], "apps/pay/app.yaml");
        assert_eq!(line.steps(Some(4), evil, &shared), Some(vec![evil.to_string()]));
    }
}
