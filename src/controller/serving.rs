//! When to ask a cluster again what it serves: definitions come and go without any doing of ours.

use std::fmt;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::{Catalog, Change, Client};

/// A definition is seen before its kind is served. It is asked for soon, and once more when surely all is done.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(4)];
/// A watch that breaks this often in a row has no right to what it watches.
const PATIENCE: u32 = 5;

/// Watches what makes a cluster serve something.
pub struct Serving {
    changes: BoxStream<'static, (usize, Change)>,
    /// Of each of the two that are watched.
    watched: [Watched; 2],
    /// When the cluster is asked next.
    asked_at: [Option<Instant>; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    /// A list is under way.
    lists: bool,
    /// How often it broke since it was whole.
    broken: u32,
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("asked_at", &self.asked_at).finish_non_exhaustive()
    }
}

impl Serving {
    pub fn of(client: &Client, catalog: &Catalog) -> Self {
        let (watched, asked_at) = <([Watched; 2], [Option<Instant>; 2])>::default();
        Self { changes: client.watch_served(catalog), watched, asked_at }
    }

    /// Something else is served, or will be in a moment.
    pub fn moved(&mut self) {
        let [soon, late] = PAUSES.map(|pause| Instant::now() + pause);
        // The first is not put off by what keeps coming.
        self.asked_at = [self.asked_at[0].or(Some(soon)), Some(late)];
    }

    /// Waits until the cluster shall be asked. May be dropped and called again.
    pub async fn next(&mut self, catalog: &Catalog) {
        loop {
            let at = self.asked_at.iter().flatten().min().copied();
            tokio::select! {
                () = sleep_until(at) => {
                    let now = Instant::now();
                    self.asked_at = self.asked_at.map(|at| at.filter(|at| *at > now));
                    return;
                }
                Some((index, change)) = self.changes.next(), if !self.is_refused() => {
                    self.take(index, change, catalog);
                }
            }
        }
    }

    fn is_refused(&self) -> bool {
        self.watched.iter().any(|watched| watched.broken >= PATIENCE)
    }

    fn take(&mut self, index: usize, change: Change, catalog: &Catalog) {
        let Some(watched) = self.watched.get_mut(index) else { return };
        let moved = match change {
            Change::Listing => {
                watched.lists = true;
                false
            }
            Change::Listed => {
                watched.lists = false;
                // What went while the watch was broken is not told.
                std::mem::take(&mut watched.broken) > 0
            }
            // A list tells of everything: only what is not served already is news.
            Change::Seen(object) => !watched.lists || !catalog.holds(name_of(&object)),
            Change::Left(_) => true,
            Change::Broken(error) => {
                watched.broken += 1;
                if watched.broken == PATIENCE {
                    tracing::warn!(
                        error,
                        "definitions cannot be watched: new kinds are found when they are needed"
                    );
                }
                false
            }
        };
        if moved {
            self.moved();
        }
    }
}

fn name_of(object: &Value) -> &str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get("name"))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
