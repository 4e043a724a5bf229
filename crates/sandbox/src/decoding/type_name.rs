//! The type of an object.

use serde_json::Value;

use crate::registry::ResourceKind;
use crate::schema::{FieldDeclaration, built_in};

/// The Go package of the server's types, which messages contain.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// Group, version and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TypeName<'n> {
    pub(crate) group: &'n str,
    pub(crate) version: &'n str,
    pub(crate) kind: &'n str,
}

impl<'n> TypeName<'n> {
    /// The response kind of `scale`, for every resource.
    pub(crate) const SCALE: TypeName<'static> =
        TypeName { group: "autoscaling", version: "v1", kind: "Scale" };
    /// The request kind of `pods/eviction`.
    pub(crate) const EVICTION: TypeName<'static> =
        TypeName { group: "policy", version: "v1", kind: "Eviction" };

    pub(crate) fn of(kind: &'n ResourceKind) -> Self {
        Self { group: &kind.group, version: &kind.version, kind: &kind.kind }
    }

    /// The type that an object declares.
    pub(super) fn said(object: &'n Value) -> Self {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        Self { group, version, kind: text("kind") }
    }

    /// The definition of a built-in kind.
    pub(super) fn declared(self) -> Option<FieldDeclaration<'static>> {
        built_in().kind(self.group, self.version, self.kind)
    }

    pub(super) fn unregistered(self) -> String {
        let slash = if self.group.is_empty() { "" } else { "/" };
        format!(
            "no kind {:?} is registered for version \"{}{slash}{}\" in scheme {SCHEME:?}",
            self.kind, self.group, self.version
        )
    }

    /// Another kind that there is cannot become this one.
    pub(super) fn unconvertible(self, to: Self) -> String {
        let home = match to.group.split('.').next().unwrap_or_default() {
            "" => "core",
            home => home,
        };
        format!("converting ({}.{}) to ({home}.{}): unknown conversion", self.version, self.kind, to.kind)
    }
}
