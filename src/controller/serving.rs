//! When to ask a cluster again what it serves: definitions come and go without any doing of ours.
//!
//! One answer that lacks an API removes nothing: the API counts as there, and nothing is deleted on that cluster, until it is still missing
//! some seconds later. In the same way two probes in a row must report another version. The watches of definitions and of API services
//! stand alone. One whose list is refused is tried ever more seldom; until then new kinds are found when they are needed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::{Catalog, Change, Client};

/// A definition is seen before its kind is served. It is asked for soon, and once more when surely all is done.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(4)];
/// What is missing for this long is gone: shorter than from the first ask to the last, so that the last one decides.
const GONE_AFTER: Duration = Duration::from_secs(3);
/// A list that fails this often in a row is told of: most likely we have no right to it.
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
    /// It broke since it was whole.
    broken: bool,
    /// How often it could not list since it was whole.
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

    /// Something else is served, or will be in a moment.
    pub fn moved(&mut self) {
        let [soon, late] = PAUSES.map(|pause| Instant::now() + pause);
        // The first is not put off by what keeps coming.
        self.asked_at = [self.asked_at[0].or(Some(soon)), Some(late)];
    }

    /// What is known is not sure: the cluster is asked once more.
    pub fn doubted(&mut self) {
        self.asked_at[1].get_or_insert(Instant::now() + PAUSES[1]);
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
                // What went while the watch was broken is not told.
                std::mem::take(watched).broken
            }
            // A list tells of everything: only what is not served already is news.
            Change::Seen(object) => !watched.lists || !catalog.holds(name_of(&object)),
            Change::Left(_) => true,
            // What it misses a list tells some minutes later, as after any other break.
            Change::Blind { .. } => {
                watched.broken = true;
                false
            }
            Change::Sees => false,
            Change::Broken(error) => {
                // One that goes on where it broke has missed nothing.
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

/// What is taken to be served. Lives longer than a connection: what a cluster served before it was away still counts
/// while it starts.
#[derive(Debug, Default)]
pub struct Known {
    pub catalog: Arc<Catalog>,
    /// Of the catalog, and what is still taken to be there.
    names: BTreeSet<String>,
    /// Since when.
    missing: BTreeMap<String, Instant>,
    version: String,
    /// Said by the last probe, and not by the one before.
    other_version: Option<String>,
}

impl Known {
    /// The first answer of a new connection.
    pub fn connected(&mut self, found: Catalog) {
        self.missing.clear();
        self.other_version = None;
        found.version().clone_into(&mut self.version);
        self.take(found);
    }

    /// What the cluster says that it serves; whether that is news. One answer without something is not believed: a
    /// definition is being replaced, or the server has just started.
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

    /// The last probe said another version than the one before: the next one makes sure.
    pub fn is_another_version(&self) -> bool {
        self.other_version.is_some()
    }

    /// What a probe says; whether it is another version than before. Two probes in a row must say so: while servers are
    /// upgraded one after the other they answer in turn.
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

    /// Whether the cluster is asked after these changes.
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
    async fn watches_that_break_go_on() {
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
    fn a_version_is_believed_when_it_is_said_twice_in_a_row() {
        let mut known = Known { version: "v1.33.0".to_owned(), ..Known::default() };
        let mut heard = |version: &str| known.heard(version.to_owned());
        let in_turn = ["v1.33.0", "v1.34.0", "v1.33.0", "v1.34.0", "v1.35.0"].map(&mut heard);
        assert_eq!(in_turn, [false; 5]);
        assert_eq!(["v1.35.0", "v1.35.0"].map(heard), [true, false]);
    }
}
