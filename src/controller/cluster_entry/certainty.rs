//! How far the observed state of a cluster is complete.
//!
//! | | needs | allows |
//! |---|---|---|
//! | `is_ready` | it answers, and its kubeconfig is that of the connection | lookups |
//! | `has_listed` (in `cluster_entry.rs`) | the lists of some kinds were read | an apply of these kinds |
//! | `is_complete` | the first list of every kind in use was read whole | |
//! | `is_whole` | ready, every kind listed, no API in doubt, renders made for what it is now | deletes |
//! | `allows_deletes_elsewhere` | complete, or offline, or refused for two minutes | deletes on other clusters |

use std::time::Duration;

use tokio::time::Instant;

use super::kind_watch::KindWatch;
use super::{ClusterEntry, ConnectionState};
use crate::model::ObjectId;

/// A list that fails in the first moments may fail because the server is starting.
pub const STARTUP_GRACE_PERIOD: Duration = Duration::from_secs(120);

impl ClusterEntry {
    /// It answers, and the connection matches its kubeconfig.
    pub fn is_ready(&self) -> bool {
        self.connection_state == ConnectionState::Ready && !self.kubeconfig_changed
    }

    /// The first list of every kind in use was read in full.
    pub fn is_complete(&self) -> bool {
        self.is_ready() && self.observation.complete
    }

    /// Observed as gone. A kind that RBAC denies now is hidden, and its objects may exist.
    pub fn has_gone(&self, id: &ObjectId, uid: &str) -> bool {
        let is_watched = || self.watches.keys().any(|kind| id.has_kind(kind));
        self.is_complete() && !self.observation.has_object(id, uid) && is_watched()
    }

    /// All facts that a delete depends on are known.
    pub fn is_whole(&self) -> bool {
        self.is_ready() && self.is_known()
    }

    /// Its objects, its APIs and the renders for it are known; for an offline cluster, as observed last. An API that was there a
    /// moment ago may return.
    pub fn is_known(&self) -> bool {
        let is_read = self.observation.complete && !self.kubeconfig_changed && self.unlisted.is_empty();
        let is_served = self.unknown_api().is_none() && self.catalog.missing().next().is_none();
        is_read && is_served && self.has_desired && !self.has_stale_renders
    }

    /// An API is missing since a moment: some seconds later it is back, or counts as gone.
    pub fn has_missing_api(&self) -> bool {
        self.is_ready() && self.catalog.missing().next().is_some()
    }

    /// An API whose own server is down and whose kinds are not known from before. What a template renders with that API is
    /// unknown.
    fn unknown_api(&self) -> Option<&String> {
        self.capabilities.as_ref().and_then(|facts| self.catalog.unknown_api_versions(facts).next())
    }

    /// A watch that cannot list its kind, so the state is incomplete; or one that lists and then reports nothing.
    pub fn watch_error(&self) -> Option<String> {
        let broken = self.watches.iter().find_map(|(kind, watch)| {
            // A watch that has listed resumes without help after a break.
            let error = watch.error.as_ref().filter(|_| !watch.is_listed)?;
            Some(format!("{kind} cannot be watched: {error}"))
        });
        let blind = || {
            let blind = self
                .watches
                .iter()
                .find_map(|(kind, watch)| Some(format!("{kind} {}", watch.silent_reason.as_ref()?)));
            blind.map(|blind| format!("{blind}: changes are seen by lists every 5 minutes"))
        };
        let unknown =
            || Some(format!("the server of {} does not answer: nothing is deleted", self.unknown_api()?));
        let unlisted = || Some(format!("{} cannot be listed: nothing is deleted", self.unlisted.first()?));
        broken.or_else(unknown).or_else(unlisted).or_else(blind)
    }

    /// Observed in full, or offline: there is nothing more to observe now.
    pub fn is_observed(&self) -> bool {
        (self.is_complete() && !self.has_stale_renders)
            || matches!(self.connection_state, ConnectionState::Offline { .. })
    }

    /// Observed as far as possible: [in full](Self::is_observed), or the missing part was refused for longer than a start takes.
    /// A refusal delays only the deletes of that cluster. Without the renders of a cluster, all its objects would look undesired.
    pub fn allows_deletes_elsewhere(&self, now: Instant) -> bool {
        let answers = |watch: &KindWatch| watch.is_listed || watch.error.is_some();
        let had_time = self.connected_at.is_some_and(|at| at + STARTUP_GRACE_PERIOD <= now);
        let has_tried = self.is_ready() && had_time && self.watches.values().all(answers);
        self.has_desired && (self.is_observed() || (has_tried && !self.has_stale_renders))
    }
}
