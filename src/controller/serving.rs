//! Decides when to discover the APIs of a cluster again, because definitions come and go at any time.
//!
//! One discovery that lacks an API removes nothing. The API counts as present, and nothing is deleted on that cluster, until a
//! second discovery some seconds later lacks it too. In the same way two probes in a row must report another version. The watches
//! of definitions and of API services are independent. A watch whose list is refused is retried with growing delays; until then
//! new kinds are discovered when an app needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::{Catalog, Change, Client};

/// A definition appears before its kind is served. Discovery runs soon after it, and once more when the kind is surely served.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(4)];
/// An API that is missing for this long is gone. This is shorter than the time between the two discoveries, so that the second
/// one decides.
const GONE_AFTER: Duration = Duration::from_secs(3);
/// A list that fails this often in a row is logged: most likely RBAC denies it.
const PATIENCE: u32 = 5;

/// Watches the objects that add or remove APIs.
pub struct Serving {
    changes: BoxStream<'static, (usize, Change)>,
    /// The states of the two watches.
    watched: [Watched; 2],
    /// Times of the next discoveries.
    asked_at: [Option<Instant>; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    lists: bool,
    /// The watch broke since its last full list.
    broken: bool,
    /// Failed lists since the last full list.
    refused: u32,
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

    /// The served APIs changed, or change soon.
    pub fn moved(&mut self) {
        let [soon, late] = PAUSES.map(|pause| Instant::now() + pause);
        // Further changes do not delay the first discovery.
        self.asked_at = [self.asked_at[0].or(Some(soon)), Some(late)];
    }

    /// The state is uncertain: one more discovery.
    pub fn doubted(&mut self) {
        self.asked_at[1].get_or_insert(Instant::now() + PAUSES[1]);
    }

    /// Waits until a discovery is due. Cancel-safe.
    pub async fn next(&mut self, catalog: &Catalog) {
        loop {
            let at = self.asked_at.iter().flatten().min().copied();
            tokio::select! {
                () = sleep_until(at) => {
                    let now = Instant::now();
                    self.asked_at = self.asked_at.map(|at| at.filter(|at| *at > now));
                    return;
                }
                Some((index, change)) = self.changes.next() => self.take(index, change, catalog),
            }
        }
    }

    fn take(&mut self, index: usize, change: Change, catalog: &Catalog) {
        let Some(watched) = self.watched.get_mut(index) else { return };
        let moved = match change {
            Change::Listing => {
                watched.lists = true;
                false
            }
            Change::Listed { .. } => {
                // The watch did not report what was deleted while it was broken.
                std::mem::take(watched).broken
            }
            // A list reports every object: only an API that the catalog lacks is new.
            Change::Seen(object) => !watched.lists || !catalog.holds(name_of(&object)),
            Change::Left(_) => true,
            // A list some minutes later finds what the watch missed, as after any break.
            Change::Blind { .. } => {
                watched.broken = true;
                false
            }
            Change::Sees => false,
            Change::Broken(error) => {
                // A watch that resumed has missed nothing.
                watched.broken = true;
                watched.refused += u32::from(watched.lists);
                if watched.lists && watched.refused == PATIENCE {
                    tracing::warn!(
                        error,
                        "definitions or API services cannot be listed: until they can, new kinds are found when they \
                         are needed"
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

/// The APIs that count as served. Outlives a connection: the APIs from before a disconnect count while the cluster starts.
#[derive(Debug, Default)]
pub struct Known {
    pub catalog: Arc<Catalog>,
    /// APIs of the catalog, and missing ones that still count.
    names: BTreeSet<String>,
    /// Start of the absence of each missing API.
    missing: BTreeMap<String, Instant>,
    version: String,
    /// Version that only the last probe reported.
    other_version: Option<String>,
}

impl Known {
    /// The first discovery of a new connection.
    pub fn connected(&mut self, found: Catalog) {
        self.missing.clear();
        self.other_version = None;
        found.version().clone_into(&mut self.version);
        self.take(found);
    }

    /// Takes a discovery. Returns whether the APIs changed. An API must be missing in more than one discovery, because a
    /// definition may be replaced or the server may just have started.
    pub fn take(&mut self, mut found: Catalog) -> bool {
        let now = Instant::now();
        let since = std::mem::take(&mut self.missing);
        let before = std::mem::replace(&mut self.names, found.names().collect());
        let lost: Vec<String> = before.difference(&self.names).cloned().collect();
        for name in lost {
            if !found.may_serve(&name) {
                let since = since.get(&name).copied().unwrap_or(now);
                if now - since >= GONE_AFTER {
                    continue;
                }
                self.missing.insert(name.clone(), since);
                found.set_missing(name.clone());
            }
            self.names.insert(name);
        }
        found.set_version(&self.version);
        let is_news = found != *self.catalog;
        self.catalog = Arc::new(found);
        is_news
    }

    /// The last probe reported another version: the next probe confirms it.
    pub fn is_another_version(&self) -> bool {
        self.other_version.is_some()
    }

    /// Takes the version of a probe. Returns whether the version changed. Two probes in a row must agree: during an upgrade old
    /// and new servers answer in turn.
    pub fn heard(&mut self, version: String) -> bool {
        let is_other = version != self.version;
        let before = std::mem::replace(&mut self.other_version, is_other.then(|| version.clone()));
        let is_sure = is_other && before.as_deref() == Some(&*version);
        if is_sure {
            (self.version, self.other_version) = (version, None);
        }
        is_sure
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DEFINITIONS: usize = 0;
    const SERVICES: usize = 1;

    /// Whether discovery runs after these changes.
    async fn check(changes: Vec<(usize, Change)>, expected: bool) {
        let changes = futures::stream::iter(changes).chain(futures::stream::pending()).boxed();
        let mut serving = Serving { changes, watched: Default::default(), asked_at: [None; 2] };
        let catalog = Catalog::default();
        let asked = tokio::time::timeout(Duration::from_secs(1), serving.next(&catalog)).await;
        assert_eq!(asked.is_ok(), expected);
    }

    fn seen() -> Change {
        Change::Seen(Box::new(json!({"metadata": {"name": "menus.example.com"}})))
    }

    #[tokio::test(start_paused = true)]
    async fn broken_watches_resume() {
        let broken = |watch| vec![(watch, Change::Broken("cut".to_owned())); 9];
        let listed =
            |watch| vec![(watch, Change::Listing), (watch, Change::Listed { version: "1".to_owned() })];
        check(listed(DEFINITIONS), false).await;
        let goes_on = [listed(DEFINITIONS), broken(DEFINITIONS)].concat();
        check(goes_on.clone(), false).await;
        check([&goes_on[..], &[(DEFINITIONS, seen())]].concat(), true).await;
        check([goes_on, listed(DEFINITIONS)].concat(), true).await;
        let refused = [vec![(SERVICES, Change::Listing)], broken(SERVICES)].concat();
        check(refused.clone(), false).await;
        check([&refused[..], &[(DEFINITIONS, seen())]].concat(), true).await;
        check([refused, listed(SERVICES)].concat(), true).await;
    }

    #[test]
    fn version_changes_after_two_equal_probes() {
        let mut known = Known { version: "v1.33.0".to_owned(), ..Known::default() };
        let mut heard = |version: &str| known.heard(version.to_owned());
        let in_turn = ["v1.33.0", "v1.34.0", "v1.33.0", "v1.34.0", "v1.35.0"].map(&mut heard);
        assert_eq!(in_turn, [false; 5]);
        assert_eq!(["v1.35.0", "v1.35.0"].map(heard), [true, false]);
    }
}
