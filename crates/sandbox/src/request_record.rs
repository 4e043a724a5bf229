//! One request in the log of requests.

/// One request, as the audit log of a server would name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestRecord {
    /// `get, list, watch, create, update, patch, apply, delete, deletecollection`; for paths without
    /// a resource `get`.
    pub verb: String,
    /// `deployments.apps`, or `pods` in the core group; for other paths the path itself.
    pub resource: String,
    /// Empty for the object itself.
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// The query as sent.
    pub query: String,
    /// Asked with `dryRun`: nothing is written. A value that is none is refused.
    pub dry_run: bool,
    /// Asked for metadata only.
    pub metadata_only: bool,
}

impl RequestRecord {
    /// Is this a watch?
    pub fn is_watch(&self) -> bool {
        self.verb == "watch"
    }

    /// Does this list accept any state (neither `resourceVersion` nor `continue`)?
    pub(crate) fn may_be_stale(&self) -> bool {
        ["resourceVersion", "continue"].iter().all(|name| !self.query.contains(&format!("{name}=")))
    }

    /// Does this change the cluster?
    pub fn is_write(&self) -> bool {
        !self.dry_run
            && matches!(
                self.verb.as_str(),
                "create" | "update" | "patch" | "apply" | "delete" | "deletecollection"
            )
    }
}
