//! Computes the revert of a commit from the head.

use crate::controller::ConfigHead;
use crate::model::{Changed, File, Revision};
use crate::promotion::{self, ChangedFile, Undo};
use crate::source::{self, Repository};

use super::publish::NewFile;

/// A revert: whether it is possible, and its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    pub how: Undo,
    pub files: Vec<NewFile>,
}

/// Compares the commit with its parent, file by file. A file that a later commit changed too is left to a person.
pub async fn undo(
    repository: &Repository,
    head: &ConfigHead,
    commit: &Revision,
) -> Result<Undone, source::Error> {
    let by_hand = |why: String| Ok(Undone { how: Undo::Conflicts(why), files: Vec::new() });
    let recent = repository.recent(commit, 2).await?;
    let Some(parent) = recent.get(1).map(|it| it.revision.clone()) else {
        return by_hand(format!("{} is the first commit", commit.short()));
    };
    let mut changed = Vec::new();
    for Changed { path, before, after } in repository.changed(&parent, commit).await? {
        let sides = [before.as_ref(), after.as_ref(), head.snapshot.files.get(&path)].map(text);
        let [Some(before), Some(after), Some(now)] = sides else {
            return by_hand(format!("{path} is no text"));
        };
        // This file is reverted already.
        if now != before {
            changed.push(ChangedFile { path, before, after, now });
        }
    }
    if changed.is_empty() {
        return by_hand("its files are as they were before it".to_owned());
    }
    let how = promotion::undo(&head.fleet, &changed);
    let files = changed.into_iter().map(|file| (file.path, file.before)).collect();
    Ok(Undone { how, files })
}

/// `None`: not UTF-8. `Some(None)`: the file does not exist.
fn text(file: Option<&File>) -> Option<Option<String>> {
    file.map(|file| std::str::from_utf8(&file.content).map(ToOwned::to_owned)).transpose().ok()
}
