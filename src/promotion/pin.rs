//! The version in a pin file, and its change.

use crate::manifest::yaml::{self, YamlNode, YamlNodeKind};
use crate::model::AppId;

/// A new version of one pin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PinChange {
    pub app: AppId,
    /// Its path in the config repository.
    pub file: String,
    /// `None`: there is no pin yet.
    pub from: Option<String>,
    pub to: String,
}

/// `1.7.3 → 1.8.0`.
pub(super) fn version_change(pin: &PinChange) -> String {
    match &pin.from {
        Some(from) => format!("{from} → {}", pin.to),
        None => pin.to.clone(),
    }
}

/// The version in the text of a pin file.
pub fn pin_version(text: &str) -> Option<String> {
    let (documents, mistakes) = yaml::parse("", text);
    let root = &documents.first().filter(|_| mistakes.is_empty())?.root;
    root.get("version").and_then(scalar_text)
}

/// The text of a scalar as it is written.
pub(super) fn scalar_text(node: &YamlNode) -> Option<String> {
    match &node.kind {
        YamlNodeKind::String(text) => Some(text.clone()),
        YamlNodeKind::Bool(_, text) | YamlNodeKind::Int(_, text) | YamlNodeKind::Float(_, text) => {
            Some(text.to_string())
        }
        YamlNodeKind::Null | YamlNodeKind::Seq(_) | YamlNodeKind::Map(_) => None,
    }
}
