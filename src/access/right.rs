//! One right, and why it is needed.

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
    /// Give a role rules that one does not have oneself.
    Escalate,
    /// Give somebody a role whose rules one does not have oneself.
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

/// One verb on one resource, as the API server asks about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Right {
    /// `None`: everywhere in the cluster.
    pub namespace: Option<Arc<str>>,
    pub group: Arc<str>,
    /// The plural, as in paths; with a subresource `pods/log`.
    pub resource: String,
    /// Of this object alone.
    pub name: Option<String>,
    pub verb: Verb,
}

impl Right {
    /// `deployments.apps`, `configmaps`: as kubectl names a resource.
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

/// What a right is needed for; roles are printed in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Why {
    /// To learn when definitions and API services come and go.
    Serving,
    /// Watches and the inventory.
    Observing,
    /// What is rendered: looked up, applied, deleted.
    Writing,
    /// The same in a namespace that tutti makes itself.
    WritingInOwnNamespaces,
    /// What was rendered on a cluster that is being removed: deleted.
    Leaving,
    /// The pods of a workload that does not get healthy.
    Causes,
    /// The last line that a container wrote before it crashed. Whoever does not want it told leaves this right out.
    LastLines,
    /// The storage class of a claim says whether it waits for its first consumer.
    StorageClasses,
    /// What is rendered grants rights to others.
    Granting,
    /// The home cluster keeps secrets of tutti itself.
    Secrets,
    /// It registers clusters.
    Registry,
    /// One of several processes writes: which, its lease says.
    Leader,
}
