//! The manifests of the config repository: YAML text to the nouns of [`crate::model`].
//!
//! [`read()`] takes a snapshot and gives everything that could be read of it, with every mistake at once,
//! each with its place, its path in the document and its scope. A manifest with a mistake is not among
//! the results: what is there is valid in itself. What belongs together across files (references, two
//! manifests of one identity) is checked by `fleet`.
//!
//! - [`yaml`] reads text into nodes with positions, as kubectl reads it;
//! - [`mod@read`] takes fields out of nodes and collects mistakes;
//! - [`kinds`] has one reader per kind of manifest, and knows the kinds that come later;
//! - [`hub`] makes one version of the many that a kind may be written in;
//! - [`schema`] tells editors what the readers read;
//! - [`find`] says which files may hold manifests;
//! - `meant` says who waits for a document of which it is not known what it is.
//!
//! Needs a snapshot, nothing else. Never reads a file, a clock or a cluster, and never guesses: a field,
//! kind or value that is unknown or not built yet is a mistake.

pub mod codes;
mod collect;
pub mod find;
pub mod hub;
mod ignored;
pub mod kinds;
mod meant;
pub mod read;
pub mod schema;
#[cfg(test)]
mod tests;
pub mod yaml;

pub use collect::{Memory, claims, clusters_in, read, read_again};
pub use ignored::{FILE as IGNORING, Ignored};
pub use kinds::Native;
pub use kinds::approval::{rollout_to_yaml as rollout_approval_to_yaml, to_yaml as approval_to_yaml};
pub use kinds::conversion::FOLDER as CONVERSIONS;
pub use kinds::health_rule::{self, HealthRule};
pub use kinds::objects::listed_beside;
pub use kinds::pin::PinManifest;
pub use meant::{Lost, by_path as usual_at, is_below_apps};

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{
    AdmissionBinding, AdmissionPolicy, Analysis, App, AppId, Approval, ApprovalRule, Approvers, Cluster,
    Diagnostic, Instance, Kind, Location, Notification, ParamObject, Policy, Rings, RolloutApproval, Route,
    Scope, Server, Trigger, Window,
};

/// The apiVersion of every native kind, and the hub's.
pub const OWN_VERSION: &str = "tutti.dev/v1alpha1";

/// Everything that was read of one snapshot, in the order of the files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifests {
    /// `None`: there is none, or it has mistakes.
    pub instance: Option<Instance>,
    pub clusters: Vec<Cluster>,
    /// `None`: there is none, or it has mistakes.
    pub rings: Option<Rings>,
    pub apps: Vec<Arc<App>>,
    /// Of objects that are no longer rendered.
    pub approvals: Vec<Approval>,
    pub rollout_approvals: Vec<RolloutApproval>,
    pub routes: Vec<RouteManifest>,
    pub pins: Vec<PinManifest>,
    pub triggers: Vec<Arc<Trigger>>,
    pub notifications: Vec<Arc<Notification>>,
    pub servers: Vec<Arc<Server>>,
    /// One with a mistake is among them, and so are admission policies and bindings with one: it denies all that it matches, as far as
    /// that could be read.
    pub policies: Vec<Arc<Policy>>,
    pub admission_policies: Vec<AdmissionPolicy>,
    pub admission_bindings: Vec<AdmissionBinding>,
    /// Other objects below `policies/`.
    pub policy_params: Vec<ParamObject>,
    /// One with a mistake is among them: it lasts, and selects everything.
    pub windows: Vec<Arc<Window>>,
    /// One with a mistake is among them, without its spec.
    pub analyses: Vec<Arc<Analysis>>,
    /// One with a mistake is among them: it selects everything, and nothing is enough for it.
    pub approval_rules: Vec<Arc<ApprovalRule>>,
    /// One with a mistake is among them, without people.
    pub approvers: Vec<Approvers>,
    /// A file that cannot be read has some.
    pub may_lack_approvers: bool,
    /// Apps and clusters whose manifest has mistakes.
    pub unread: Vec<(Scope, Location)>,
    /// Projects with mistakes, each with its namespace as far as that can be told.
    pub unread_projects: Vec<(AppId, String, Location)>,
    /// What cannot be read at all, and may be what others depend on.
    pub lost: Lost,
    /// Folders below `apps/`, each with its final `/`, where something that cannot be read may be the project of the apps there.
    pub lost_below_apps: BTreeMap<String, Location>,
    pub plain: Vec<PlainDocument>,
    /// Sorted by place.
    pub diagnostics: Vec<Diagnostic>,
}

/// A route that is a manifest of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteManifest {
    /// As written.
    pub namespace: Option<String>,
    /// `None`: that of its folder.
    pub app: Option<String>,
    pub route: Route,
}

/// A Kubernetes object that is not a manifest of ours: an Objects app should name its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainDocument {
    pub file: String,
    pub location: Location,
    pub kind: Kind,
    /// What is said of it when no app lists it: its kind would be a manifest, and is not read yet.
    pub not_yet: Option<Diagnostic>,
}
