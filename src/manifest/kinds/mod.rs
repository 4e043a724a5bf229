//! One reader per kind of manifest.
//!
//! [`identify`] finds the kind of a document by its apiVersion and kind. Every reader takes the root of a document and a [`ReadContext`]. It
//! returns `None` when the manifest cannot be built; the caller drops a manifest with any mistake.

pub mod admission;
pub mod analysis;
mod app_fields;
pub mod approval;
pub mod approval_rule;
pub mod appset;
mod chart;
pub mod cluster;
pub mod component;
pub mod conversion;
mod derived;
mod expression;
pub mod health_rule;
mod identity;
mod ignore;
pub mod instance;
mod known_kinds;
mod manifest_kind;
mod metadata;
mod node_selector;
pub mod notification;
pub mod objects;
pub mod patch;
pub mod pin;
pub mod placement;
pub mod policy;
mod policy_rules;
pub mod project;
pub mod rings;
pub mod route;
mod secret;
pub mod server;
pub mod taint;
mod target_selector;
mod time_zone;
pub mod trigger;
mod update_strategy;
mod wave;
pub mod window;

pub use identity::{DocumentIdentity, identify};
pub use known_kinds::{group_of, kind_names};
pub use manifest_kind::{ManifestKind, OWN_VERSION};

use super::codes;
use super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::yaml::YamlNode;
use crate::model::{AppId, ClusterName, DiagnosticScope};
use metadata::Metadata;

/// The scope of mistakes in an app's manifest: the app, if its name is readable, else the file.
pub fn app_scope(root: &YamlNode, file: &str, default_namespace: &str) -> DiagnosticScope {
    let name = root.find(&["metadata", "name"]).and_then(YamlNode::as_str);
    let namespace = match root.find(&["metadata", "namespace"]) {
        Some(node) if !node.is_null() => node.as_str(),
        _ => Some(default_namespace),
    };
    match (name, namespace) {
        (Some(name), Some(namespace))
            if NameRule::Subdomain.fits(name) && NameRule::Label.fits(namespace) =>
        {
            DiagnosticScope::App(AppId::new(namespace, name))
        }
        _ => DiagnosticScope::File(file.to_owned()),
    }
}

/// The scope of mistakes in a project's manifest: the project, if its name is readable, else the file.
pub fn project_scope(root: &YamlNode, file: &str) -> DiagnosticScope {
    match root.find(&["metadata", "name"]).and_then(YamlNode::as_str) {
        Some(name) if NameRule::Label.fits(name) => DiagnosticScope::App(AppId::of_project(name)),
        _ => DiagnosticScope::File(file.to_owned()),
    }
}

/// The scope of mistakes in a cluster's manifest: the cluster, if its name is readable, else the file.
pub fn cluster_scope(root: &YamlNode, file: &str) -> DiagnosticScope {
    match root.find(&["metadata", "name"]).and_then(YamlNode::as_str) {
        Some(name) if NameRule::Subdomain.fits(name) => DiagnosticScope::Cluster(ClusterName::from(name)),
        _ => DiagnosticScope::File(file.to_owned()),
    }
}

/// Reads the metadata of a manifest, and returns it with the spec.
fn read_envelope<'a>(
    root: &'a YamlNode,
    rule: NameRule,
    namespaced: bool,
    reading: &mut ReadContext<'_>,
) -> Option<(Option<Metadata>, Option<ManifestValue<'a>>)> {
    let mut fields = ManifestFields::of(&ManifestValue::root(root), reading)?;
    for name in ["apiVersion", "kind"] {
        fields.optional(name, reading);
    }
    let metadata = fields
        .required("metadata", reading)
        .and_then(|value| metadata::read(&value, rule, namespaced, reading));
    let spec = fields.optional("spec", reading);
    fields.finish(reading);
    Some((metadata, spec))
}

/// The fields of a spec that must be there.
fn spec_fields<'a>(
    root: &YamlNode,
    spec: Option<ManifestValue<'a>>,
    reading: &mut ReadContext<'_>,
) -> Option<ManifestFields<'a>> {
    match spec {
        Some(spec) => ManifestFields::of(&spec, reading),
        None => {
            let place = root.entry("spec").or_else(|| root.entry("kind"));
            let place = place.map_or_else(|| reading.location(root), |entry| entry.location(reading.file));
            reading.mistake(codes::MISSING_FIELD, "`spec` is missing", place, "spec");
            None
        }
    }
}
