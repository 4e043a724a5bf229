//! A watch stream with injected faults.

use std::io;
use std::sync::Weak;

use bytes::Bytes;
use futures::StreamExt;
use http::Response;
use http_body_util::{BodyDataStream, BodyExt};
use tokio::time::Instant;

use super::WatchTrouble;
use crate::cluster::Cluster;
use crate::seed::Seed;
use crate::status::ApiError;
use crate::wire::answer::{self, ResponseBody};

const BOOKMARK: &[u8] = b"{\"type\":\"BOOKMARK\"";

struct Disturbed {
    cluster: Weak<Cluster>,
    inner: BodyDataStream<ResponseBody>,
    cut: Option<Instant>,
    /// Lines until it breaks.
    torn: Option<u64>,
    silent: Option<Instant>,
    expired: Option<Instant>,
    duplicates: Option<(Seed, u64)>,
    late: Option<std::time::Duration>,
    /// A bookmark that waits.
    held: Option<(Instant, Bytes)>,
    /// An event to send twice.
    again: Option<Bytes>,
    over: bool,
}

/// Adds faults to a watch. Other responses pass unchanged.
pub(crate) fn disturb(
    cluster: Weak<Cluster>,
    response: Response<ResponseBody>,
    trouble: WatchTrouble,
) -> Response<ResponseBody> {
    if trouble.is_none() || !response.status().is_success() {
        return response;
    }
    let now = Instant::now();
    let disturbed = Disturbed {
        cluster,
        inner: response.into_body().into_data_stream(),
        cut: trouble.cut.map(|after| now + after),
        torn: trouble.torn,
        silent: trouble.silent.map(|after| now + after),
        expired: trouble.expired.map(|after| now + after),
        duplicates: trouble.duplicates,
        late: trouble.late,
        held: None,
        again: None,
        over: false,
    };
    answer::stream(futures::stream::unfold(disturbed, |mut disturbed| async move {
        let next = disturbed.next().await?;
        Some((next, disturbed))
    }))
}

async fn reached(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => futures::future::pending().await,
    }
}

impl Disturbed {
    async fn next(&mut self) -> Option<Result<Bytes, io::Error>> {
        loop {
            if self.over {
                return None;
            }
            if let Some(line) = self.again.take() {
                return Some(Ok(line));
            }
            tokio::select! {
                biased;
                () = reached(self.cut) => {
                    self.over = true;
                    return Some(Err(cut()));
                }
                () = reached(self.expired) => {
                    self.over = true;
                    return Some(Ok(expired()));
                }
                () = reached(self.held.as_ref().map(|(at, _)| *at)) => {
                    return self.held.take().map(|(_, line)| Ok(line));
                }
                line = self.inner.next() => match line? {
                    Ok(_) if self.torn == Some(0) => {
                        self.over = true;
                        return Some(Err(cut()));
                    }
                    Ok(line) => if let Some(line) = self.passed(line) { return Some(Ok(line)) },
                    Err(error) => {
                        self.over = true;
                        return Some(Err(error));
                    }
                },
            }
        }
    }

    /// The event, unless it is delayed.
    fn passed(&mut self, line: Bytes) -> Option<Bytes> {
        let now = Instant::now();
        self.torn = self.torn.map(|lines| lines.saturating_sub(1));
        if self.silent.is_some_and(|from| from <= now) {
            return None;
        }
        if line.starts_with(BOOKMARK) {
            let ends_initial = line.windows(18).any(|part| part == b"initial-events-end");
            return match self.late {
                Some(by) if !ends_initial && self.held.is_none() => {
                    self.count("late-bookmarks");
                    self.held = Some((now + by, line));
                    None
                }
                _ => Some(line),
            };
        }
        if let Some((seed, per_mille)) = &mut self.duplicates
            && seed.below(1000) < *per_mille
        {
            self.again = Some(line.clone());
            self.count("duplicate-events");
        }
        Some(line)
    }

    fn count(&self, name: &str) {
        if let Some(cluster) = self.cluster.upgrade() {
            cluster.faults.lock().count(name);
        }
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection was cut")
}

fn expired() -> Bytes {
    let status = ApiError::expired(0, 0).status();
    format!("{}\n", serde_json::json!({"type": "ERROR", "object": status})).into()
}
