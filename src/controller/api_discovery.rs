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

use crate::cluster::{Catalog, Client, WatchChange};

/// A definition appears before its kind is served. Discovery runs soon after it, and once more when the kind is surely served.
const DISCOVERY_DELAYS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(4)];
/// An API that is missing for this long is gone. This is shorter than the time between the two discoveries, so that the second
/// one decides.
const API_GONE_AFTER: Duration = Duration::from_secs(3);
/// A list that fails this often in a row is logged: most likely RBAC denies it.
const LOGGED_LIST_FAILURES: u32 = 5;

/// Watches the objects that add or remove APIs.
pub struct ApiWatch {
    changes: BoxStream<'static, (usize, WatchChange)>,
    /// The states of the two watches.
    watch_states: [ApiWatchState; 2],
    /// Times of the next discoveries.
    discovery_at: [Option<Instant>; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct ApiWatchState {
    is_listing: bool,
    /// The watch broke since its last full list.
    is_broken: bool,
    /// Failed lists since the last full list.
    list_failures: u32,
}

impl fmt::Debug for ApiWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiWatch").field("asked_at", &self.discovery_at).finish_non_exhaustive()
    }
}

impl ApiWatch {
    pub fn of(client: &Client, catalog: &Catalog) -> Self {
        let (watched, asked_at) = <([ApiWatchState; 2], [Option<Instant>; 2])>::default();
        Self { changes: client.watch_served(catalog), watch_states: watched, discovery_at: asked_at }
    }

    /// The served APIs changed, or change soon.
    pub fn schedule_discovery(&mut self) {
        let [soon, late] = DISCOVERY_DELAYS.map(|pause| Instant::now() + pause);
        // Further changes do not delay the first discovery.
        self.discovery_at = [self.discovery_at[0].or(Some(soon)), Some(late)];
    }

    /// The state is uncertain: one more discovery.
    pub fn schedule_recheck(&mut self) {
        self.discovery_at[1].get_or_insert(Instant::now() + DISCOVERY_DELAYS[1]);
    }

    /// Waits until a discovery is due. Cancel-safe.
    pub async fn wait_until_due(&mut self, catalog: &Catalog) {
        loop {
            let at = self.discovery_at.iter().flatten().min().copied();
            tokio::select! {
                () = sleep_until(at) => {
                    let now = Instant::now();
                    self.discovery_at = self.discovery_at.map(|at| at.filter(|at| *at > now));
                    return;
                }
                Some((index, change)) = self.changes.next() => self.handle_change(index, change, catalog),
            }
        }
    }

