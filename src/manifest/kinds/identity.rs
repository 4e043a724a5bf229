//! Identifies a document by its apiVersion and kind.

use super::super::hub::Hub;
use super::super::read::{Reading, suggest, with_a_slip};
use super::super::yaml::Node;
use super::super::{OWN_VERSION as OWN, codes, meant};
use super::{
    analysis, approval_rule, conversion, health_rule, notification, policy, server, trigger, window,
};
use crate::model::Location;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Native {
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

impl Native {
    /// Whether a config repository may have only one.
    pub fn is_one(self) -> bool {
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
pub enum Identity {
    Native(Native),
    /// Read from its folder by another module.
    InFolder {
        kind: &'static str,
        folder: &'static str,
    },
    /// Planned. `deploys`: it would be an app. `foreign`: of a foreign group, so an Objects app may apply it as an object.
    Later {
        api_version: String,
        kind: String,
        deploys: bool,
        foreign: bool,
    },
    /// Another Kubernetes object.
    Plain {
        api_version: String,
        kind: String,
    },
}

#[derive(Clone, Copy)]
enum Known {
    Now(Native),
    InFolder(&'static str),
    LaterApp,
    Later,
}

/// The hub adds foreign versions of supported kinds. Source of the other rows: samples of the systems that tutti replaces.
const TABLE: &[(&[&str], &str, Known)] = &[
    (&[OWN], "Instance", Known::Now(Native::Instance)),
    (&[OWN], "Cluster", Known::Now(Native::Cluster)),
    (&[OWN], "Rings", Known::Now(Native::Rings)),
    (&[OWN], "Objects", Known::Now(Native::Objects)),
    (&[OWN], "Project", Known::Now(Native::Project)),
    (&[OWN], "Route", Known::Now(Native::Route)),
    (&[OWN], "Approval", Known::Now(Native::Approval)),
    (&[OWN], "Trigger", Known::Now(Native::Trigger)),
    (&[OWN], "Notification", Known::Now(Native::Notification)),
    (&[OWN], "Server", Known::Now(Native::Server)),
    (&[OWN], "Window", Known::Now(Native::Window)),
    (&[OWN], "Analysis", Known::Now(Native::Analysis)),
    (&[OWN], "ApprovalRule", Known::Now(Native::ApprovalRule)),
    (&[OWN], "Approvers", Known::Now(Native::Approvers)),
    (&[OWN], "AppSet", Known::Now(Native::AppSet)),
    (&[OWN], "Component", Known::Now(Native::Component)),
    (&[OWN], "Conversion", Known::InFolder(conversion::FOLDER)),
    (&[OWN], "HealthRule", Known::InFolder(health_rule::FOLDER)),
    (&[OWN, "core.oam.dev/v1beta1"], "Application", Known::LaterApp),
    (&["core.oam.dev/v1alpha2"], "ApplicationConfiguration", Known::LaterApp),
    (&[OWN], "Middleware", Known::LaterApp),
    (&[OWN, "service.daocloud.io/v1alpha", "daocloud.io/v1alpha"], "ServiceTp", Known::LaterApp),
    (&["workload.dmall.com/v1beta1"], "AdvDeployment", Known::LaterApp),
    (&["workload.dmall.com/v1beta1"], "Cluster", Known::Later),
    (&[OWN], "Policy", Known::Now(Native::Policy)),
    (&[OWN, "core.oam.dev/v1beta1"], "ComponentDefinition", Known::Later),
    (&[OWN, "core.oam.dev/v1beta1"], "TraitDefinition", Known::Later),
    (&[OWN, "core.oam.dev/v1beta1"], "PolicyDefinition", Known::Later),
    (&[OWN, "core.oam.dev/v1beta1"], "WorkflowStepDefinition", Known::Later),
    (&[OWN, "core.oam.dev/v1beta1"], "ResourceAddonDefinition", Known::Later),
];

/// `None`, with a mistake, when apiVersion or kind are missing or unknown.
pub fn identify(root: &Node, hub: &Hub, reading: &mut Reading<'_>) -> Option<Identity> {
    if root.as_map().is_none() {
        let location = reading.location(root);
        reading
            .mistake(codes::NOT_A_MANIFEST, format!("a manifest is a map, not {}", root.what()), location, "")
            .help("a manifest starts with `apiVersion:` and `kind:`");
        return None;
    }
    let api_version = text(root, "apiVersion", reading);
    let kind = text(root, "kind", reading);
    let (api_version, kind) = (api_version?, kind?);
    if let Some((_, native)) =
        hub.accepted().find(|(version, native)| *version == api_version && native.name() == kind)
    {
        return Some(Identity::Native(native));
    }
    if let Some((_, name, known)) =
        TABLE.iter().find(|(versions, name, _)| *name == kind && versions.contains(&api_version))
    {
        let later = |deploys| Identity::Later {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            deploys,
            foreign: api_version != OWN,
        };
        return Some(match known {
            Known::Now(native) => Identity::Native(*native),
            Known::InFolder(folder) => Identity::InFolder { kind: name, folder },
            Known::LaterApp => later(true),
            Known::Later => later(false),
        });
    }
    let place = |key| {
        root.get(key).map_or_else(|| Location::new(reading.file, 1, 1), |node| node.location(reading.file))
    };
    let of_version = TABLE.iter().filter(|(versions, ..)| versions.contains(&api_version));
    let accepted = hub.accepted().filter(|(version, _)| *version == api_version);
    let of_hub: Vec<&str> = accepted.map(|(_, native)| native.name()).collect();
    let kinds: Vec<&str> =
        of_version.clone().map(|(_, kind, _)| *kind).chain(of_hub.iter().copied()).collect();
    let now = of_version.filter(|(.., known)| matches!(known, Known::Now(_))).map(|(_, kind, _)| *kind);
    let valid: Vec<&str> = now.chain(of_hub).collect();
    if !valid.is_empty() {
        let place = place("kind");
        reading
            .mistake(codes::UNKNOWN_KIND, format!("unknown kind `{kind}` of {api_version}"), place, "kind")
            .help(suggest(kind, &kinds, &valid));
        return None;
    }
    let mut versions = versions_meant(api_version, hub);
    let is_policy = || kind == Native::Policy.name() && reading.file.starts_with(policy::FOLDER);
    if versions.is_empty() && (meant::is_depended_on(kind) || is_policy()) && meant::may_be_own(api_version) {
        versions.push(OWN);
    }
    if versions.is_empty() {
        return Some(Identity::Plain { api_version: api_version.to_owned(), kind: kind.to_owned() });
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

fn text<'n>(root: &'n Node, key: &'static str, reading: &mut Reading<'_>) -> Option<&'n str> {
    let text = root.get(key).and_then(Node::as_str).filter(|text| !text.is_empty());
    if text.is_none() {
        let node = root.get(key).unwrap_or(root);
        let place = match root.as_map().and_then(<[_]>::first) {
            Some(first) if root.get(key).is_none() => first.location(reading.file),
            _ => reading.location(node),
        };
        let what = if root.get(key).is_some() { "is not a text" } else { "is missing" };
        let kind = root.get("kind").and_then(Node::as_str);
        let help = match kind.filter(|kind| TABLE.iter().any(|(_, known, _)| known == kind)) {
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
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|(_, kind, _)| *kind).collect()
}

/// `tutti.dev` of `tutti.dev/v1alpha1`.
pub fn group_of(version: &str) -> &str {
    version.split('/').next().unwrap_or(version)
}

/// The apiVersions of the group that this one has, or nearly has; empty when it is something else.
fn versions_meant<'h>(api_version: &str, hub: &'h Hub) -> Vec<&'h str> {
    let group = group_of(api_version);
    let known = TABLE.iter().filter(|(.., known)| matches!(known, Known::Now(_)));
    let known = known.flat_map(|(versions, ..)| versions.iter().copied());
    let mut versions: Vec<&str> = known.chain(hub.accepted().map(|(version, _)| version)).collect();
    versions.sort_unstable();
    versions.dedup();
    let groups: Vec<&str> = versions.iter().map(|version| group_of(version)).collect();
    let meant = with_a_slip(group, &groups);
    versions.retain(|version| meant == Some(group_of(version)));
    versions
}
