//! The version in a pin file, and its change.

use crate::manifest::yaml::{self, YamlNode};
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
    root.get("version").and_then(YamlNode::scalar_text).map(str::to_owned)
}
