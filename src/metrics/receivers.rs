//! Counts webhook deliveries by receiver. The names come from Git.

use std::collections::BTreeSet;
use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};

/// Names with their own series in the life of a process; with all verdicts below a thousand series.
const MAX_RECEIVERS: usize = 64;
/// The label of further names.
const OTHER_RECEIVER: &str = "other";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct DeliveryLabels {
    pub receiver: String,
    pub verdict: DeliveryResult,
}

/// The result of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryResult {
    Accepted,
    /// A repeated delivery.
    Duplicate,
    /// Valid, without an effect.
    Ignored,
    UnknownReceiver,
    /// The receiver has no secret.
    Disabled,
    /// No signature, or a wrong one.
    Unauthorized,
    /// An unsupported media type or unreadable content.
    Malformed,
    TooLarge,
    /// The body did not arrive in time.
    TimedOut,
    RateLimited,
    /// The process is stopping.
    Unavailable,
}

impl DeliveryResult {
    pub const ALL: [Self; 11] = [
        Self::Accepted,
        Self::Duplicate,
        Self::Ignored,
        Self::UnknownReceiver,
        Self::Disabled,
        Self::Unauthorized,
        Self::Malformed,
        Self::TooLarge,
        Self::TimedOut,
        Self::RateLimited,
        Self::Unavailable,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Duplicate => "duplicate",
            Self::Ignored => "ignored",
            Self::UnknownReceiver => "unknown_receiver",
            Self::Disabled => "disabled",
            Self::Unauthorized => "unauthorized",
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::TimedOut => "timed_out",
            Self::RateLimited => "rate_limited",
            Self::Unavailable => "unavailable",
        }
    }
}

impl EncodeLabelValue for DeliveryResult {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.as_str(), encoder)
    }
}

/// The names used so far. Names removed from Git stay, as counters do.
#[derive(Debug, Default)]
pub(super) struct ReceiverNames(BTreeSet<String>);

impl ReceiverNames {
    /// Empty for an unknown receiver: text from a request's path is never a label.
    pub(super) fn label(&mut self, receiver: Option<&str>) -> String {
        let Some(name) = receiver else { return String::new() };
        if self.0.contains(name) || self.0.len() < MAX_RECEIVERS && self.0.insert(name.to_owned()) {
            return name.to_owned();
        }
        OTHER_RECEIVER.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_names_share_one_label() {
        let mut receivers = ReceiverNames::default();
        assert_eq!(receivers.label(None), "");
        for number in 0..MAX_RECEIVERS {
            let name = format!("gitea-{number}");
            assert_eq!(receivers.label(Some(&name)), name);
        }
        assert_eq!(receivers.label(Some("one-more")), "other");
        assert_eq!(receivers.label(Some("gitea-0")), "gitea-0");
    }
}
