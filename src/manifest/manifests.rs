//! The content of all manifests of a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::kinds::ManifestKind;
use super::kinds::pin::PinManifest;
use crate::model::{
    AdmissionBinding, AdmissionPolicy, Analysis, App, AppId, Approval, ApprovalRule, Approvers, Cluster,
    Diagnostic, DiagnosticScope, GroupVersionKind, Instance, InventoryServer, Location, Notification,
    ParamObject, Policy, Rings, RolloutApproval, Route, Trigger, Window,
};

/// The unreadable locations that may hold each kind: the usual path, else the first.
pub type UnreadableKinds = BTreeMap<ManifestKind, Location>;

/// All manifests of one snapshot, in the order of the files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifests {
    /// `None`: it is missing or has mistakes.
    pub instance: Option<Instance>,
    pub clusters: Vec<Cluster>,
    /// `None`: there is none, or it has mistakes.
    pub rings: Option<Rings>,
    pub apps: Vec<Arc<App>>,
    /// Approvals for objects that are no longer rendered.
    pub approvals: Vec<Approval>,
    pub rollout_approvals: Vec<RolloutApproval>,
    pub routes: Vec<RouteManifest>,
    pub pins: Vec<PinManifest>,
    pub triggers: Vec<Arc<Trigger>>,
    pub notifications: Vec<Arc<Notification>>,
    pub servers: Vec<Arc<InventoryServer>>,
    /// Includes those with a mistake, as do admission policies and bindings: such a policy denies everything that it matches, as far as its
    /// matching could be read.
    pub policies: Vec<Arc<Policy>>,
    pub admission_policies: Vec<AdmissionPolicy>,
    pub admission_bindings: Vec<AdmissionBinding>,
    /// Other objects below `policies/`.
    pub policy_params: Vec<ParamObject>,
    /// Includes those with a mistake: such a window is always in effect and selects everything.
    pub windows: Vec<Arc<Window>>,
    /// Includes those with a mistake, without their spec.
    pub analyses: Vec<Arc<Analysis>>,
    /// Includes those with a mistake: such a rule selects everything, and no approval satisfies it.
    pub approval_rules: Vec<Arc<ApprovalRule>>,
    /// Includes those with a mistake, without people.
    pub approvers: Vec<Approvers>,
    /// An unreadable file may contain Approvers.
    pub may_lack_approvers: bool,
    /// Apps and clusters whose manifest has mistakes.
    pub invalid: Vec<(DiagnosticScope, Location)>,
    /// Projects with mistakes, each with its namespace as far as it is known.
    pub invalid_projects: Vec<(AppId, String, Location)>,
    /// Unreadable documents that may be an Instance, Rings or a Project.
    pub unreadable: UnreadableKinds,
    /// Folders below `apps/`, each with its final `/`, in which an unreadable document may be the project of the apps there.
    pub unreadable_below_apps: BTreeMap<String, Location>,
    pub plain_objects: Vec<PlainObject>,
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

/// A Kubernetes object that is no manifest of tutti: an Objects app should list its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainObject {
    pub file: String,
    pub location: Location,
    pub kind: GroupVersionKind,
    /// The mistake when no app lists it and its kind is a planned manifest.
    pub not_yet: Option<Diagnostic>,
}
