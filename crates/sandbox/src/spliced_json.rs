//! Builds responses from the JSON text of stored objects without parsing it.
//!
//! Stored objects begin with kind and version. Text in any other form is returned unchanged.

use std::borrow::Cow;

use crate::custom;
use crate::registry::ResourceKind;
use crate::store::{StoredObject, json_text};

const METADATA_TYPE: &[u8] = br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#;

/// A whole object in the requested version.
pub(crate) fn whole_object<'t>(kind: &ResourceKind, object: &'t [u8]) -> Cow<'t, [u8]> {
    if let Some(shown) = custom::text_in_version(kind, object) {
        return Cow::Owned(shown);
    }
    if kind.is_custom() {
        return Cow::Borrowed(object);
    }
    let head = type_prefix(kind);
    let fields = fields(object);
    if object.starts_with(&head) || fields.is_none() {
        return Cow::Borrowed(object);
    }
    Cow::Owned([head.as_slice(), fields.unwrap_or_default()].concat())
}

pub(crate) fn metadata_object(object: &[u8]) -> Vec<u8> {
    [METADATA_TYPE, json_text::field(object, "metadata").unwrap_or(b"{}"), b"}"].concat()
}

/// A list of whole objects. Items of built-in kinds carry no kind of their own; custom ones do.
pub(crate) fn list(kind: &ResourceKind, metadata: &[u8], items: &[StoredObject]) -> Vec<u8> {
    let api_version = kind.api_version();
    join_list(&kind.list_kind(), &api_version, metadata, items, |object, out| {
        match fields(object).filter(|_| !kind.is_custom()) {
            Some(fields) => {
                out.push(b'{');
                out.extend_from_slice(fields);
            }
            None => out.extend_from_slice(&whole_object(kind, object)),
        }
    })
}

pub(crate) fn metadata_list(list_metadata: &[u8], items: &[StoredObject]) -> Vec<u8> {
    join_list("PartialObjectMetadataList", "meta.k8s.io/v1", list_metadata, items, |object, out| {
        out.extend_from_slice(&metadata_object(object));
    })
}

fn join_list(
    kind: &str,
    api_version: &str,
    metadata: &[u8],
    items: &[StoredObject],
    write: impl Fn(&[u8], &mut Vec<u8>),
) -> Vec<u8> {
    let mut out =
        format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":").into_bytes();
    out.extend_from_slice(metadata);
    out.extend_from_slice(b",\"items\":[");
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write(&item.text(), &mut out);
    }
    out.extend_from_slice(b"]}");
    out
}

fn type_prefix(kind: &ResourceKind) -> Vec<u8> {
    format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", kind.kind, kind.api_version()).into_bytes()
}

/// The text after the type of an object; `None` when it does not begin with its type.
fn fields(object: &[u8]) -> Option<&[u8]> {
    let kind = json_text::field(object, "kind")?;
    let after_kind = object.strip_prefix(b"{\"kind\":")?.get(kind.len()..)?;
    let version = after_kind.strip_prefix(b",\"apiVersion\":")?;
    let length = json_text::field(object, "apiVersion")?.len();
    version.get(length..)?.strip_prefix(b",")
}
