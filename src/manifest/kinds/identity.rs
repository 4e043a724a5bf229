//! Identifies a document by its apiVersion and kind.

use super::super::hub::Hub;
use super::super::read::{ReadContext, likely_typo_of, suggest};
use super::super::yaml::YamlNode;
use super::super::{codes, possible_kinds};
use super::known_kinds::{KNOWN_KINDS, KindSupport, group_of};
use super::manifest_kind::{ManifestKind, OWN_VERSION as OWN};
use super::policy;
use crate::model::Location;

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
        && (possible_kinds::is_shared_kind(kind) || is_policy())
        && possible_kinds::may_be_own_version(api_version)
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
