//! The hub: every version of a kind is converted to one, and readers know that one only.
//!
//! The hub's version is the native one. What a foreign version says otherwise is data: a [`Conversion`] has
//! rules, each about one field (another name, other words, or not there at all). The program brings those
//! of the systems that it replaces; a config repository adds its own, or replaces a shipped one of the same
//! name, under `plugins/conversion/<name>/<revision>/`. A version that a conversion names is accepted.
//!
//! Conversion works on the nodes of a document in place, so every value keeps its position and a mistake in
//! it points to the line as written. It is pure. What a version cannot say is refused, and the field named:
//! there and back is therefore always the same document.
//!
//! Never guesses, never drops a field, never reads a file; forms that are more than other names of the same
//! fields (Application, Middleware) have readers of their own, when they come.

mod convert;
pub mod rules;
#[cfg(test)]
mod tests;

use super::kinds::Native;
use super::read::Reading;
use super::yaml::{Node, NodeKind};
use super::{OWN_VERSION, codes};
use crate::model::{Diagnostic, Location, Snapshot};
use convert::Direction;

pub use convert::ITEMS;
pub use rules::Conversion;
use rules::Rule;

/// The conversions of one config repository.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hub {
    conversions: Vec<Conversion>,
    /// A conversion that could not be read: what it says of any document is unknown.
    broken: Option<Location>,
}

impl Hub {
    /// The shipped conversions and those of the snapshot, with the mistakes in them.
    pub fn of(snapshot: &Snapshot) -> (Self, Vec<Diagnostic>) {
        rules::read(snapshot)
    }

    /// The foreign versions of a kind, in the order of their conversions.
    pub fn versions(&self, kind: Native) -> Vec<&str> {
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
    pub fn accepted(&self) -> impl Iterator<Item = (&str, Native)> {
        self.conversions.iter().flat_map(|conversion| {
            conversion.versions.iter().map(|version| (version.as_str(), conversion.kind))
        })
    }

    /// Makes of a document what it is in the hub; the version is the one that it names.
    pub fn to_hub(&self, kind: Native, root: &mut Node, reading: &mut Reading<'_>) {
        let Some(version) = version_of(root).map(ToOwned::to_owned) else { return };
        if version == OWN_VERSION {
            return;
        }
        if let Some(broken) = &self.broken {
            let place = root
                .entry("apiVersion")
                .map_or_else(|| reading.location(root), |entry| reading.location(&entry.value));
            let message = format!("how {version} is read is not known: a conversion has a mistake");
            reading
                .mistake(codes::BAD_CONVERSION, message, place, "apiVersion")
                .related(broken.clone(), "this one")
                .help("mend the conversion; apps in the native version are not held up by it");
        }
        self.convert(kind, &version, Direction::ToHub, root, reading);
        set_version(root, OWN_VERSION);
    }

    /// Makes of a document in the hub's version one in another. What it cannot say is a mistake.
    pub fn to_version(&self, kind: Native, version: &str, root: &mut Node, reading: &mut Reading<'_>) {
        self.convert(kind, version, Direction::FromHub, root, reading);
        set_version(root, version);
    }

    fn convert(
        &self,
        kind: Native,
        version: &str,
        direction: Direction,
        root: &mut Node,
        reading: &mut Reading<'_>,
    ) {
        let rules: Vec<&Rule> = self
            .conversions
            .iter()
            .filter(|conversion| {
                conversion.kind == kind && conversion.versions.iter().any(|known| known == version)
            })
            .flat_map(|conversion| &conversion.rules)
            .collect();
        if !rules.is_empty() {
            convert::document(root, &rules, version, direction, reading);
        }
    }
}

/// The apiVersion that a document names.
pub fn version_of(root: &Node) -> Option<&str> {
    root.get("apiVersion").and_then(Node::as_str)
}

fn set_version(root: &mut Node, version: &str) {
    if let NodeKind::Map(entries) = &mut root.kind
        && let Some(entry) = entries.iter_mut().find(|entry| entry.key == "apiVersion")
    {
        entry.value.kind = NodeKind::String(version.to_owned());
    }
}
