//! The parts that all versions share: the server reports their errors once, at the spec itself.

use serde_json::{Map, Value};

use crate::custom::schema::list;

/// The parts of a definition's versions, each with the place where it stands alone.
pub(super) const SCHEMA: (&str, &str) = ("schema", "validation");
pub(super) const SUBRESOURCES: (&str, &str) = ("subresources", "subresources");
pub(super) const COLUMNS: (&str, &str) = ("additionalPrinterColumns", "additionalPrinterColumns");
pub(super) const SELECTABLE: (&str, &str) = ("selectableFields", "selectableFields");

/// The part when all versions have the same.
pub(super) fn shared_part<'d>(definition: &'d Value, (part, _): (&str, &str)) -> Option<&'d Value> {
    let versions = list(&definition["spec"], "versions");
    let first = versions.first()?.get(part).filter(|one| !one.is_null())?;
    versions.iter().all(|version| version.get(part) == Some(first)).then_some(first)
}

/// A part of one version when it is its own.
pub(super) fn own_part<'d>(definition: &Value, version: &'d Value, part: (&str, &str)) -> Option<&'d Value> {
    let own = version.get(part.0).filter(|one| !one.is_null())?;
    shared_part(definition, part).is_none().then_some(own)
}

/// The versions as the older form writes them, for messages.
pub(super) fn versions_shown(definition: &Value) -> Value {
    let fields = [
        ("Name", "name", Value::from("")),
        ("Served", "served", Value::Bool(false)),
        ("Storage", "storage", Value::Bool(false)),
        ("Deprecated", "deprecated", Value::Bool(false)),
        ("DeprecationWarning", "deprecationWarning", Value::Null),
    ];
    let parts = [
        ("Schema", SCHEMA),
        ("Subresources", SUBRESOURCES),
        ("AdditionalPrinterColumns", COLUMNS),
        ("SelectableFields", SELECTABLE),
    ];
    let shown = list(&definition["spec"], "versions").iter().map(|version| {
        let mut row = Map::new();
        for (shown, name, none) in &fields {
            row.insert((*shown).to_owned(), version.get(name).cloned().unwrap_or_else(|| none.clone()));
        }
        for (shown, part) in parts {
            row.insert(shown.to_owned(), own_part(definition, version, part).cloned().unwrap_or_default());
        }
        Value::Object(row)
    });
    Value::Array(shown.collect())
}
