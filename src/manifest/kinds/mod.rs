//! One reader per kind of manifest.
//!
//! [`identify`] finds the kind of a document by its apiVersion and kind. Every reader takes the root of a document and a [`Reading`]. It
//! returns `None` when the manifest cannot be built; the caller drops a manifest with any mistake.

pub mod admission;
pub mod analysis;
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
mod rollout;
pub mod route;
mod secret;
pub mod server;
pub mod taint;
mod target_selector;
mod time_zone;
pub mod trigger;
mod wave;
pub mod window;
mod workload;

pub use identity::{Identity, Native, group_of, identify, names};

use super::codes;
use super::read::{Fields, NameRule, Reading, Value};
use super::yaml::Node;
use crate::model::{AppId, ClusterName, Scope};
use metadata::Metadata;

/// The scope of mistakes in an app's manifest: the app, if its name is readable, else the file.
pub fn app_scope(root: &Node, file: &str, default_namespace: &str) -> Scope {
    let name = root.find(&["metadata", "name"]).and_then(Node::as_str);
    let namespace = match root.find(&["metadata", "namespace"]) {
        Some(node) if !node.is_null() => node.as_str(),
        _ => Some(default_namespace),
    };
    match (name, namespace) {
        (Some(name), Some(namespace))
            if NameRule::Subdomain.fits(name) && NameRule::Label.fits(namespace) =>
        {
            Scope::App(AppId::new(namespace, name))
        }
        _ => Scope::File(file.to_owned()),
    }
}

/// The scope of mistakes in a project's manifest: the project, if its name is readable, else the file.
pub fn project_scope(root: &Node, file: &str) -> Scope {
    match root.find(&["metadata", "name"]).and_then(Node::as_str) {
        Some(name) if NameRule::Label.fits(name) => Scope::App(AppId::of_project(name)),
        _ => Scope::File(file.to_owned()),
    }
}

/// The scope of mistakes in a cluster's manifest: the cluster, if its name is readable, else the file.
pub fn cluster_scope(root: &Node, file: &str) -> Scope {
    match root.find(&["metadata", "name"]).and_then(Node::as_str) {
        Some(name) if NameRule::Subdomain.fits(name) => Scope::Cluster(ClusterName::from(name)),
        _ => Scope::File(file.to_owned()),
    }
}

/// Reads the metadata of a manifest, and returns it with the spec.
fn envelope<'a>(
    root: &'a Node,
    rule: NameRule,
    namespaced: bool,
    reading: &mut Reading<'_>,
) -> Option<(Option<Metadata>, Option<Value<'a>>)> {
    let mut fields = Fields::of(&Value::root(root), reading)?;
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
fn spec_fields<'a>(root: &Node, spec: Option<Value<'a>>, reading: &mut Reading<'_>) -> Option<Fields<'a>> {
    match spec {
        Some(spec) => Fields::of(&spec, reading),
        None => {
            let place = root.entry("spec").or_else(|| root.entry("kind"));
            let place = place.map_or_else(|| reading.location(root), |entry| entry.location(reading.file));
            reading.mistake(codes::MISSING_FIELD, "`spec` is missing", place, "spec");
            None
        }
    }
}
