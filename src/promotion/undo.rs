//! Reverts a commit in Git: pins get their old versions, everything else needs `git revert`.

use super::{CommitUndo, PinChange, pin_version};
use crate::fleet::Fleet;

/// One file that a commit changed: its text before, after, and at the head. `None`: it did not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: String,
    pub before: Option<String>,
    pub after: Option<String>,
    pub now: Option<String>,
}

/// Files that a reason names.
const MAX_NAMED_FILES: usize = 3;

/// `fleet`: the head's.
pub fn commit_undo(fleet: &Fleet, changed: &[ChangedFile]) -> CommitUndo {
    let later: Vec<&str> =
        changed.iter().filter(|file| file.now != file.after).map(|file| file.path.as_str()).collect();
    if !later.is_empty() {
        let more = later.len().checked_sub(MAX_NAMED_FILES).filter(|more| *more > 0);
        let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
        let named: Vec<&str> = later.into_iter().take(MAX_NAMED_FILES).collect();
        return CommitUndo::Conflicts(format!("{}{more}", named.join(", ")));
    }
    let pins: Option<Vec<PinChange>> = changed.iter().map(|file| pin_back(fleet, file)).collect();
    pins.filter(|pins| !pins.is_empty()).map_or(CommitUndo::Whole, CommitUndo::Pins)
}

fn pin_back(fleet: &Fleet, file: &ChangedFile) -> Option<PinChange> {
    let is_its = |app: &&std::sync::Arc<crate::model::App>| {
        app.pins.values().any(|pin| pin.location.file == file.path)
    };
    let app = fleet.apps.values().find(is_its)?;
    let (from, to) = (pin_version(file.now.as_ref()?)?, pin_version(file.before.as_ref()?)?);
    Some(PinChange { app: app.id.clone(), file: file.path.clone(), from: Some(from), to })
}
