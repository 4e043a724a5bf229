//! What takes a commit back.

use crate::controller::ConfigHead;
use crate::model::{Changed, File, Revision};
use crate::promotion::{self, ChangedFile, Undo};
use crate::source::{self, Repository};

use super::publish::NewFile;

/// How to take a commit back from the head, and the files that do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    pub how: Undo,
    pub files: Vec<NewFile>,
}

/// Reads the commit and the one before it, file by file: what a later commit changed in the same file is for a person.
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
        // Taken back already, as far as this file goes.
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

/// `None`: it is no text. `Some(None)`: it is not there.
fn text(file: Option<&File>) -> Option<Option<String>> {
    file.map(|file| std::str::from_utf8(&file.content).map(ToOwned::to_owned)).transpose().ok()
}
