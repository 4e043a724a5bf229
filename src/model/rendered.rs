//! What an app is on one cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{AppId, ClusterName, Digest, Kind, Location, ObjectId, Revision};

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
    /// Shared by all clusters that the app renders to the same for.
    #[serde(serialize_with = "serialize_objects")]
    pub objects: Arc<[RenderedObject]>,
    /// Every patch that was tried, by its place: whether it fitted any object. One that fits none of no
    /// target is a mistake.
    #[serde(skip)]
    pub patches: Arc<BTreeMap<Location, bool>>,
}

fn serialize_objects<S: Serializer>(objects: &[RenderedObject], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(objects)
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
