//! Names of apps, clusters and commits.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// An app by namespace and name; shown as `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl AppId {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// A project is known among apps as `project/<name>`: an app of its name may live in its namespace.
    pub fn of_project(name: &str) -> Self {
        Self::new(Self::PROJECT, name)
    }

    pub const PROJECT: &'static str = "project";

    pub fn is_project(&self) -> bool {
        &*self.namespace == Self::PROJECT
    }

    /// Reads `namespace/name`; `None` when it is anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('/')?;
        (!namespace.is_empty() && !name.is_empty() && !name.contains('/')).then(|| Self::new(namespace, name))
    }
}

impl fmt::Display for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Serialize for AppId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The name of a registered cluster, as in its Cluster manifest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterName(Arc<str>);

impl ClusterName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ClusterName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl std::borrow::Borrow<str> for ClusterName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for ClusterName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// A commit id of the config repository (40 hexadecimal digits), or [`Revision::WORKTREE`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(Arc<str>);

impl Revision {
    /// What a folder that is read as it stands on disk carries instead of a commit id.
    pub const WORKTREE: &'static str = "worktree";

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first seven digits, as people write it.
    pub fn short(&self) -> &str {
        if self.is_worktree() { &self.0 } else { self.0.get(..7).unwrap_or(&self.0) }
    }

    pub fn is_worktree(&self) -> bool {
        &*self.0 == Self::WORKTREE
    }
}

impl From<&str> for Revision {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}
