//! Reads the events of a watch one by one.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::Value;

use super::probe::ContractProbe;

/// An open watch.
pub struct WatchReader {
    stream: BoxStream<'static, Result<Bytes, String>>,
    unparsed: Vec<u8>,
}

impl WatchReader {
    pub fn new(stream: BoxStream<'static, Result<Bytes, String>>) -> Self {
        Self { stream, unparsed: Vec::new() }
    }

    /// The next event; `None` when the watch ended or nothing arrived for `patience`.
    pub async fn next(&mut self, patience: Duration) -> Option<Value> {
        loop {
            if let Some(end) = self.unparsed.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unparsed.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let chunk = tokio::time::timeout(patience, self.stream.next()).await.ok()??;
            self.unparsed.extend_from_slice(&chunk.unwrap());
        }
    }

    /// Records the next `count` events; fails if they do not arrive within half a minute.
    pub async fn record(&mut self, probe: &mut ContractProbe, count: usize) -> Vec<Value> {
        let mut events = Vec::new();
        for number in 1..=count {
            let event = self.next(Duration::from_secs(30)).await;
            let event = event.unwrap_or_else(|| panic!("event {number} of {count} never came"));
            probe.record_event(&event);
            events.push(event);
        }
        events
    }

    /// Whether the watch is open, and silent for this long.
    pub async fn is_silent(&mut self, patience: Duration) -> bool {
        self.unparsed.is_empty() && tokio::time::timeout(patience, self.stream.next()).await.is_err()
    }
}
