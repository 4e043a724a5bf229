//! Reads the events of a watch one by one.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::Value;

use super::probe::Probe;

/// An open watch.
pub struct Watch {
    stream: BoxStream<'static, Result<Bytes, String>>,
    rest: Vec<u8>,
}

impl Watch {
    pub fn new(stream: BoxStream<'static, Result<Bytes, String>>) -> Self {
        Self { stream, rest: Vec::new() }
    }

    /// The next event; `None` when the watch ended or nothing arrived for `patience`.
    pub async fn next(&mut self, patience: Duration) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let chunk = tokio::time::timeout(patience, self.stream.next()).await.ok()??;
            self.rest.extend_from_slice(&chunk.unwrap());
        }
    }

    /// Records the next `count` events; fails if they do not arrive within half a minute.
    pub async fn record(&mut self, probe: &mut Probe, count: usize) -> Vec<Value> {
        let mut events = Vec::new();
        for number in 1..=count {
            let event = self.next(Duration::from_secs(30)).await;
            let event = event.unwrap_or_else(|| panic!("event {number} of {count} never came"));
            probe.event(&event);
            events.push(event);
        }
        events
    }

    /// Whether the watch is open, and silent for this long.
    pub async fn is_silent(&mut self, patience: Duration) -> bool {
        self.rest.is_empty() && tokio::time::timeout(patience, self.stream.next()).await.is_err()
    }
}
