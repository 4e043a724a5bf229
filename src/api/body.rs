//! Reads a request body with limits of size and time.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::header::{CONTENT_LENGTH, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use futures::StreamExt;
use tokio::sync::Semaphore;

use super::problem::Problem;

/// In bytes. Forges send a few KiB; Gitea's largest pushes stay below one MiB.
pub const LARGEST: usize = 5 * 1024 * 1024;

/// In bytes. Most deliveries are smaller; larger ones need a slot.
pub(super) const SMALL: usize = 64 * 1024;

/// Gitea itself gives up after five seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the rest of a body that is too large is read.
const LINGER: Duration = Duration::from_secs(2);

/// A request body while it is read.
#[derive(Debug)]
pub(super) struct Reader {
    parts: BodyDataStream,
    count: usize,
    /// Whether bodies above [`SMALL`] are accepted.
    has_room: bool,
}

impl Reader {
    pub(super) fn new(body: Body, has_room: bool) -> Self {
        Self { parts: body.into_data_stream(), count: 0, has_room }
    }

    /// The declared length only refuses; it never replaces counting.
    pub(super) fn check_declared(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let declared = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
        self.check(declared.unwrap_or(0))
    }

    fn check(&self, length: usize) -> Result<(), Problem> {
        match length {
            _ if length > LARGEST => Err(too_large()),
            _ if length > SMALL && !self.has_room => {
                Err(busy("this address sent too much that nobody signed"))
            }
            _ => Ok(()),
        }
    }

    /// Bytes read so far.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The whole body. Fails when it is too large, takes too long, or too many large bodies arrive at once.
    pub(super) async fn read(&mut self, slots: &Semaphore) -> Result<Vec<u8>, Problem> {
        match tokio::time::timeout(PATIENCE, self.collect(slots)).await {
            Ok(bytes) => bytes,
            Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
        }
    }

    async fn collect(&mut self, slots: &Semaphore) -> Result<Vec<u8>, Problem> {
        let (mut bytes, mut slot) = (Vec::new(), None);
        while let Some(part) = self.parts.next().await {
            let part = part.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "the body broke off"))?;
            self.count += part.len();
            self.check(self.count)?;
            if self.count > SMALL && slot.is_none() {
                slot = Some(slots.try_acquire().map_err(|_| busy("too many large deliveries at once"))?);
            }
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }

    /// Reads some of the rest and drops it. A client whose connection closes while it writes sees a broken pipe
    /// instead of the response.
    pub(super) async fn discard(&mut self) {
        let reading = async {
            while let Some(Ok(part)) = self.parts.next().await
                && self.count < LARGEST * 2
            {
                self.count += part.len();
            }
        };
        // A slower client does not see the response.
        let _ = tokio::time::timeout(LINGER, reading).await;
    }
}

pub(super) fn busy(reason: &str) -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, reason).with(RETRY_AFTER, "1")
}

fn too_large() -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {LARGEST} bytes"))
}
