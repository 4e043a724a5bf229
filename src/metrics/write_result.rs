//! The result of a write to a cluster.

use std::fmt;

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteResult {
    Created,
    Configured,
    Deleted,
    /// The object was already deleted.
    AlreadyGone,
    /// The object changed in the meantime; it is planned again.
    Changed,
    /// A retry may succeed.
    Failed,
    /// The cluster refused the write.
    Refused,
}

impl WriteResult {
    pub const ALL: [Self; 7] = [
        Self::Created,
        Self::Configured,
        Self::Deleted,
        Self::AlreadyGone,
        Self::Changed,
        Self::Failed,
        Self::Refused,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Deleted => "deleted",
            Self::AlreadyGone => "gone",
            Self::Changed => "changed",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

impl EncodeLabelValue for WriteResult {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.as_str(), encoder)
    }
}
