//! Fields of other managers that an apply would change.

use super::fieldset::FieldSet;
use super::managed_fields::ManagedFieldsEntry;
use super::path::display;

/// The fields that one manager would lose.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ManagerConflict {
    identifier: String,
    /// The manager in the words of messages.
    pub(crate) manager: String,
    pub(crate) paths: Vec<String>,
}

impl ManagerConflict {
    pub(super) fn new(entry: &ManagedFieldsEntry<'_>, lost: &FieldSet<'_>) -> Self {
        let mut paths = Vec::new();
        lost.for_each_path(&mut |path| paths.push(display(path)));
        Self { identifier: entry.identifier(), manager: entry.describe(), paths }
    }
}

/// Conflicts in the order of their managers.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", self.message())]
pub(crate) struct ApplyConflicts(pub(crate) Vec<ManagerConflict>);

impl ApplyConflicts {
    pub(super) fn of(mut conflicts: Vec<ManagerConflict>) -> Self {
        conflicts.sort_by(|left, right| left.identifier.cmp(&right.identifier));
        Self(conflicts)
    }

    /// Every (manager, path).
    pub(crate) fn manager_paths(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|one| one.paths.iter().map(|path| (one.manager.as_str(), path.as_str())))
    }

    /// Those about other paths; `None` when there are none.
    pub(super) fn without_paths(self, allowed: &[String]) -> Option<Self> {
        let mut rest = self.0;
        for conflict in &mut rest {
            conflict.paths.retain(|path| allowed.binary_search(path).is_err());
        }
        rest.retain(|conflict| !conflict.paths.is_empty());
        (!rest.is_empty()).then_some(Self(rest))
    }

    fn message(&self) -> String {
        let count = self.manager_paths().count();
        if let (1, Some((manager, path))) = (count, self.manager_paths().next()) {
            return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
        }
        let mut lines = Vec::new();
        for conflict in &self.0 {
            lines.push(format!("conflicts with {}:", conflict.manager));
            lines.extend(conflict.paths.iter().map(|path| format!("- {path}")));
        }
        format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
    }
}
