//! A watch stream with injected faults.

use std::io;
use std::sync::Weak;

use bytes::Bytes;
use futures::StreamExt;
use http::Response;
use http_body_util::{BodyDataStream, BodyExt};
use tokio::time::Instant;

use super::fault_state::WatchFaults;
use crate::api_error::ApiError;
use crate::cluster::SandboxCluster;
use crate::seed::Seed;
use crate::wire::response::{self, ResponseBody};

const BOOKMARK: &[u8] = b"{\"type\":\"BOOKMARK\"";

struct FaultyWatch {
    cluster: Weak<SandboxCluster>,
    inner: BodyDataStream<ResponseBody>,
    cut_at: Option<Instant>,
    /// Lines until it breaks.
    broken_after_events: Option<u64>,
    silent_from: Option<Instant>,
    expired_at: Option<Instant>,
    duplicates: Option<(Seed, u64)>,
    bookmark_delay: Option<std::time::Duration>,
    /// A bookmark that waits.
    delayed_bookmark: Option<(Instant, Bytes)>,
    /// An event to send twice.
    repeated_event: Option<Bytes>,
    is_finished: bool,
}

/// Adds faults to a watch. Other responses pass unchanged.
pub(crate) fn with_watch_faults(
    cluster: Weak<SandboxCluster>,
    response: Response<ResponseBody>,
    trouble: WatchFaults,
) -> Response<ResponseBody> {
    if trouble.is_none() || !response.status().is_success() {
        return response;
    }
    let now = Instant::now();
    let disturbed = FaultyWatch {
        cluster,
        inner: response.into_body().into_data_stream(),
        cut_at: trouble.cut_after.map(|after| now + after),
        broken_after_events: trouble.broken_after_events,
        silent_from: trouble.silent_after.map(|after| now + after),
        expired_at: trouble.expired_after.map(|after| now + after),
        duplicates: trouble.duplicates,
        bookmark_delay: trouble.bookmark_delay,
        delayed_bookmark: None,
        repeated_event: None,
        is_finished: false,
    };
    response::stream(futures::stream::unfold(disturbed, |mut disturbed| async move {
        let next = disturbed.next().await?;
        Some((next, disturbed))
    }))
}

async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => futures::future::pending().await,
    }
}

impl FaultyWatch {
    async fn next(&mut self) -> Option<Result<Bytes, io::Error>> {
        loop {
            if self.is_finished {
                return None;
            }
            if let Some(line) = self.repeated_event.take() {
                return Some(Ok(line));
            }
            tokio::select! {
                biased;
                () = wait_until(self.cut_at) => {
                    self.is_finished = true;
                    return Some(Err(connection_error()));
                }
                () = wait_until(self.expired_at) => {
                    self.is_finished = true;
                    return Some(Ok(expired_event()));
                }
                () = wait_until(self.delayed_bookmark.as_ref().map(|(at, _)| *at)) => {
                    return self.delayed_bookmark.take().map(|(_, line)| Ok(line));
                }
                line = self.inner.next() => match line? {
                    Ok(_) if self.broken_after_events == Some(0) => {
                        self.is_finished = true;
                        return Some(Err(connection_error()));
                    }
                    Ok(line) => if let Some(line) = self.due_event(line) { return Some(Ok(line)) },
                    Err(error) => {
                        self.is_finished = true;
                        return Some(Err(error));
                    }
                },
            }
        }
    }

    /// The event, unless it is delayed.
    fn due_event(&mut self, line: Bytes) -> Option<Bytes> {
        let now = Instant::now();
        self.broken_after_events = self.broken_after_events.map(|lines| lines.saturating_sub(1));
        if self.silent_from.is_some_and(|from| from <= now) {
            return None;
        }
        if line.starts_with(BOOKMARK) {
            let ends_initial = line.windows(18).any(|part| part == b"initial-events-end");
            return match self.bookmark_delay {
                Some(by) if !ends_initial && self.delayed_bookmark.is_none() => {
                    self.count("late-bookmarks");
                    self.delayed_bookmark = Some((now + by, line));
                    None
                }
                _ => Some(line),
            };
        }
        if let Some((seed, per_mille)) = &mut self.duplicates
            && seed.below(1000) < *per_mille
        {
            self.repeated_event = Some(line.clone());
            self.count("duplicate-events");
        }
        Some(line)
    }

    fn count(&self, name: &str) {
        if let Some(cluster) = self.cluster.upgrade() {
            cluster.faults.lock().count_fault(name);
        }
    }
}

fn connection_error() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection was cut")
}

fn expired_event() -> Bytes {
    let status = ApiError::expired(0, 0).status();
    format!("{}\n", serde_json::json!({"type": "ERROR", "object": status})).into()
}
