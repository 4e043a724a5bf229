//! Makes the outcome of a delivery: accepted with its payload, or ignored.

use std::sync::Arc;

use super::headers::LONGEST_SHOWN;
use crate::forge::{WebhookHint, WebhookOutcome};
use crate::model::short_line;

/// In bytes, of a payload that is kept for triggers.
pub const LARGEST_PAYLOAD: usize = 64 * 1024;

/// Keeps the payload for triggers.
pub fn with_payload(payload: serde_json::Value, size: usize, hint: WebhookHint) -> WebhookOutcome {
    // The compact form is computed only if whitespace or escapes could matter.
    if size > LARGEST_PAYLOAD && payload.to_string().len() > LARGEST_PAYLOAD {
        return ignored(format!("the payload is larger than {LARGEST_PAYLOAD} bytes"));
    }
    WebhookOutcome::Accepted(WebhookHint { payload: Some(Arc::new(payload)), ..hint })
}

pub fn ignored(reason: impl Into<String>) -> WebhookOutcome {
    WebhookOutcome::Ignored { reason: reason.into() }
}

/// The event name may be as long as the delivery, and it is part of the answer.
pub fn ignored_event(event: &str) -> WebhookOutcome {
    ignored(format!("event `{}` is not of interest", short_line(event, LONGEST_SHOWN).escape_debug()))
}
