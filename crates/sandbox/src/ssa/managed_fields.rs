//! `metadata.managedFields`: one entry for each (manager, operation, version, subresource).

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::fieldset::FieldSet;
use super::go_format;
use super::managed_writer::{ManagedWriter, ManagerOperation};

/// The fields that one manager owns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ManagedFieldsEntry<'a> {
    pub(crate) manager: Cow<'a, str>,
    pub(crate) operation: ManagerOperation,
    pub(crate) api_version: Cow<'a, str>,
    /// Empty for the object itself.
    pub(crate) subresource: Cow<'a, str>,
    pub(crate) time: Option<Cow<'a, str>>,
    pub(crate) fields: FieldSet<'a>,
}

impl<'a> ManagedFieldsEntry<'a> {
    pub(super) fn of(writer: &'a ManagedWriter, fields: FieldSet<'a>) -> Self {
        Self {
            manager: Cow::Borrowed(&writer.manager),
            operation: writer.operation,
            api_version: Cow::Borrowed(&writer.api_version),
            subresource: Cow::Borrowed(&writer.subresource),
            time: None,
            fields,
        }
    }

    /// An applier is the same whatever version it applies; an updater is not.
    pub(super) fn is_same_manager(&self, other: &ManagedFieldsEntry<'_>) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == ManagerOperation::Apply || self.api_version == other.api_version)
    }

    pub(super) fn belongs_to(&self, writer: &ManagedWriter) -> bool {
        self.manager == writer.manager
            && self.operation == writer.operation
            && self.subresource == writer.subresource
            && (self.operation == ManagerOperation::Apply || self.api_version == writer.api_version)
    }

    /// The server's identifier of the manager, which also orders managers.
    pub(super) fn identifier(&self) -> String {
        let mut out = Map::new();
        let version = if self.operation == ManagerOperation::Apply { "" } else { &self.api_version };
        let fields = [
            ("manager", &*self.manager),
            ("operation", self.operation.text()),
            ("apiVersion", version),
            ("subresource", &*self.subresource),
        ];
        for (name, text) in fields.into_iter().filter(|(_, text)| !text.is_empty()) {
            out.insert(name.to_owned(), Value::from(text));
        }
        Value::Object(out).to_string()
    }

    /// As messages name the manager.
    pub(super) fn describe(&self) -> String {
        let mut text = go_format::quoted(&self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {}", go_format::quoted(&self.subresource)));
        }
        if self.operation == ManagerOperation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }

    /// Seconds of the entry's time, for orders; an entry without time is older than all.
    pub(super) fn seconds(&self) -> i64 {
        self.time.as_ref().and_then(|time| time.parse().ok()).map_or(0, jiff::Timestamp::as_second)
    }

    fn read(entry: &'a Value) -> Option<Self> {
        let text = |field: &str| Cow::Borrowed(entry.get(field).and_then(Value::as_str).unwrap_or_default());
        let operation = ManagerOperation::read(entry.get("operation")?.as_str()?)?;
        let (api_version, fields_type) = (text("apiVersion"), text("fieldsType"));
        if api_version.is_empty() || fields_type != "FieldsV1" {
            return None;
        }
        let fields = match entry.get("fieldsV1") {
            Some(fields) if !fields.is_null() => FieldSet::decode(fields)?,
            _ => FieldSet::default(),
        };
        Some(Self {
            manager: text("manager"),
            operation,
            api_version,
            subresource: text("subresource"),
            time: entry.get("time").and_then(Value::as_str).map(in_utc).filter(|time| !time.is_empty()),
            fields,
        })
    }

    fn write(&self) -> Value {
        let mut out = Map::with_capacity(7);
        let mut set = |name: &str, text: &str| {
            if !text.is_empty() {
                out.insert(name.to_owned(), Value::from(text));
            }
        };
        set("manager", &self.manager);
        set("operation", self.operation.text());
        set("apiVersion", &self.api_version);
        set("time", self.time.as_deref().unwrap_or_default());
        set("fieldsType", "FieldsV1");
        out.insert("fieldsV1".to_owned(), self.fields.encode());
        if !self.subresource.is_empty() {
            out.insert("subresource".to_owned(), Value::from(&*self.subresource));
        }
        Value::Object(out)
    }
}

/// Times are written in UTC and in whole seconds, however a client sent them.
fn in_utc(time: &str) -> Cow<'_, str> {
    if time.len() == 20 && time.ends_with('Z') {
        return Cow::Borrowed(time);
    }
    let time = time.parse::<jiff::Timestamp>().map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    time.map_or(Cow::Borrowed(""), Cow::Owned)
}

/// The owners of an object's fields.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ManagedFields<'a> {
    pub(crate) entries: Vec<ManagedFieldsEntry<'a>>,
}

impl<'a> ManagedFields<'a> {
    /// The owners of an object; `None` when they cannot be read.
    pub(crate) fn of(object: &'a Value) -> Option<Self> {
        let mut managed = Self::default();
        let Some(Value::Array(entries)) = raw_entries(object) else { return Some(managed) };
        for entry in entries {
            managed.put(ManagedFieldsEntry::read(entry)?);
        }
        Some(managed)
    }

    /// Does the object reset its ownership, with no entries or an empty one?
    pub(super) fn resets_ownership(object: &Value) -> bool {
        let is_empty = |field: &Value| matches!(field, Value::Null) || field == "";
        match raw_entries(object).and_then(Value::as_array).map(Vec::as_slice) {
            Some([]) => true,
            Some([only]) => {
                only.is_null() || only.as_object().is_some_and(|entry| entry.values().all(is_empty))
            }
            _ => false,
        }
    }

    pub(super) fn put(&mut self, entry: ManagedFieldsEntry<'a>) {
        match self.entries.iter_mut().find(|one| one.is_same_manager(&entry)) {
            Some(one) => *one = entry,
            None => self.entries.push(entry),
        }
    }

    pub(super) fn take(&mut self, writer: &ManagedWriter) -> Option<ManagedFieldsEntry<'a>> {
        let place = self.entries.iter().position(|entry| entry.belongs_to(writer))?;
        Some(self.entries.remove(place))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries as they are written: appliers first, then by time and name.
    pub(crate) fn encode(mut self) -> Vec<Value> {
        self.entries.sort_by_cached_key(|entry| {
            let (manager, version) = (entry.manager.clone(), entry.api_version.clone());
            (entry.operation, entry.seconds(), manager, version, entry.subresource.clone())
        });
        self.entries.iter().map(ManagedFieldsEntry::write).collect()
    }
}

fn raw_entries(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

pub(super) fn write_to(object: &mut Value, entries: Vec<Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    if entries.is_empty() {
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            metadata.shift_remove("managedFields");
        }
        return;
    }
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(metadata) = metadata {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}
