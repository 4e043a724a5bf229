//! `metadata.managedFields`: one entry for each (manager, operation, version, subresource).

use serde_json::{Value, json};

use super::fieldset::FieldSet;
use crate::object;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn text(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Who writes, and through which door.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Writer {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    pub(crate) api_version: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: Option<String>,
    pub(super) fields: FieldSet,
}

impl Entry {
    /// An applier is the same whatever version it applies; an updater is not.
    pub(super) fn is_of(&self, writer: &Writer) -> bool {
        self.manager == writer.manager
            && self.operation == writer.operation
            && self.subresource == writer.subresource
            && (self.operation == Operation::Apply || self.api_version == writer.api_version)
    }

    /// As conflict messages name the manager.
    pub(super) fn describe(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

/// Update entries beyond this are joined into one, as the server caps them.
const MOST_UPDATERS: usize = 10;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ManagedFields {
    pub(super) entries: Vec<Entry>,
}

impl ManagedFields {
    /// The entries of an object; `None` when there are none or they cannot be read.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        let entries = object::at(value, &["metadata", "managedFields"])?.as_array()?;
        if entries.is_empty() {
            return None;
        }
        // one empty entry is how a client resets ownership
        if let [only] = entries.as_slice()
            && only.as_object().is_some_and(serde_json::Map::is_empty)
        {
            return Some(Self::default());
        }
        let entries = entries.iter().map(read_entry).collect::<Option<Vec<_>>>()?;
        Some(Self { entries })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Gives a writer its fields, or takes its entry away when there are none left. The time is that
    /// of the last write that changed the object; taking shared fields is no such write.
    pub(super) fn assign(&mut self, writer: &Writer, fields: FieldSet, time: Option<&str>) {
        let place = self.entries.iter().position(|entry| entry.is_of(writer));
        if fields.is_empty() {
            if let Some(place) = place {
                self.entries.remove(place);
            }
            return;
        }
        let time = time.map(str::to_owned);
        match place {
            Some(place) => {
                let entry = &mut self.entries[place];
                if time.is_some() {
                    entry.time = time;
                }
                entry.api_version.clone_from(&writer.api_version);
                entry.fields = fields;
            }
            None => self.entries.push(Entry {
                manager: writer.manager.clone(),
                operation: writer.operation,
                api_version: writer.api_version.clone(),
                subresource: writer.subresource.clone(),
                time,
                fields,
            }),
        }
    }

    pub(super) fn drop_empty(&mut self) {
        self.entries.retain(|entry| !entry.fields.is_empty());
    }

    /// Writes the entries into the object: appliers first, then by time and name.
    pub(crate) fn write_to(mut self, value: &mut Value) {
        self.cap_updaters();
        self.entries.sort_by(|left, right| order(left).cmp(&order(right)));
        if self.entries.is_empty() {
            object::take(value, &["metadata", "managedFields"]);
            return;
        }
        let entries: Vec<Value> = self.entries.iter().map(write_entry).collect();
        object::set(value, &["metadata", "managedFields"], entries);
    }

    fn cap_updaters(&mut self) {
        let updaters = |entries: &[Entry]| {
            entries
                .iter()
                .filter(|entry| entry.operation == Operation::Update && entry.subresource.is_empty())
                .count()
        };
        while updaters(&self.entries) > MOST_UPDATERS {
            let oldest = self
                .entries
                .iter()
                .enumerate()
                .filter(|(_, entry)| entry.operation == Operation::Update && entry.subresource.is_empty())
                .min_by(|(_, left), (_, right)| left.time.cmp(&right.time))
                .map(|(place, _)| place);
            let Some(place) = oldest else { return };
            let entry = self.entries.remove(place);
            let merged = self
                .entries
                .iter_mut()
                .find(|one| one.manager == "ancient-changes" && one.api_version == entry.api_version);
            match merged {
                Some(ancient) => {
                    ancient.fields = ancient.fields.union(&entry.fields);
                    ancient.time = entry.time;
                }
                None => self.entries.push(Entry { manager: "ancient-changes".to_owned(), ..entry }),
            }
        }
    }
}

fn order(entry: &Entry) -> (Operation, &Option<String>, &str, &str, &str) {
    (entry.operation, &entry.time, &entry.manager, &entry.api_version, &entry.subresource)
}

fn read_entry(entry: &Value) -> Option<Entry> {
    let text = |field: &str| entry[field].as_str().unwrap_or("").to_owned();
    let operation = match entry["operation"].as_str()? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return None,
    };
    let fields = match entry.get("fieldsV1") {
        Some(fields) => FieldSet::decode(fields)?,
        None => FieldSet::default(),
    };
    Some(Entry {
        manager: text("manager"),
        operation,
        api_version: text("apiVersion"),
        subresource: text("subresource"),
        time: entry["time"].as_str().map(str::to_owned),
        fields,
    })
}

fn write_entry(entry: &Entry) -> Value {
    let mut out = json!({
        "manager": entry.manager,
        "operation": entry.operation.text(),
        "apiVersion": entry.api_version,
    });
    if let Some(time) = &entry.time {
        out["time"] = json!(time);
    }
    out["fieldsType"] = json!("FieldsV1");
    out["fieldsV1"] = entry.fields.encode();
    if !entry.subresource.is_empty() {
        out["subresource"] = json!(entry.subresource);
    }
    out
}
