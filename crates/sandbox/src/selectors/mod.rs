//! Which objects a list or watch wants.

mod field;
mod label;

use serde_json::Value;

use crate::registry::ResourceKind;
use crate::status::ApiError;

pub(crate) use label::LabelSelector;

/// The `labelSelector` and `fieldSelector` of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector {
    labels: LabelSelector,
    fields: field::FieldSelector,
}

impl Selector {
    pub(crate) fn parse(kind: &ResourceKind, labels: &str, fields: &str) -> Result<Self, ApiError> {
        Ok(Self { labels: LabelSelector::parse(labels)?, fields: field::FieldSelector::parse(kind, fields)? })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }
}
