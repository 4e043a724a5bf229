//! Defines a right and its reason.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    /// Grant a role rules that the user lacks.
    Escalate,
    /// Bind a role whose rules the user lacks.
    Bind,
}

impl Verb {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Escalate => "escalate",
            Self::Bind => "bind",
        }
    }
}

/// One verb on one resource, as in a SubjectAccessReview.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Right {
    /// `None`: the whole cluster.
    pub namespace: Option<Arc<str>>,
    pub group: Arc<str>,
    /// The plural, with a subresource if any: `pods/log`.
    pub resource: String,
    /// This object alone.
    pub name: Option<String>,
    pub verb: Verb,
}

impl Right {
    /// As kubectl names a resource: `deployments.apps`, `configmaps`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

/// `patch deployments.apps in namespace shop`, `bind clusterroles.rbac.authorization.k8s.io view`.
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb.as_str(), self.qualified())?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

impl Serialize for Right {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The reason of a right; roles are printed in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RightReason {
    /// Watching definitions and API services.
    Serving,
    /// Watches and the inventory.
    Observing,
    /// Rendered objects: lookup, apply, delete.
    Writing,
    /// The same in a namespace that tutti creates.
    WritingInOwnNamespaces,
    /// Deletes on a cluster that is being removed.
    Leaving,
    /// The pods of an unhealthy workload.
    Causes,
    /// The last log line of a crashed container. An operator may leave this right out.
    LastLines,
    /// The storage class, which tells whether a claim waits for its first consumer.
    StorageClasses,
    /// Rendered roles and bindings, which grant rights.
    Granting,
    /// Secrets of tutti in the home cluster.
    Secrets,
    /// ConfigMaps that register clusters.
    Registry,
    /// The Lease of the leader.
    Leader,
}

impl RightReason {
    /// Without an optional right tutti works, but shows less or later.
    pub fn is_optional(self) -> bool {
        match self {
            Self::Serving | Self::Causes | Self::LastLines | Self::StorageClasses => true,
            Self::Observing
            | Self::Writing
            | Self::WritingInOwnNamespaces
            | Self::Leaving
            | Self::Granting
            | Self::Secrets
            | Self::Registry
            | Self::Leader => false,
        }
    }
}
