//! Reads a request body with limits of size and time.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::header::{CONTENT_LENGTH, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use futures::StreamExt;
use tokio::sync::Semaphore;

use super::problem::Problem;

/// In bytes. Forges send a few KiB; Gitea's largest pushes stay below one MiB.
pub const LARGEST_BODY: usize = 5 * 1024 * 1024;

/// In bytes. Most deliveries are smaller; larger ones need a slot.
pub(super) const SMALL_BODY_BYTES: usize = 64 * 1024;

/// Gitea itself gives up after five seconds.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the rest of a body that is too large is read.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// A request body while it is read.
#[derive(Debug)]
pub(super) struct BodyReader {
    stream: BodyDataStream,
    received_bytes: usize,
    /// Whether bodies above [`SMALL_BODY_BYTES`] are accepted.
    allows_large: bool,
}

impl BodyReader {
    pub(super) fn new(body: Body, has_room: bool) -> Self {
        Self { stream: body.into_data_stream(), received_bytes: 0, allows_large: has_room }
    }

    /// The declared length only refuses; it never replaces counting.
    pub(super) fn check_content_length(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let declared = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
        self.check_length(declared.unwrap_or(0))
    }

    fn check_length(&self, length: usize) -> Result<(), Problem> {
        match length {
            _ if length > LARGEST_BODY => Err(too_large()),
            _ if length > SMALL_BODY_BYTES && !self.allows_large => {
                Err(too_many_requests("this address sent too much data without a valid signature"))
            }
            _ => Ok(()),
        }
    }

    /// Bytes read so far.
    pub(super) fn received_bytes(&self) -> usize {
        self.received_bytes
    }

    /// The whole body. Fails when it is too large, takes too long, or too many large bodies arrive at once.
    pub(super) async fn read(&mut self, slots: &Semaphore) -> Result<Vec<u8>, Problem> {
        match tokio::time::timeout(READ_TIMEOUT, self.collect(slots)).await {
            Ok(bytes) => bytes,
            Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
        }
    }

    async fn collect(&mut self, slots: &Semaphore) -> Result<Vec<u8>, Problem> {
        let (mut bytes, mut slot) = (Vec::new(), None);
        while let Some(part) = self.stream.next().await {
            let part = part.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "the body broke off"))?;
            self.received_bytes += part.len();
            self.check_length(self.received_bytes)?;
            if self.received_bytes > SMALL_BODY_BYTES && slot.is_none() {
                slot = Some(
                    slots
                        .try_acquire()
                        .map_err(|_| too_many_requests("too many large deliveries at once"))?,
                );
            }
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }

    /// Reads some of the rest and drops it. A client whose connection closes while it writes sees a broken pipe
    /// instead of the response.
    pub(super) async fn discard(&mut self) {
        let reading = async {
            while let Some(Ok(part)) = self.stream.next().await
                && self.received_bytes < LARGEST_BODY * 2
            {
                self.received_bytes += part.len();
            }
        };
        // A slower client does not see the response.
        let _ = tokio::time::timeout(DISCARD_TIMEOUT, reading).await;
    }
}

pub(super) fn too_many_requests(reason: &str) -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, reason).with_header(RETRY_AFTER, "1")
}

fn too_large() -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {LARGEST_BODY} bytes"))
}
