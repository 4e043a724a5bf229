//! A pin, `apps/<app>/pins/<ring>.yaml`: the version that the app of that folder has on the clusters of a ring.
//!
//! It is found by its folder, and holds `version: v3` and nothing else: who it is for stands in its path.

use super::super::read::{ManifestFields, ManifestValue, ReadContext};
use super::super::yaml::YamlNode;
use crate::model::Location;

/// A pin as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinManifest {
    /// Of the app, with a final `/`.
    pub folder: String,
    pub ring: String,
    /// `None`: it has mistakes, and what it says is not known.
    pub version: Option<String>,
    /// Of the version.
    pub location: Location,
}

/// The folder of its app and its ring; `None` when the path is none of a pin.
pub fn parts(path: &str) -> Option<(String, String)> {
    let (above, file) = path.rsplit_once('/')?;
    let folder = above.strip_suffix("pins")?;
    let ring = file.strip_suffix(".yaml").or_else(|| file.strip_suffix(".yml"))?;
    Some((folder.to_owned(), ring.to_owned()))
}

pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<(String, Location)> {
    let mut fields = ManifestFields::of(&ManifestValue::root(root), reading)?;
    let version = fields.required("version", reading);
    let location = version.as_ref().map(|version| reading.location(version.node));
    let version = version.and_then(|version| reading.label_value(&version));
    fields.finish(reading);
    Some((version?, location?))
}
