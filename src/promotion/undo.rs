//! Reverts a commit in Git: pins get their old versions, everything else needs `git revert`.

use super::{PinChange, Undo};
use crate::fleet::Fleet;
use crate::manifest::yaml::{self, Node, NodeKind};

/// One file that a commit changed: its text before, after, and at the head. `None`: it did not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: String,
    pub before: Option<String>,
    pub after: Option<String>,
    pub now: Option<String>,
}

/// Files that a reason names.
const MOST_NAMED: usize = 3;

/// `fleet`: the head's.
pub fn undo(fleet: &Fleet, changed: &[ChangedFile]) -> Undo {
    let later: Vec<&str> =
        changed.iter().filter(|file| file.now != file.after).map(|file| file.path.as_str()).collect();
    if !later.is_empty() {
        let more = later.len().checked_sub(MOST_NAMED).filter(|more| *more > 0);
        let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
        let named: Vec<&str> = later.into_iter().take(MOST_NAMED).collect();
        return Undo::Conflicts(format!("{}{more}", named.join(", ")));
    }
    let pins: Option<Vec<PinChange>> = changed.iter().map(|file| pin_back(fleet, file)).collect();
    pins.filter(|pins| !pins.is_empty()).map_or(Undo::Whole, Undo::Pins)
}

fn pin_back(fleet: &Fleet, file: &ChangedFile) -> Option<PinChange> {
    let is_its = |app: &&std::sync::Arc<crate::model::App>| {
        app.pins.values().any(|pin| pin.location.file == file.path)
    };
    let app = fleet.apps.values().find(is_its)?;
    let (from, to) = (pin_version(file.now.as_ref()?)?, pin_version(file.before.as_ref()?)?);
    Some(PinChange { app: app.id.clone(), file: file.path.clone(), from: Some(from), to })
}

/// The version in the text of a pin file.
pub fn pin_version(text: &str) -> Option<String> {
    let (documents, mistakes) = yaml::parse("", text);
    let root = &documents.first().filter(|_| mistakes.is_empty())?.root;
    root.get("version").and_then(scalar)
}

/// The text of a scalar as it is written.
pub(super) fn scalar(node: &Node) -> Option<String> {
    match &node.kind {
        NodeKind::String(text) => Some(text.clone()),
        NodeKind::Bool(_, text) | NodeKind::Int(_, text) | NodeKind::Float(_, text) => Some(text.to_string()),
        NodeKind::Null | NodeKind::Seq(_) | NodeKind::Map(_) => None,
    }
}
