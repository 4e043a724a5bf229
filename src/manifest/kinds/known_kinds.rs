//! The table of all kinds, including planned ones.

use super::manifest_kind::{ManifestKind, OWN_VERSION as OWN};
use super::{conversion, health_rule};

#[derive(Clone, Copy)]
pub enum KindSupport {
    Supported(ManifestKind),
    InFolder(&'static str),
    PlannedApp,
    Planned,
}

/// The hub adds foreign versions of supported kinds. Source of the other rows: samples of the systems that tutti replaces.
pub const KNOWN_KINDS: &[(&[&str], &str, KindSupport)] = &[
    (&[OWN], "Instance", KindSupport::Supported(ManifestKind::Instance)),
    (&[OWN], "Cluster", KindSupport::Supported(ManifestKind::Cluster)),
    (&[OWN], "Rings", KindSupport::Supported(ManifestKind::Rings)),
    (&[OWN], "Objects", KindSupport::Supported(ManifestKind::Objects)),
    (&[OWN], "Project", KindSupport::Supported(ManifestKind::Project)),
    (&[OWN], "Route", KindSupport::Supported(ManifestKind::Route)),
    (&[OWN], "Approval", KindSupport::Supported(ManifestKind::Approval)),
    (&[OWN], "Trigger", KindSupport::Supported(ManifestKind::Trigger)),
    (&[OWN], "Notification", KindSupport::Supported(ManifestKind::Notification)),
    (&[OWN], "Server", KindSupport::Supported(ManifestKind::Server)),
    (&[OWN], "Window", KindSupport::Supported(ManifestKind::Window)),
    (&[OWN], "Analysis", KindSupport::Supported(ManifestKind::Analysis)),
    (&[OWN], "ApprovalRule", KindSupport::Supported(ManifestKind::ApprovalRule)),
    (&[OWN], "Approvers", KindSupport::Supported(ManifestKind::Approvers)),
    (&[OWN], "AppSet", KindSupport::Supported(ManifestKind::AppSet)),
    (&[OWN], "Component", KindSupport::Supported(ManifestKind::Component)),
    (&[OWN], "Conversion", KindSupport::InFolder(conversion::FOLDER)),
    (&[OWN], "HealthRule", KindSupport::InFolder(health_rule::FOLDER)),
    (&[OWN, "core.oam.dev/v1beta1"], "Application", KindSupport::PlannedApp),
    (&["core.oam.dev/v1alpha2"], "ApplicationConfiguration", KindSupport::PlannedApp),
    (&[OWN], "Middleware", KindSupport::PlannedApp),
    (&[OWN, "service.daocloud.io/v1alpha", "daocloud.io/v1alpha"], "ServiceTp", KindSupport::PlannedApp),
    (&["workload.dmall.com/v1beta1"], "AdvDeployment", KindSupport::PlannedApp),
    (&["workload.dmall.com/v1beta1"], "Cluster", KindSupport::Planned),
    (&[OWN], "Policy", KindSupport::Supported(ManifestKind::Policy)),
    (&[OWN, "core.oam.dev/v1beta1"], "ComponentDefinition", KindSupport::Planned),
    (&[OWN, "core.oam.dev/v1beta1"], "TraitDefinition", KindSupport::Planned),
    (&[OWN, "core.oam.dev/v1beta1"], "PolicyDefinition", KindSupport::Planned),
    (&[OWN, "core.oam.dev/v1beta1"], "WorkflowStepDefinition", KindSupport::Planned),
    (&[OWN, "core.oam.dev/v1beta1"], "ResourceAddonDefinition", KindSupport::Planned),
];

/// All kinds, including planned ones.
pub fn kind_names() -> Vec<&'static str> {
    KNOWN_KINDS.iter().map(|(_, kind, _)| *kind).collect()
}

/// `tutti.dev` of `tutti.dev/v1alpha1`.
pub fn group_of(version: &str) -> &str {
    version.split('/').next().unwrap_or(version)
}
