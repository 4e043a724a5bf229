//! What became of a write to a cluster.

use std::fmt;

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};

/// Of one apply or delete that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteResult {
    Created,
    Configured,
    Deleted,
    /// It was to be deleted, and was not there any more.
    Gone,
    /// It changed meanwhile: it is looked at again.
    Changed,
    /// It may succeed when it is sent again.
    Failed,
    /// The cluster refused it.
    Refused,
}

impl WriteResult {
    pub const ALL: [Self; 7] = [
        Self::Created,
        Self::Configured,
        Self::Deleted,
        Self::Gone,
        Self::Changed,
        Self::Failed,
        Self::Refused,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Deleted => "deleted",
            Self::Gone => "gone",
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
