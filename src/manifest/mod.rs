//! Parses the manifests of the config repository into the types of [`crate::model`].
//!
//! [`read()`] returns all valid manifests of a snapshot, and every mistake with its location, its path in the document and its scope. A
//! manifest with a mistake is not among the results. `fleet` checks what spans files: references, and two manifests of one identity.
//!
//! - [`yaml`] parses text into nodes with positions, as kubectl does;
//! - [`mod@read`] takes fields out of nodes and collects mistakes;
//! - [`kinds`] has one reader per kind of manifest, and a table of all kinds, including planned ones;
//! - [`hub`] converts the versions of a kind to one;
//! - [`schema`] has the JSON Schemas for editors;
//! - [`find`] decides which files may hold manifests;
//! - `possible_kinds` guesses which kinds an unreadable document may contain, and `unreadable` decides what it blocks.
//!
//! The module reads no file, clock or cluster. An unknown or planned field, kind or value is a mistake.

pub mod codes;
mod collect;
pub mod find;
pub mod hub;
mod ignored_files;
pub mod kinds;
mod manifests;
mod possible_kinds;
pub mod read;
pub mod schema;
#[cfg(test)]
mod tests;
mod unreadable;
pub mod yaml;

pub use collect::{ManifestCache, clusters_in, has_manifest_of, read, read_incremental};
pub use find::{is_below_apps, usual_kind_at};
pub use ignored_files::{INSTANCE_FILE, IgnoredFiles};
pub use kinds::approval::{rollout_to_yaml as rollout_approval_to_yaml, to_yaml as approval_to_yaml};
pub use kinds::conversion::FOLDER as CONVERSIONS;
pub use kinds::health_rule::{self, HealthRule};
pub use kinds::objects::listed_beside;
pub use kinds::pin::PinManifest;
pub use kinds::{ManifestKind, OWN_VERSION};
pub use manifests::{Manifests, PlainObject, RouteManifest, UnreadableKinds};
