//! Projects: one namespace on many clusters, who works in it, and what its apps may do.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{ClusterSelector, Location, Placement};

/// A Project manifest; its objects are rendered like those of an app.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    pub namespace: String,
    pub placement: Placement,
    /// Of the namespace.
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub members: Vec<ProjectMember>,
    /// `hard` of a ResourceQuota; empty: none.
    pub quota: BTreeMap<String, String>,
    /// Items of a LimitRange; empty: none.
    pub limits: Vec<Value>,
    /// Pods take connections from their own namespace only.
    pub isolated: bool,
    pub allow: Option<ProjectRestrictions>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectMember {
    pub role: MemberRole,
    pub subject: MemberSubject,
}

/// The ClusterRoles for people that every Kubernetes cluster has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberRole {
    Admin,
    Edit,
    View,
}

impl MemberRole {
    pub const ALL: [Self; 3] = [Self::Admin, Self::Edit, Self::View];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Edit => "edit",
            Self::View => "view",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MemberSubject {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
}

/// What the apps of a project may be and use; `None`: anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectRestrictions {
    /// Kinds of manifests that make apps (`Component`), and kinds of objects (`Deployment`, `apps/Deployment`).
    /// Each of the two sorts that is named leaves out the rest of its sort.
    pub kinds: Option<Vec<String>>,
    pub clusters: Option<ClusterSelector>,
    /// Hosts, or the beginnings of images: `registry.example.com`, `docker.io/library`.
    pub registries: Option<Vec<String>>,
    #[serde(skip)]
    pub location: Location,
}

/// The kinds of manifests that make apps.
pub const APP_KINDS: &[&str] = &["AppSet", "Application", "Component", "Middleware", "Objects"];

impl ProjectRestrictions {
    pub fn allows_app_kind(&self, kind: &str) -> bool {
        let mut named = self.kinds.iter().flatten().filter(|kind| is_app_kind(kind)).peekable();
        named.peek().is_none() || named.any(|allowed| allowed == kind)
    }

    pub fn allows_object_kind(&self, group: &str, kind: &str) -> bool {
        let mut named = self.kinds.iter().flatten().filter(|kind| !is_app_kind(kind)).peekable();
        named.peek().is_none()
            || named.any(|allowed| match allowed.rsplit_once('/') {
                Some((of_group, name)) => of_group == group && name == kind,
                None => allowed == kind,
            })
    }

    /// Whether an image comes from one of the registries, compared part by part.
    pub fn allows_image(&self, image: &str) -> bool {
        let Some(registries) = &self.registries else { return true };
        let image = full_image_name(image);
        registries.iter().any(|registry| {
            // Behind a host stands a path; `:` would be another port, and so another registry.
            let ends: &[char] = if registry.contains('/') { &['/', ':', '@'] } else { &['/'] };
            image.strip_prefix(registry.as_str()).is_some_and(|rest| rest.starts_with(ends))
        })
    }
}

fn is_app_kind(kind: &str) -> bool {
    APP_KINDS.contains(&kind)
}

/// An image with the registry that a container runtime takes when none is written.
fn full_image_name(image: &str) -> String {
    const HUB: &str = "docker.io";
    let path = match image.split_once('/') {
        Some((HUB | "index.docker.io", path)) => path,
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => return image.to_owned(),
        _ => image,
    };
    let folder = if path.contains('/') { "" } else { "library/" };
    format!("{HUB}/{folder}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(kinds: Option<&[&str]>, registries: &[&str]) -> ProjectRestrictions {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        ProjectRestrictions {
            kinds: kinds.map(texts),
            clusters: None,
            registries: Some(texts(registries)),
            location: Location::new("projects/shop.yaml", 1, 1),
        }
    }

    #[test]
    fn images_are_compared_part_by_part() {
        let check = |image: &str, expected: bool| {
            let allow = allow(None, &["registry.example.com", "docker.io/library", "quay.io/shop/web"]);
            assert_eq!(allow.allows_image(image), expected, "{image}");
        };
        check("registry.example.com/shop/web:1", true);
        check("registry.example.com.evil.org/web:1", false);
        check("registry.example.com:5000/web:1", false);
        check("python:3.12", true);
        check("library/python", true);
        check("docker.io/python", true);
        check("somebody/python", false);
        check("quay.io/shop/web:1", true);
        check("quay.io/shop/web@sha256:00", true);
        check("quay.io/shop/web2:1", false);
        check("localhost/registry.example.com/x", false);
    }

    #[test]
    fn each_sort_of_kinds_restricts_itself() {
        let check = |kinds: &[&str], expected: [bool; 4]| {
            let allow = allow(Some(kinds), &[]);
            let found = [
                allow.allows_app_kind("Component"),
                allow.allows_app_kind("Objects"),
                allow.allows_object_kind("apps", "Deployment"),
                allow.allows_object_kind("", "Secret"),
            ];
            assert_eq!(found, expected, "{kinds:?}");
        };
        check(&["Component"], [true, false, true, true]);
        check(&["Deployment"], [true, true, true, false]);
        check(&["Component", "apps/Deployment"], [true, false, true, false]);
        check(&["batch/Deployment", "Secret"], [true, true, false, true]);
    }
}
