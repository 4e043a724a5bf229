//! What an app is on one cluster.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::{AppId, ClusterName, Digest, Kind, Location, ObjectId, Questions, Revision};

/// One object as it shall be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RenderedObject {
    pub id: ObjectId,
    pub kind: Kind,
    /// Complete with labels and annotations, except `tutti.dev/hash` and `tutti.dev/revision`.
    pub body: Value,
    /// Of `body` in canonical form.
    pub hash: Digest,
    /// The template or file that it came from.
    pub source: Location,
}

/// An app rendered for one cluster, objects sorted by id.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rendered {
    pub app: AppId,
    pub cluster: ClusterName,
    /// The last commit that changed anything that this render read.
    pub revision: Revision,
    pub objects: Vec<RenderedObject>,
    /// Every patch that was tried, by its place: whether it fitted any object. One that fits none of no
    /// target is a mistake.
    #[serde(skip)]
    pub patches: BTreeMap<Location, bool>,
    /// What it asked about its cluster.
    #[serde(skip)]
    pub questions: Questions,
}

impl Rendered {
    /// Over ids and hashes of all objects.
    pub fn digest(&self) -> Digest {
        Digest::of_json(&json!(
            self.objects
                .iter()
                .map(|object| [object.id.origin(), object.hash.to_string()])
                .collect::<Vec<_>>()
        ))
    }
}