    fn handle_change(&mut self, index: usize, change: WatchChange, catalog: &Catalog) {
        let Some(watched) = self.watch_states.get_mut(index) else { return };
        let moved = match change {
            WatchChange::ListStarted => {
                watched.is_listing = true;
                false
            }
            WatchChange::ListEnded { .. } => {
                // The watch did not report what was deleted while it was broken.
                std::mem::take(watched).is_broken
            }
            // A list reports every object: only an API that the catalog lacks is new.
            WatchChange::Updated(object) => {
                !watched.is_listing || !catalog.serves_definition(name_of(&object))
            }
            WatchChange::Removed(_) => true,
            // A list some minutes later finds what the watch missed, as after any break.
            WatchChange::WatchLost { .. } => {
                watched.is_broken = true;
                false
            }
            WatchChange::WatchRestored => false,
            WatchChange::Disconnected(error) => {
                // A watch that resumed has missed nothing.
                watched.is_broken = true;
                watched.list_failures += u32::from(watched.is_listing);
                if watched.is_listing && watched.list_failures == LOGGED_LIST_FAILURES {
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
            self.schedule_discovery();
        }
    }
}

/// The APIs that count as served. Outlives a connection: the APIs from before a disconnect count while the cluster starts.
#[derive(Debug, Default)]
pub struct KnownApis {
    pub catalog: Arc<Catalog>,
    /// APIs of the catalog, and missing ones that still count.
    api_names: BTreeSet<String>,
    /// Start of the absence of each missing API.
    missing: BTreeMap<String, Instant>,
    version: String,
    /// Version that only the last probe reported.
    other_version: Option<String>,
}

impl KnownApis {
    /// The first discovery of a new connection.
    pub fn reset(&mut self, found: Catalog) {
        self.missing.clear();
        self.other_version = None;
        found.version().clone_into(&mut self.version);
        self.update(found);
    }

    /// Takes a discovery. Returns whether the APIs changed. An API must be missing in more than one discovery, because a
    /// definition may be replaced or the server may just have started.
    pub fn update(&mut self, mut found: Catalog) -> bool {
        let now = Instant::now();
        let since = std::mem::take(&mut self.missing);
        let before = std::mem::replace(&mut self.api_names, found.names().collect());
        let lost: Vec<String> = before.difference(&self.api_names).cloned().collect();
        for name in lost {
            if !found.is_in_stale_api(&name) {
                let since = since.get(&name).copied().unwrap_or(now);
                if now - since >= API_GONE_AFTER {
                    continue;
                }
                self.missing.insert(name.clone(), since);
                found.set_missing(name.clone());
            }
            self.api_names.insert(name);
        }
        found.set_version(&self.version);
        let is_news = found != *self.catalog;
        self.catalog = Arc::new(found);
        is_news
    }

    /// The last probe reported another version: the next probe confirms it.
    pub fn is_version_unconfirmed(&self) -> bool {
        self.other_version.is_some()
    }

    /// Takes the version of a probe. Returns whether the version changed. Two probes in a row must agree: during an upgrade old
    /// and new servers answer in turn.
    pub fn update_version(&mut self, version: String) -> bool {
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
    async fn check(changes: Vec<(usize, WatchChange)>, expected: bool) {
        let changes = futures::stream::iter(changes).chain(futures::stream::pending()).boxed();
        let mut serving = ApiWatch { changes, watch_states: Default::default(), discovery_at: [None; 2] };
        let catalog = Catalog::default();
        let asked = tokio::time::timeout(Duration::from_secs(1), serving.wait_until_due(&catalog)).await;
        assert_eq!(asked.is_ok(), expected);
    }

    fn seen() -> WatchChange {
        WatchChange::Updated(Box::new(json!({"metadata": {"name": "menus.example.com"}})))
    }

    #[tokio::test(start_paused = true)]
    async fn broken_watches_resume() {
        let broken = |watch| vec![(watch, WatchChange::Disconnected("cut".to_owned())); 9];
        let listed = |watch| {
            vec![
                (watch, WatchChange::ListStarted),
                (watch, WatchChange::ListEnded { version: "1".to_owned() }),
            ]
        };
        check(listed(DEFINITIONS), false).await;
        let goes_on = [listed(DEFINITIONS), broken(DEFINITIONS)].concat();
        check(goes_on.clone(), false).await;
        check([&goes_on[..], &[(DEFINITIONS, seen())]].concat(), true).await;
        check([goes_on, listed(DEFINITIONS)].concat(), true).await;
        let refused = [vec![(SERVICES, WatchChange::ListStarted)], broken(SERVICES)].concat();
        check(refused.clone(), false).await;
        check([&refused[..], &[(DEFINITIONS, seen())]].concat(), true).await;
        check([refused, listed(SERVICES)].concat(), true).await;
    }

    #[test]
    fn version_changes_after_two_equal_probes() {
        let mut known = KnownApis { version: "v1.33.0".to_owned(), ..KnownApis::default() };
        let mut heard = |version: &str| known.update_version(version.to_owned());
        let in_turn = ["v1.33.0", "v1.34.0", "v1.33.0", "v1.34.0", "v1.35.0"].map(&mut heard);
        assert_eq!(in_turn, [false; 5]);
        assert_eq!(["v1.35.0", "v1.35.0"].map(heard), [true, false]);
    }
}
