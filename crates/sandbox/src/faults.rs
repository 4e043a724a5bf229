//! What goes wrong between a client and the cluster, on purpose.

use std::time::Duration;

use crate::requests::RequestRecord;

/// How a request fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Answered with this HTTP status and reason, and `Retry-After` in seconds when given.
    Status { code: u16, reason: &'static str, retry_after: Option<u32> },
    /// Answered with this HTTP status, reason and message.
    Refusal { code: u16, reason: &'static str, message: String },
    /// The connection breaks before the server acts.
    DropBefore,
    /// The server acts, and the connection breaks before it answers.
    DropAfter,
    /// The answer comes this much later.
    Delay(Duration),
}

impl Fault {
    /// 500 Internal Server Error.
    pub fn internal_error() -> Self {
        Self::Status { code: 500, reason: "InternalError", retry_after: None }
    }

    /// 429 Too Many Requests, with `Retry-After`.
    pub fn too_many_requests(seconds: u32) -> Self {
        Self::Status { code: 429, reason: "TooManyRequests", retry_after: Some(seconds) }
    }

    /// 403 Forbidden.
    pub fn forbidden() -> Self {
        Self::Status { code: 403, reason: "Forbidden", retry_after: None }
    }

    /// 401 Unauthorized, as for an expired token.
    pub fn unauthorized() -> Self {
        Self::Status { code: 401, reason: "Unauthorized", retry_after: None }
    }
}

/// Which requests: every field that is given must be equal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestMatch {
    /// As in [`RequestRecord::verb`].
    pub verb: Option<String>,
    /// As in [`RequestRecord::resource`].
    pub resource: Option<String>,
    pub subresource: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    /// Only requests that change the cluster, or only those that do not.
    pub writes: Option<bool>,
}

impl RequestMatch {
    /// Every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Every request that changes the cluster.
    pub fn writes() -> Self {
        Self { writes: Some(true), ..Self::default() }
    }

    pub fn verb(mut self, verb: impl Into<String>) -> Self {
        self.verb = Some(verb.into());
        self
    }

    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Does the record match?
    pub fn matches(&self, record: &RequestRecord) -> bool {
        let same =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        same(&self.verb, &record.verb)
            && same(&self.resource, &record.resource)
            && same(&self.subresource, &record.subresource)
            && same(&self.namespace, &record.namespace)
            && same(&self.name, &record.name)
            && self.writes.is_none_or(|writes| writes == record.is_write())
    }
}

#[derive(Debug)]
struct Planned {
    matching: RequestMatch,
    skip: usize,
    times: usize,
    fault: Fault,
}

#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) down: bool,
    pub(crate) latency: Duration,
    planned: Vec<Planned>,
}

impl Faults {
    pub(crate) fn plan(&mut self, matching: RequestMatch, skip: usize, times: usize, fault: Fault) {
        self.planned.push(Planned { matching, skip, times, fault });
    }

    /// The fault of this request, used up by it.
    pub(crate) fn strike(&mut self, record: &RequestRecord) -> Option<Fault> {
        let mut struck = None;
        for planned in self.planned.iter_mut().filter(|planned| planned.matching.matches(record)) {
            if planned.skip > 0 {
                planned.skip -= 1;
            } else if planned.times > 0 && struck.is_none() {
                planned.times -= 1;
                struck = Some(planned.fault.clone());
            }
        }
        self.planned.retain(|planned| planned.times > 0);
        struck
    }
}
