//! Computes the revert of a commit from the head.

use crate::controller::ConfigHead;
use crate::model::{Revision, SnapshotFile, SnapshotFileChange};
use crate::promotion::{self, ChangedFile, CommitUndo};
use crate::source::{self, ConfigRepository};

use super::publish::FileUpdate;

/// A revert: whether it is possible, and its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevertPlan {
    pub how: CommitUndo,
    pub files: Vec<FileUpdate>,
}

/// Compares the commit with its parent, file by file. A file that a later commit changed too is left to a person.
pub async fn plan_revert(
    repository: &ConfigRepository,
    head: &ConfigHead,
    commit: &Revision,
) -> Result<RevertPlan, source::Error> {
    let by_hand = |why: String| Ok(RevertPlan { how: CommitUndo::Conflicts(why), files: Vec::new() });
    let recent = repository.recent_commits(commit, 2).await?;
    let Some(parent) = recent.get(1).map(|it| it.revision.clone()) else {
        return by_hand(format!("{} is the first commit", commit.short()));
    };
    let mut changed = Vec::new();
    for SnapshotFileChange { path, before, after } in repository.changed_between(&parent, commit).await? {
        let sides = [before.as_ref(), after.as_ref(), head.snapshot.files.get(&path)].map(file_text);
        let [Some(before), Some(after), Some(now)] = sides else {
            return by_hand(format!("{path} is not a text"));
        };
        // This file is reverted already.
        if now != before {
            changed.push(ChangedFile { path, before, after, now });
        }
    }
    if changed.is_empty() {
        return by_hand("its files are as they were before it".to_owned());
    }
    let how = promotion::commit_undo(&head.fleet, &changed);
    let files = changed.into_iter().map(|file| (file.path, file.before)).collect();
    Ok(RevertPlan { how, files })
}

/// `None`: not UTF-8. `Some(None)`: the file does not exist.
fn file_text(file: Option<&SnapshotFile>) -> Option<Option<String>> {
    file.map(|file| std::str::from_utf8(&file.content).map(ToOwned::to_owned)).transpose().ok()
}
