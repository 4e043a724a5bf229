//! Reads a body up to a cap and for a bounded time.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use futures::StreamExt;

use super::problem::Problem;

/// In bytes. Forges send a few KiB; Gitea's largest pushes stay below one MiB.
pub(super) const LARGEST: usize = 5 * 1024 * 1024;

/// Gitea gives up after five seconds itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a sender of too much is listened to.
const LINGER: Duration = Duration::from_secs(2);

/// What the sender says about the length is believed only when it is too much.
pub(super) fn check_declared(headers: &HeaderMap) -> Result<(), Problem> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > LARGEST) {
        return Err(too_large());
    }
    Ok(())
}

/// All of it, unless there is too much or it takes too long.
pub(super) async fn read(body: Body) -> Result<Vec<u8>, Problem> {
    match tokio::time::timeout(PATIENCE, collect(body)).await {
        Ok(bytes) => bytes,
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
    }
}

/// Reads on a little and throws it away: a sender whose connection is closed while it still writes
/// sees a broken pipe and never the answer.
pub(super) async fn discard(body: Body) {
    let mut left = LARGEST * 2;
    let mut parts = body.into_data_stream();
    let reading = async {
        while let Some(Ok(part)) = parts.next().await
            && part.len() <= left
        {
            left -= part.len();
        }
    };
    // Whoever is slower than this does not get to read the answer.
    let _ = tokio::time::timeout(LINGER, reading).await;
}

async fn collect(body: Body) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    let mut parts = body.into_data_stream();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "the body broke off"))?;
        if bytes.len() + part.len() > LARGEST {
            return Err(too_large());
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

fn too_large() -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {LARGEST} bytes"))
}
