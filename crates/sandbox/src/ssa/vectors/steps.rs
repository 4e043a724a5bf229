//! Runs one write of a vector through `apply` or `track`.

use serde_json::{Value, json};

use crate::ssa::conflict::ApplyConflicts;
use crate::ssa::managed_fields::ManagedFields;
use crate::ssa::reset_fields::FieldFilter;
use crate::ssa::update_tracking::entries_after_write;
use crate::ssa::validate::{DuplicateItems, SchemaViolations, validate};
use crate::ssa::{
    ApplyBase, ApplyError, FieldSet, FieldWrite, ManagedWriter, ManagerOperation, TypeRef,
    VersionedMergeTypes, apply,
};

pub(super) struct VectorWrite<'d> {
    pub(super) step: &'d Value,
    pub(super) of: TypeRef<'d>,
    pub(super) types: &'d dyn VersionedMergeTypes,
    pub(super) filter: &'d FieldFilter<'d>,
    pub(super) untracked: FieldSet<'d>,
}

pub(super) struct VectorResult {
    pub(super) object: Value,
    pub(super) managed: Vec<Value>,
}

#[derive(Debug)]
pub(super) enum VectorRefusal {
    Invalid(SchemaViolations),
    Conflicts(ApplyConflicts),
    Other(String),
}

impl VectorRefusal {
    pub(super) fn is(&self, theirs: &Value) -> bool {
        match self {
            Self::Conflicts(conflicts) => {
                let mut ours: Vec<Value> = conflicts
                    .manager_paths()
                    .map(|(manager, path)| json!([format!("conflict with {manager}"), path]))
                    .collect();
                let theirs_listed = theirs["conflicts"].as_array().into_iter().flatten();
                let mut theirs_listed: Vec<Value> =
                    theirs_listed.map(|one| json!([one["message"], one["path"]])).collect();
                // managers come in any order, their paths in one
                ours.sort_by_key(|one| one[0].to_string());
                theirs_listed.sort_by_key(|one| one[0].to_string());
                let same_message = theirs["message"] == "" || theirs["message"] == conflicts.to_string();
                theirs["kind"] == "conflict" && ours == theirs_listed && same_message
            }
            Self::Invalid(invalid) => {
                let message = theirs["message"].as_str().unwrap_or_default();
                // of several faults upstream says those that it met first, in any order
                let is_several = message.contains("errors:\n");
                theirs["kind"] == "invalid" && (is_several || message.ends_with(&invalid.to_string()))
            }
            Self::Other(_) => false,
        }
    }

    pub(super) fn shown(&self) -> Value {
        match self {
            Self::Conflicts(conflicts) => json!(conflicts.manager_paths().collect::<Vec<_>>()),
            Self::Invalid(invalid) => json!(invalid.to_string()),
            Self::Other(text) => json!(text),
        }
    }
}

impl VectorWrite<'_> {
    fn text(&self, field: &str) -> &str {
        self.step[field].as_str().unwrap_or_default()
    }

    fn writer(&self) -> ManagedWriter {
        let is_update = self.text("operation") == "update";
        ManagedWriter {
            manager: self.text("manager").to_owned(),
            operation: if is_update { ManagerOperation::Update } else { ManagerOperation::Apply },
            api_version: self.text("version").to_owned(),
            subresource: self.text("subresource").to_owned(),
        }
    }

    fn write<'w>(&'w self, writer: &'w ManagedWriter) -> FieldWrite<'w> {
        FieldWrite {
            writer,
            merge_type: self.of,
            types: self.types,
            filter: self.filter,
            untracked: &self.untracked,
            now: self.text("time"),
        }
    }

    /// Merging and ownership alone.
    pub(super) fn merge(&self, live: &Value, managed: &Value) -> Result<VectorResult, VectorRefusal> {
        let writer = self.writer();
        let write = self.write(&writer);
        let carrier = carrier(managed);
        let managed = ManagedFields::of(&carrier).unwrap();
        let said = &self.step["object"];
        if writer.operation == ManagerOperation::Update {
            validate(said, self.of, DuplicateItems::Allowed).map_err(VectorRefusal::Invalid)?;
            let managed = write.update(live, said, managed);
            return Ok(VectorResult { object: said.clone(), managed: managed.encode() });
        }
        validate(said, self.of, DuplicateItems::Refused).map_err(VectorRefusal::Invalid)?;
        let force = self.text("operation") == "force";
        let applied = write.apply(live, said, managed, force).map_err(VectorRefusal::Conflicts)?;
        let object = applied.object.unwrap_or_else(|| live.clone());
        Ok(VectorResult { object, managed: applied.managed.encode() })
    }

    /// All that field managers do.
    pub(super) fn manage(
        &self,
        live: &Value,
        managed: &Value,
        skeleton: &Value,
    ) -> Result<VectorResult, VectorRefusal> {
        let writer = self.writer();
        let write = self.write(&writer);
        let mut live = live.clone();
        if managed != &json!([]) {
            live["metadata"]["managedFields"] = carrier(managed)["metadata"]["managedFields"].clone();
        }
        let said = &self.step["object"];
        let mut object = if writer.operation == ManagerOperation::Update {
            let entries = entries_after_write(&live, said, &write).map_err(VectorRefusal::Invalid)?;
            let mut object = said.clone();
            object["metadata"]["managedFields"] = Value::Array(entries);
            object
        } else {
            let force = self.text("operation") == "force";
            let live_object = ApplyBase { object: Some(&live), skeleton };
            match apply(live_object, said, &write, force) {
                Ok(object) => object.unwrap_or_else(|| live.clone()),
                Err(ApplyError::Conflicts(conflicts)) => return Err(VectorRefusal::Conflicts(conflicts)),
                Err(ApplyError::Config(invalid) | ApplyError::Live(invalid)) => {
                    return Err(VectorRefusal::Invalid(invalid));
                }
                Err(other) => return Err(VectorRefusal::Other(other.to_string())),
            }
        };
        let managed = object["metadata"].as_object_mut().and_then(|one| one.shift_remove("managedFields"));
        let managed = managed.and_then(|entries| entries.as_array().cloned()).unwrap_or_default();
        Ok(VectorResult { object, managed })
    }
}

/// An object that carries the entries that a vector writes down.
fn carrier(managed: &Value) -> Value {
    let mut managed = managed.clone();
    for entry in managed.as_array_mut().unwrap() {
        entry["fieldsType"] = json!("FieldsV1");
    }
    json!({"metadata": {"managedFields": managed}})
}
