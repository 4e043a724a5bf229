//! Shared lookups of the rules of one pod.

use std::collections::BTreeSet;

use crate::validation::field_cursor::FieldCursor;

/// Shared lookups of the rules of one pod.
pub(super) struct PodValidation<'p, 'v> {
    pub(super) spec: &'p FieldCursor<'p, 'v>,
    /// Only a pod itself has a name; a template has none.
    pub(super) name: Option<&'v str>,
    /// The volumes that have no mistake.
    pub(super) volumes: BTreeSet<&'v str>,
    pub(super) grace_seconds: Option<i64>,
}

impl<'v> PodValidation<'_, 'v> {
    pub(super) fn volume(&self, name: &str) -> Option<&'v serde_json::Value> {
        let volumes = self.spec.at("volumes").value().as_array()?;
        volumes.iter().find(|one| one["name"] == name).filter(|_| self.volumes.contains(name))
    }

    pub(super) fn operating_system(&self) -> &'v str {
        self.spec.at("os.name").text()
    }
}
