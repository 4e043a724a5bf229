//! The log of requests that tests count.

use crate::faults::RequestMatch;

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
    /// Asked with `dryRun=All`: nothing is written.
    pub dry_run: bool,
    /// Asked for metadata only.
    pub metadata_only: bool,
}

impl RequestRecord {
    /// Is this a watch?
    pub fn is_watch(&self) -> bool {
        self.verb == "watch"
    }

    /// Does this list leave open which state it wants?
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

/// Requests are kept up to this many; counting tests reset long before.
const MOST_RECORDS: usize = 100_000;

#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    records: Vec<RequestRecord>,
}

impl RequestLog {
    pub(crate) fn record(&mut self, record: RequestRecord) {
        if self.records.len() < MOST_RECORDS {
            self.records.push(record);
        }
    }

    pub(crate) fn all(&self) -> Vec<RequestRecord> {
        self.records.clone()
    }

    pub(crate) fn count(&self, matching: &RequestMatch) -> usize {
        self.records.iter().filter(|record| matching.matches(record)).count()
    }

    pub(crate) fn clear(&mut self) {
        self.records.clear();
    }
}
