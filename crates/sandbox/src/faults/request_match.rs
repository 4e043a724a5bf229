//! Selects the requests that a fault applies to.

use crate::request_record::RequestRecord;

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

    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
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
