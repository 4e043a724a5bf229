//! Conversions and their rules.

use crate::manifest::kinds::ManifestKind;
use crate::model::Location;

/// The path part of a rule that enters a list.
pub const LIST_ITEMS: &str = "[]";

/// The differences between versions of one kind and the hub version.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    pub name: String,
    pub kind: ManifestKind,
    /// apiVersions; none of them is the native one.
    pub versions: Vec<String>,
    pub rules: Vec<ConversionRule>,
    pub location: Location,
}

/// One field that differs in a version.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversionRule {
    /// In the names of the version; [`LIST_ITEMS`] steps into a list.
    pub field: Vec<String>,
    pub action: ConversionAction,
    pub location: Location,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversionAction {
    /// The field's last name in the hub.
    Rename(String),
    /// Texts of the version, each with the hub's.
    Values(Vec<(String, String)>),
    /// The version has no such field.
    Absent,
}

/// `spec.clusters[].name` in parts; `None` when it is no path.
pub fn parse_field(text: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    for mut part in text.split('.') {
        let mut steps = 0;
        while let Some(rest) = part.strip_suffix(LIST_ITEMS) {
            part = rest;
            steps += 1;
        }
        if part.is_empty() || part.contains(['[', ']', ' ']) {
            return None;
        }
        parts.push(part.to_owned());
        parts.extend(std::iter::repeat_n(LIST_ITEMS.to_owned(), steps));
    }
    Some(parts)
}
