//! Converts stored objects to the version that a client requested.

use serde_json::Value;

use super::fill;
use crate::registry::ResourceKind;
use crate::store::{ParsedObject, json_text};

/// The object in the version of `kind`: converted by name only (strategy `None`), without what the
/// version does not know and with its defaults.
pub(crate) fn in_version(kind: &ResourceKind, stored: &ParsedObject) -> ParsedObject {
    let (Some(schema), Some(declared)) = (&kind.schema, &kind.definition) else { return stored.clone() };
    if declared.has_no_defaults && stored["apiVersion"] == declared.api_version {
        return stored.clone();
    }
    let mut shown = (**stored).clone();
    shown["apiVersion"] = Value::from(declared.api_version.as_str());
    fill(schema, &mut shown);
    if shown == **stored { stored.clone() } else { shown.into() }
}

/// The text of a stored object in the version of `kind`; `None` when it is shown as it is stored.
pub(crate) fn text_in_version(kind: &ResourceKind, stored: &[u8]) -> Option<Vec<u8>> {
    let declared = kind.definition.as_ref()?;
    let version = json_text::field(stored, "apiVersion").unwrap_or_default();
    let same = version.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    if declared.has_no_defaults && same == Some(declared.api_version.as_bytes()) {
        return None;
    }
    let object: ParsedObject = serde_json::from_slice::<Value>(stored).ok()?.into();
    serde_json::to_vec(&*in_version(kind, &object)).ok()
}

/// Do all clients of the resource see the same text of an object?
pub(crate) fn has_single_view(kind: &ResourceKind) -> bool {
    kind.definition.as_ref().is_none_or(|declared| declared.has_no_defaults && declared.is_only_version)
}
