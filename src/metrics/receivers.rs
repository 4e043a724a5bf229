//! Counts webhook deliveries by receiver. The names come from Git.

use std::collections::BTreeSet;
use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};

/// Names with their own series in the life of a process; with all verdicts below a thousand series.
const MOST: usize = 64;
/// The label of further names.
const OTHERS: &str = "other";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Delivery {
    pub receiver: String,
    pub verdict: Verdict,
}

/// The result of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
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

impl Verdict {
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

impl EncodeLabelValue for Verdict {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.as_str(), encoder)
    }
}

/// The names used so far. Names removed from Git stay, as counters do.
#[derive(Debug, Default)]
pub(super) struct Receivers(BTreeSet<String>);

impl Receivers {
    /// Empty for an unknown receiver: text from a request's path is never a label.
    pub(super) fn shown(&mut self, receiver: Option<&str>) -> String {
        let Some(name) = receiver else { return String::new() };
        if self.0.contains(name) || self.0.len() < MOST && self.0.insert(name.to_owned()) {
            return name.to_owned();
        }
        OTHERS.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_names_share_one_label() {
        let mut receivers = Receivers::default();
        assert_eq!(receivers.shown(None), "");
        for number in 0..MOST {
            let name = format!("gitea-{number}");
            assert_eq!(receivers.shown(Some(&name)), name);
        }
        assert_eq!(receivers.shown(Some("one-more")), "other");
        assert_eq!(receivers.shown(Some("gitea-0")), "gitea-0");
    }
}
