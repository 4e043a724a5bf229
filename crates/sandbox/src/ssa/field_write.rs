//! One write of an object, and the types by which it is read.

use serde_json::Value;

use super::fieldset::FieldSet;
use super::managed_fields::ManagedFields;
use super::managed_writer::ManagedWriter;
use super::reset_fields::FieldFilter;
use super::type_ref::TypeRef;
use super::validate::{DuplicateItems, SchemaViolations, validate};

/// The merge types of a kind in the versions that its entries may name.
pub(crate) trait VersionedMergeTypes {
    /// The type of the kind in a version; `None` when there is no such version.
    fn merge_type_at(&self, api_version: &str) -> Option<TypeRef<'_>>;

    /// Does an entry of a removed version make a write fail? Otherwise the entry is dropped.
    fn requires_known_versions(&self) -> bool {
        false
    }

    /// Is what is stored known to be of its type? It is unless types change.
    fn trusts_stored_objects(&self) -> bool {
        false
    }

    /// Does an endpoint reset its fields in the entries of all versions, not only of its own?
    fn filters_every_version(&self) -> bool {
        true
    }
}

/// One write: manager, merge type, reset fields and time.
#[derive(Clone, Copy)]
pub(crate) struct FieldWrite<'a> {
    pub(crate) writer: &'a ManagedWriter,
    /// The type in the writer's version.
    pub(crate) merge_type: TypeRef<'a>,
    pub(crate) types: &'a dyn VersionedMergeTypes,
    pub(crate) filter: &'a FieldFilter<'a>,
    /// Paths that no entry has.
    pub(crate) untracked: &'a FieldSet<'a>,
    pub(crate) now: &'a str,
}

impl<'a> FieldWrite<'a> {
    /// The type of another version; what was written before means the same in all of them.
    pub(super) fn type_at(&self, api_version: &str) -> Option<TypeRef<'a>> {
        if api_version == self.writer.api_version {
            Some(self.merge_type)
        } else {
            self.types.merge_type_at(api_version)
        }
    }

    /// Is a stored object (still) of its type?
    pub(super) fn check_stored(&self, object: &Value) -> Result<(), SchemaViolations> {
        if self.types.trusts_stored_objects() {
            return Ok(());
        }
        validate(object, self.merge_type, DuplicateItems::Allowed)
    }

    /// The version of an entry that cannot be converted to.
    pub(super) fn unknown_version(&self, managed: &ManagedFields<'_>) -> Option<String> {
        let mut versions = managed.entries.iter().map(|entry| &entry.api_version);
        let unknown = versions.find(|version| self.type_at(version).is_none());
        unknown.filter(|_| self.types.requires_known_versions()).map(ToString::to_string)
    }
}
