//! Converts every version of a kind to the hub version, which is the native one. Readers know only that version.
//!
//! The differences of a foreign version are data: a [`Conversion`] has rules, each about one field (another name, other values, or
//! absent). tutti ships those of the systems that it replaces. A config repository adds its own, or replaces a shipped one of the same
//! name, under `plugins/conversion/<name>/<revision>/`. A version that a conversion names is accepted.
//!
//! Conversion changes the nodes of a document in place, so every value keeps its position and mistakes point to the written line. A
//! field that a version does not have is refused by name, so a conversion there and back gives the same document. No field is dropped.

mod conversions;
mod convert;
pub mod migrate;
pub mod rules;
#[cfg(test)]
mod tests;

use super::codes;
use super::kinds::{ManifestKind, OWN_VERSION};
use super::read::ReadContext;
use super::yaml::{YamlNode, YamlNodeKind};
use crate::model::{Diagnostic, Location, Snapshot};
use convert::ConversionDirection;
use rules::ConversionRule;

pub use rules::{Conversion, LIST_ITEMS};

/// The conversions of one config repository.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hub {
    conversions: Vec<Conversion>,
    /// A conversion that could not be read: its effect on any document is unknown.
    broken: Option<Location>,
}

impl Hub {
    /// The shipped conversions and those of the snapshot, with the mistakes in them.
    pub fn of(snapshot: &Snapshot) -> (Self, Vec<Diagnostic>) {
        let (conversions, broken, mistakes) = conversions::read(snapshot);
        (Self { conversions, broken }, mistakes)
    }

    /// The foreign versions of a kind, in the order of their conversions.
    pub fn versions(&self, kind: ManifestKind) -> Vec<&str> {
        let mut versions: Vec<&str> = Vec::new();
        for conversion in self.conversions.iter().filter(|conversion| conversion.kind == kind) {
            for version in &conversion.versions {
                if !versions.contains(&version.as_str()) {
                    versions.push(version);
                }
            }
        }
        versions
    }

    /// Every foreign version with its kind.
    pub fn foreign_versions(&self) -> impl Iterator<Item = (&str, ManifestKind)> {
        self.conversions.iter().flat_map(|conversion| {
            conversion.versions.iter().map(|version| (version.as_str(), conversion.kind))
        })
    }

    /// Converts a document from the version that it names to the hub version.
    pub fn to_hub(&self, kind: ManifestKind, root: &mut YamlNode, reading: &mut ReadContext<'_>) {
        let Some(version) = version_of(root).map(ToOwned::to_owned) else { return };
        if version == OWN_VERSION {
            return;
        }
        if let Some(broken) = &self.broken {
            let place = root
                .entry("apiVersion")
                .map_or_else(|| reading.location(root), |entry| reading.location(&entry.value));
            let message = format!("{version} cannot be read: a conversion has an error");
            reading
                .mistake(codes::BAD_CONVERSION, message, place, "apiVersion")
                .related(broken.clone(), "this one")
                .help("fix the conversion; apps in the native version are not affected");
        }
        self.convert(kind, &version, ConversionDirection::ToHub, root, reading);
        set_version(root, OWN_VERSION);
    }

    /// Converts a document from the hub version to another one. A field that the other one does not have is a mistake.
    pub fn to_version(
        &self,
        kind: ManifestKind,
        version: &str,
        root: &mut YamlNode,
        reading: &mut ReadContext<'_>,
    ) {
        self.convert(kind, version, ConversionDirection::FromHub, root, reading);
        set_version(root, version);
    }

    fn convert(
        &self,
        kind: ManifestKind,
        version: &str,
        direction: ConversionDirection,
        root: &mut YamlNode,
        reading: &mut ReadContext<'_>,
    ) {
        let rules: Vec<&ConversionRule> = self
            .conversions
            .iter()
            .filter(|conversion| {
                conversion.kind == kind && conversion.versions.iter().any(|known| known == version)
            })
            .flat_map(|conversion| &conversion.rules)
            .collect();
        if !rules.is_empty() {
            convert::convert_document(root, &rules, version, direction, reading);
        }
    }
}

/// The apiVersion that a document names.
pub fn version_of(root: &YamlNode) -> Option<&str> {
    root.get("apiVersion").and_then(YamlNode::as_str)
}

fn set_version(root: &mut YamlNode, version: &str) {
    if let YamlNodeKind::Map(entries) = &mut root.kind
        && let Some(entry) = entries.iter_mut().find(|entry| entry.key == "apiVersion")
    {
        entry.value.kind = YamlNodeKind::String(version.to_owned());
    }
}
