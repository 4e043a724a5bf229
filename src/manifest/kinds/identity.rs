//! Identifies a document by its apiVersion and kind.

use super::super::hub::Hub;
use super::super::read::{ReadContext, likely_typo_of, suggest};
use super::super::yaml::YamlNode;
use super::super::{OWN_VERSION as OWN, codes, unreadable};
use super::{
    analysis, approval_rule, conversion, health_rule, notification, policy, server, trigger, window,
};
use crate::model::Location;

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentIdentity {
    Native(ManifestKind),
    /// Read from its folder by another module.
    InFolder {
        kind: &'static str,
        folder: &'static str,
    },
    /// Planned. `deploys`: it would be an app. `foreign`: of a foreign group, so an Objects app may apply it as an object.
    Planned {
        api_version: String,
        kind: String,
        deploys: bool,
        foreign: bool,
    },
    /// Another Kubernetes object.
    PlainObject {
        api_version: String,
        kind: String,
    },
}

#[derive(Clone, Copy)]
enum KindSupport {
    Supported(ManifestKind),
    InFolder(&'static str),
    PlannedApp,
    Planned,
}

/// The hub adds foreign versions of supported kinds. Source of the other rows: samples of the systems that tutti replaces.
const KNOWN_KINDS: &[(&[&str], &str, KindSupport)] = &[
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

/// `None`, with a mistake, when apiVersion or kind are missing or unknown.
pub fn identify(root: &YamlNode, hub: &Hub, reading: &mut ReadContext<'_>) -> Option<DocumentIdentity> {
    if root.as_map().is_none() {
        let location = reading.location(root);
        reading
            .mistake(
                codes::NOT_A_MANIFEST,
                format!("a manifest is a map, not {}", root.description()),
                location,
                "",
            )
            .help("a manifest starts with `apiVersion:` and `kind:`");
        return None;
    }
    let api_version = text(root, "apiVersion", reading);
    let kind = text(root, "kind", reading);
    let (api_version, kind) = (api_version?, kind?);
    if let Some((_, native)) =
        hub.foreign_versions().find(|(version, native)| *version == api_version && native.name() == kind)
    {
        return Some(DocumentIdentity::Native(native));
    }
    if let Some((_, name, known)) =
        KNOWN_KINDS.iter().find(|(versions, name, _)| *name == kind && versions.contains(&api_version))
    {
        let later = |deploys| DocumentIdentity::Planned {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            deploys,
            foreign: api_version != OWN,
        };
        return Some(match known {
            KindSupport::Supported(native) => DocumentIdentity::Native(*native),
            KindSupport::InFolder(folder) => DocumentIdentity::InFolder { kind: name, folder },
            KindSupport::PlannedApp => later(true),
            KindSupport::Planned => later(false),
        });
    }
    let place = |key| {
        root.get(key).map_or_else(|| Location::new(reading.file, 1, 1), |node| node.location(reading.file))
    };
    let of_version = KNOWN_KINDS.iter().filter(|(versions, ..)| versions.contains(&api_version));
    let accepted = hub.foreign_versions().filter(|(version, _)| *version == api_version);
    let of_hub: Vec<&str> = accepted.map(|(_, native)| native.name()).collect();
    let kinds: Vec<&str> =
        of_version.clone().map(|(_, kind, _)| *kind).chain(of_hub.iter().copied()).collect();
    let now =
        of_version.filter(|(.., known)| matches!(known, KindSupport::Supported(_))).map(|(_, kind, _)| *kind);
    let valid: Vec<&str> = now.chain(of_hub).collect();
    if !valid.is_empty() {
        let place = place("kind");
        reading
            .mistake(codes::UNKNOWN_KIND, format!("unknown kind `{kind}` of {api_version}"), place, "kind")
            .help(suggest(kind, &kinds, &valid));
        return None;
    }
    let mut versions = similar_versions(api_version, hub);
    let is_policy = || kind == ManifestKind::Policy.name() && reading.file.starts_with(policy::FOLDER);
    if versions.is_empty()
        && (unreadable::is_shared_kind(kind) || is_policy())
        && unreadable::may_be_own_version(api_version)
    {
        versions.push(OWN);
    }
    if versions.is_empty() {
        return Some(DocumentIdentity::PlainObject {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        });
    }
    let place = place("apiVersion");
    reading
        .mistake(
            codes::UNKNOWN_API_VERSION,
            format!("unknown apiVersion `{api_version}`"),
            place,
            "apiVersion",
        )
        .help(suggest(api_version, &versions, &versions));
    None
}

fn text<'n>(root: &'n YamlNode, key: &'static str, reading: &mut ReadContext<'_>) -> Option<&'n str> {
    let text = root.get(key).and_then(YamlNode::as_str).filter(|text| !text.is_empty());
    if text.is_none() {
        let node = root.get(key).unwrap_or(root);
        let place = match root.as_map().and_then(<[_]>::first) {
            Some(first) if root.get(key).is_none() => first.location(reading.file),
            _ => reading.location(node),
        };
        let what = if root.get(key).is_some() { "is not a text" } else { "is missing" };
        let kind = root.get("kind").and_then(YamlNode::as_str);
        let help = match kind.filter(|kind| KNOWN_KINDS.iter().any(|(_, known, _)| known == kind)) {
            Some(kind) if key == "apiVersion" => format!("a {kind} has `apiVersion: {OWN}`"),
            _ => {
                "every YAML file outside templates/, charts/, plugins/, health/ and apps/<app>/layer/ holds manifests"
                    .to_owned()
            }
        };
        reading
            .mistake(codes::NOT_A_MANIFEST, format!("`{key}` {what}: this is not a manifest"), place, key)
            .help(help);
    }
    text
}

/// All kinds, including planned ones.
pub fn kind_names() -> Vec<&'static str> {
    KNOWN_KINDS.iter().map(|(_, kind, _)| *kind).collect()
}

/// `tutti.dev` of `tutti.dev/v1alpha1`.
pub fn group_of(version: &str) -> &str {
    version.split('/').next().unwrap_or(version)
}

/// The apiVersions of the group that this one has, or nearly has; empty when it is something else.
fn similar_versions<'h>(api_version: &str, hub: &'h Hub) -> Vec<&'h str> {
    let group = group_of(api_version);
    let known = KNOWN_KINDS.iter().filter(|(.., known)| matches!(known, KindSupport::Supported(_)));
    let known = known.flat_map(|(versions, ..)| versions.iter().copied());
    let mut versions: Vec<&str> = known.chain(hub.foreign_versions().map(|(version, _)| version)).collect();
    versions.sort_unstable();
    versions.dedup();
    let groups: Vec<&str> = versions.iter().map(|version| group_of(version)).collect();
    let meant = likely_typo_of(group, &groups);
    versions.retain(|version| meant == Some(group_of(version)));
    versions
}
