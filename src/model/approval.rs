//! Kind Approval: a person approves deletes above the cap, orphaned objects, or a step of a rollout.

use serde::Serialize;
use serde_json::json;

use super::{AppId, ClusterName, Digest, Location, ObjectId, Revision};

/// A file at the last commit of the deployed branch that changed it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileVersion {
    pub commit: Revision,
    /// From the root of the repository.
    pub path: String,
    pub content: Digest,
}

/// One object that may be deleted. The uid excludes a later object of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ApprovedObject {
    pub cluster: ClusterName,
    /// With its version in front, for people: `v1/ConfigMap/infra/old`.
    #[serde(skip)]
    pub id: ObjectId,
    pub uid: String,
}

/// The approved action on objects that are no longer rendered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovedAction {
    #[default]
    Delete,
    /// The objects stay unchanged, and tutti no longer manages them.
    Orphan,
}

/// Approves any subset of its list while the app renders to `rendered`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approval {
    pub name: String,
    pub app: AppId,
    pub action: ApprovedAction,
    /// Hash of the app as rendered on all its clusters; another render voids the approval. Not asked of one that deletes
    /// nothing.
    pub rendered: Digest,
    /// Sorted. Empty for all objects that are orphaned.
    pub objects: Vec<ApprovedObject>,
    #[serde(skip)]
    pub location: Option<Location>,
    /// No other document is in its file.
    #[serde(skip)]
    pub is_alone: bool,
}

impl Approval {
    /// The digest that `tutti approve` is given: over everything but the file's name. It names no
    /// revision, so that committing the file does not void it.
    pub fn digest(&self) -> Digest {
        let objects: Vec<_> = self
            .objects
            .iter()
            .map(|object| json!({"cluster": object.cluster.as_str(), "id": object.id.origin(), "uid": object.uid}))
            .collect();
        Digest::of_json(&json!({
            "app": self.app.to_string(), "action": "delete", "rendered": self.rendered.to_string(), "objects": objects,
        }))
    }
}

/// What is approved of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RolloutAction {
    /// Waves may open, up to and with this one.
    Open { through: String },
    /// A digest that was refused starts again.
    Retry,
    /// A window does not hold it.
    Override { window: String },
}

/// Approves a rollout of one version of an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RolloutApproval {
    pub name: String,
    pub app: AppId,
    pub action: RolloutAction,
    /// Of the contents of all units of the app: another version needs another approval.
    pub digest: Digest,
    #[serde(skip)]
    pub location: Option<Location>,
    /// No other document is in its file.
    #[serde(skip)]
    pub is_alone: bool,
    #[serde(skip)]
    pub places: RolloutApprovalLocations,
}

/// Where the fields of an Approval stand that was read from a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolloutApprovalLocations {
    pub app: Option<Location>,
    pub digest: Option<Location>,
    pub through: Option<Location>,
    pub window: Option<Location>,
}
