//! Runs one vector: a sequence of writes of one object.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::merge_schema::VectorSchema;
use super::steps::{VectorRefusal, VectorResult, VectorWrite};
use crate::schema;
use crate::ssa::reset_fields::FieldFilter;
use crate::ssa::{TypeRef, VersionedMergeTypes, untracked};

pub(super) struct VectorCase<'c> {
    line: &'c Value,
    of: TypeRef<'c>,
    schema: Option<&'c VectorSchema>,
    /// The level of field managers, not only that of merging.
    is_managed: bool,
}

/// Versions convert to each other unchanged, until they end.
struct VectorVersions<'s> {
    of: TypeRef<'s>,
    ended: Vec<&'s str>,
}

impl VersionedMergeTypes for VectorVersions<'_> {
    fn merge_type_at(&self, api_version: &str) -> Option<TypeRef<'_>> {
        (!self.ended.contains(&api_version)).then_some(self.of)
    }
}

impl<'c> VectorCase<'c> {
    pub(super) fn of(line: &'c Value, schemas: &'c BTreeMap<String, VectorSchema>) -> Self {
        let text = |of: &'c Value| of.as_str().unwrap();
        let kind = &line["type"];
        let schema = schemas.get(text(&line["schema"]));
        let of = match schema {
            Some(schema) => schema.named(text(kind)),
            None => {
                let built_in = schema::built_in();
                let id =
                    built_in.merge_type(text(&kind["group"]), text(&kind["version"]), text(&kind["kind"]));
                TypeRef::new(built_in.merge_schema(), id.unwrap())
            }
        };
        Self { line, of, schema, is_managed: line["level"] == "manager" }
    }

    /// The number of steps, or what differs.
    pub(super) fn run(&self) -> Result<usize, String> {
        let (mut object, mut managed) = (self.start(), json!([]));
        let steps = self.line["steps"].as_array().unwrap();
        let mut versions = VectorVersions { of: self.of, ended: Vec::new() };
        for (number, step) in steps.iter().enumerate() {
            versions.ended.extend(step["removedVersion"].as_str());
            if let (Some(name), Some(schema)) = (step["type"].as_str(), self.schema) {
                versions.of = schema.named(name);
            }
            let answer = self.step(step, &versions, &object, &managed);
            let expected = &step["expect"];
            let differs = |what: &str, ours: &Value, theirs: &Value| {
                let name = &self.line["name"];
                Err(format!(
                    "{name} step {number}: {what}\n  ours: {ours}\n  theirs: {theirs}\n  live: {object}\n  said: {step}"
                ))
            };
            match (answer, &expected["error"]) {
                (Ok(answer), Value::Null) => {
                    let theirs = expected.get("object").unwrap_or(&object);
                    if answer.object != *theirs {
                        return differs("object", &answer.object, theirs);
                    }
                    let theirs = expected.get("managed").unwrap_or(&managed);
                    let ours = self.shown(&answer.managed);
                    // as text: the order counts, too
                    if serde_json::to_vec(&ours).unwrap() != serde_json::to_vec(theirs).unwrap() {
                        return differs("managed", &ours, theirs);
                    }
                    (object, managed) = (answer.object, ours);
                }
                (Ok(answer), error) => return differs("error", &answer.object, error),
                (Err(ours), theirs) if ours.is(theirs) => {}
                (Err(ours), theirs) => return differs("error", &ours.shown(), theirs),
            }
        }
        Ok(steps.len())
    }

    fn start(&self) -> Value {
        let kind = &self.line["type"];
        match self.line.get("live") {
            Some(live) => live.clone(),
            None if self.is_managed => json!({"apiVersion": api_version(kind), "kind": kind["kind"]}),
            None => Value::Null,
        }
    }

    fn step(
        &self,
        step: &Value,
        versions: &VectorVersions<'_>,
        object: &Value,
        managed: &Value,
    ) -> Result<VectorResult, VectorRefusal> {
        let filter = self.filter(step["subresource"].as_str().unwrap());
        let door = VectorWrite {
            step,
            of: versions.of,
            types: versions,
            filter: &filter,
            untracked: if self.is_managed { untracked().clone() } else { Default::default() },
        };
        if self.is_managed {
            let kind = &self.line["type"];
            let skeleton = json!({"apiVersion": api_version(kind), "kind": kind["kind"]});
            door.manage(object, managed, &skeleton)
        } else {
            door.merge(object, managed)
        }
    }

    fn filter(&self, subresource: &str) -> FieldFilter<'static> {
        let kind = &self.line["type"];
        let Some(wanted) = self.line.get("resetFields") else { return FieldFilter::All };
        let has_status = wanted.is_object();
        let (group, kind) = (kind["group"].as_str().unwrap(), kind["kind"].as_str().unwrap());
        crate::ssa::reset_filter(group, kind, subresource, has_status, false)
    }

    /// Entries as the vectors write them, in the order that they do.
    fn shown(&self, entries: &[Value]) -> Value {
        let mut shown: Vec<Value> = entries
            .iter()
            .map(|entry| {
                let mut out = json!({});
                for field in ["manager", "operation", "apiVersion", "subresource", "time", "fieldsV1"] {
                    match entry.get(field) {
                        Some(value) => out[field] = value.clone(),
                        None if field == "subresource" => out[field] = json!(""),
                        None => {}
                    }
                }
                out
            })
            .collect();
        if !self.is_managed {
            shown.iter_mut().for_each(|entry| drop(entry.as_object_mut().unwrap().shift_remove("time")));
            shown.sort_by_key(|entry| {
                json!([entry["operation"], entry["manager"], entry["apiVersion"]]).to_string()
            });
        }
        Value::Array(shown)
    }
}

fn api_version(kind: &Value) -> String {
    match (kind["group"].as_str().unwrap(), kind["version"].as_str().unwrap()) {
        ("", version) => version.to_owned(),
        (group, version) => format!("{group}/{version}"),
    }
}
