//! What takes a commit back.

use std::collections::BTreeMap;

use crate::controller::ConfigHead;
use crate::model::{Revision, Snapshot};
use crate::promotion::{PinChange, Undo};
use crate::source::{self, Repository};

use super::publish::NewFile;

/// Files that are named where a commit cannot be taken back.
const NAMED: usize = 3;

/// How to take a commit back from the head, and the files that do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    pub how: Undo,
    pub files: Vec<NewFile>,
}

/// Reads the commit and the one before it. File by file: what a later commit changed in a file that this one changed too, a person
/// has to look at.
pub async fn undo(
    repository: &Repository,
    head: &ConfigHead,
    commit: &Revision,
) -> Result<Undone, source::Error> {
    let recent = repository.recent(commit, 2).await?;
    let Some(parent) = recent.get(1).map(|it| it.revision.clone()) else {
        return Ok(conflicts(&[format!("{} is the first commit", commit.short())]));
    };
    let paths = repository.changed_paths(&parent, commit).await?;
    let (before, after) = (repository.files(&parent).await?, repository.files(commit).await?);
    Ok(undone(&paths, (&before, &after), head))
}

fn undone(paths: &[String], (before, after): (&Snapshot, &Snapshot), head: &ConfigHead) -> Undone {
    let content = |of: &Snapshot, path: &str| of.files.get(path).map(|file| file.content.clone());
    let mut files = Vec::new();
    let mut changed_since = Vec::new();
    for path in paths {
        let (then, now) = (content(before, path), content(&head.snapshot, path));
        if now == then {
            continue;
        }
        let text = then.as_deref().map(|it| std::str::from_utf8(it).map(ToOwned::to_owned));
        match text.transpose() {
            Ok(text) if now == content(after, path) => files.push((path.clone(), text)),
            _ => changed_since.push(path.clone()),
        }
    }
    if !changed_since.is_empty() {
        return conflicts(&changed_since);
    }
    let how = match pins(&files, before, head) {
        Some(pins) if !pins.is_empty() => Undo::Pins(pins),
        _ => Undo::Whole,
    };
    Undone { how, files }
}

fn conflicts(files: &[String]) -> Undone {
    let more = files.len().saturating_sub(NAMED);
    let named = files.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    Undone { how: Undo::Conflicts(format!("{named}{rest}")), files: Vec::new() }
}

/// Where it changed pins that were there before, and nothing else.
fn pins(files: &[NewFile], before: &Snapshot, head: &ConfigHead) -> Option<Vec<PinChange>> {
    let of_file: BTreeMap<&str, (&crate::model::AppId, &str)> = (head.fleet.apps.values())
        .flat_map(|app| {
            app.pins.values().map(|pin| (pin.location.file.as_str(), (&app.id, pin.version.as_str())))
        })
        .collect();
    let one = |(file, _): &NewFile| {
        let (app, from) = *of_file.get(file.as_str())?;
        let to = crate::promotion::edit::scalar(before.text(file)?, "version").ok()?;
        Some(PinChange { app: app.clone(), file: file.clone(), from: Some(from.to_owned()), to })
    };
    files.iter().map(one).collect()
}
