//! A delivery with a valid signature, and what bounds its id and its signed time.

use std::time::Duration;

use jiff::Timestamp;

use crate::forge::WebhookRejection;

/// The allowed difference between the clocks, if the time is signed.
const CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);
/// A delivery id is a UUID. Much longer ids are not remembered.
pub const LONGEST_DELIVERY: usize = 128;

/// A delivery with a valid signature.
#[derive(Debug)]
pub struct VerifiedDelivery {
    pub(super) body: Vec<u8>,
    /// The sender's id, or one made of the signed content; a repeated delivery has the same.
    pub delivery: Option<String>,
}

/// Checks a signed time.
pub fn check_time(at: Timestamp, now: Timestamp) -> Result<(), WebhookRejection> {
    // The range of this type is some ten thousand years, so this cannot overflow.
    if at.duration_since(now).unsigned_abs() > CLOCK_SKEW {
        return Err(WebhookRejection::Unauthorized(
            "its time and the time of this machine differ by more than five minutes",
        ));
    }
    Ok(())
}
