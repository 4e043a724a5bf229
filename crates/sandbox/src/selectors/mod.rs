//! Label and field selectors of lists and watches.

mod field;
mod label;
mod label_syntax;
mod requirement;

use crate::api_error::ApiError;
use crate::registry::ResourceKind;

pub(crate) use label::LabelSelector;

/// The `labelSelector` and `fieldSelector` of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestSelector {
    labels: LabelSelector,
    fields: field::FieldSelector,
}

impl RequestSelector {
    pub(crate) fn parse(kind: &ResourceKind, labels: &str, fields: &str) -> Result<Self, ApiError> {
        Ok(Self { labels: LabelSelector::parse(labels)?, fields: field::FieldSelector::parse(kind, fields)? })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Labels that whatever matches carries with just these values.
    pub(crate) fn required_labels(&self) -> Vec<(&str, &str)> {
        self.labels.pairs()
    }

    /// Does it match an object, given as its text?
    pub(crate) fn matches_text(&self, object: &[u8]) -> bool {
        self.labels.matches_text(object) && self.fields.matches_text(object)
    }
}
