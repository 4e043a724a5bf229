//! What the cluster serves, in the legacy and in the aggregated form.

mod aggregated;
mod legacy;
mod openapi;

pub(crate) use aggregated::group_list as aggregated;
pub(crate) use legacy::{core_versions, group, groups, resources};
pub(crate) use openapi::{document as openapi_document, index as openapi_index};

use crate::registry::ResourceKind;

const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The subresources of a kind with what their answers are and their verbs.
fn subresources(kind: &ResourceKind) -> Vec<(&'static str, Subresource)> {
    let mut out = Vec::new();
    let own = || (kind.group.clone(), kind.version.clone(), kind.kind.clone());
    if kind.is("pods") {
        out.push(("log", Subresource { serves: own(), verbs: &["get"] }));
    }
    if kind.has_scale {
        let scale = ("autoscaling".to_owned(), "v1".to_owned(), "Scale".to_owned());
        out.push(("scale", Subresource { serves: scale, verbs: &["get", "patch", "update"] }));
    }
    if kind.has_status {
        out.push(("status", Subresource { serves: own(), verbs: &["get", "patch", "update"] }));
    }
    out
}

struct Subresource {
    /// Group, version, kind.
    serves: (String, String, String),
    verbs: &'static [&'static str],
}
