//! The kinds of manifests that are read.

use super::{analysis, approval_rule, notification, policy, server, trigger, window};

/// The apiVersion of every native kind, and the hub's.
pub const OWN_VERSION: &str = "tutti.dev/v1alpha1";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ManifestKind {
    Instance,
    Cluster,
    Rings,
    AppSet,
    Component,
    Objects,
    Project,
    Route,
    Approval,
    Trigger,
    Notification,
    Server,
    Policy,
    Window,
    Analysis,
    ApprovalRule,
    Approvers,
}

impl ManifestKind {
    /// Whether a config repository may have only one.
    pub fn is_singleton(self) -> bool {
        matches!(self, Self::Instance | Self::Rings)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Instance => "Instance",
            Self::Cluster => "Cluster",
            Self::Rings => "Rings",
            Self::AppSet => "AppSet",
            Self::Component => "Component",
            Self::Project => "Project",
            Self::Objects => "Objects",
            Self::Route => "Route",
            Self::Approval => "Approval",
            Self::Trigger => "Trigger",
            Self::Notification => "Notification",
            Self::Server => "Server",
            Self::Policy => "Policy",
            Self::Window => "Window",
            Self::Analysis => "Analysis",
            Self::ApprovalRule => "ApprovalRule",
            Self::Approvers => "Approvers",
        }
    }

    /// The only folder that it is read from, so that write access to the folder controls it.
    pub fn folder(self) -> Option<&'static str> {
        match self {
            Self::Trigger => Some(trigger::FOLDER),
            Self::Notification => Some(notification::FOLDER),
            Self::Server => Some(server::FOLDER),
            Self::Policy => Some(policy::FOLDER),
            Self::Window => Some(window::FOLDER),
            Self::Analysis => Some(analysis::FOLDER),
            Self::ApprovalRule | Self::Approvers => Some(approval_rule::FOLDER),
            _ => None,
        }
    }
}
