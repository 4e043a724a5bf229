//! Server-side apply.

use serde_json::{Map, Value};

use super::conflict::ApplyConflicts;
use super::field_write::FieldWrite;
use super::last_applied;
use super::managed_fields::{ManagedFields, write_to};
use super::managed_writer::{ManagedWriter, ManagerOperation};
use super::update_tracking::update;
use super::validate::{DuplicateItems, SchemaViolations, validate};

#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error(transparent)]
    Conflicts(#[from] ApplyConflicts),
    /// The configuration is not of its kind.
    #[error("failed to create typed patch object: {0}")]
    Config(SchemaViolations),
    /// The stored object is not of its kind (any more).
    #[error("failed to create typed live object: {0}")]
    Live(SchemaViolations),
    #[error("failed to decode managed fields")]
    ManagedFields,
    #[error("request to convert CR to an invalid group/version: {0}")]
    Version(String),
}

/// The live object before an apply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApplyBase<'l> {
    /// `None`: the apply creates the object.
    pub(crate) object: Option<&'l Value>,
    /// The empty object of the kind.
    pub(crate) skeleton: &'l Value,
}

/// Merges `config` into `live`: the object with its managed fields, or `None` when all stays as it
/// is. Maps that lost their last field are null; nothing is defaulted.
pub(crate) fn apply(
    live: ApplyBase<'_>,
    config: &Value,
    write: &FieldWrite<'_>,
    force: bool,
) -> Result<Option<Value>, ApplyError> {
    let nothing = Value::Object(Map::new());
    let before = live.object.unwrap_or(&nothing);
    validate(config, write.merge_type, DuplicateItems::Refused).map_err(ApplyError::Config)?;
    write.check_stored(before).map_err(ApplyError::Live)?;
    let mut managed = ManagedFields::of(before).ok_or(ApplyError::ManagedFields)?;
    if let Some(version) = write.unknown_version(&managed) {
        return Err(ApplyError::Version(version));
    }

    // nothing was tracked so far: existing fields belong to `before-first-apply`
    let unknown = ManagedWriter {
        manager: "before-first-apply".to_owned(),
        operation: ManagerOperation::Update,
        ..write.writer.clone()
    };
    let was_untracked = managed.is_empty();
    if was_untracked && live.object.is_some() {
        let write = FieldWrite { writer: &unknown, ..*write };
        managed = update(live.skeleton, before, managed, &write).map_err(ApplyError::Live)?;
    }

    let is_kubectl = write.writer.manager == last_applied::MANAGER;
    let again = is_kubectl.then(|| managed.clone());
    let applied = match (write.apply(before, config, managed, force), again) {
        (Err(conflicts), Some(managed)) => {
            last_applied::allow_own_conflicts(conflicts, before, write)?;
            write.apply(before, config, managed, true)?
        }
        (applied, _) => applied?,
    };
    if applied.same_owners && !was_untracked && !(is_kubectl && last_applied::must_update_annotation(before))
    {
        return Ok(None);
    }
    let entries = applied.managed.encode();
    let mut object = applied.object.unwrap_or_else(|| before.clone());
    if is_kubectl {
        last_applied::update_annotation(&mut object, config);
    }
    write_to(&mut object, entries);
    Ok(Some(object))
}
