//! Starts the loads of the config repository, and takes over the loaded head.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument as _;

use super::event::Event;
use super::load::{self, LoadRequest};
use super::load_result::{GitLoadResult, LoadError};
use super::mistakes::log_mistakes;
use super::settings::RunUntil;
use super::state::{ControllerState, RELOAD_FIRST};
use crate::model::Revision;
use crate::report::WriteCounts;

/// The longest delay before Git is read again when only a commit is missing.
const RELOAD_MAX_BEHIND: Duration = Duration::from_secs(8);

impl ControllerState {
    /// Starts a load, unless one is in progress.
    pub(super) fn load(&mut self) {
        if self.is_stopping {
            return;
        }
        if self.is_loading {
            self.is_reload_requested = true;
            return;
        }
        self.is_loading = true;
        let ask = LoadRequest {
            origin: self.settings.origin.clone(),
            charts: Arc::clone(&self.settings.charts),
            home: self.settings.home.clone(),
            grants: Arc::clone(&self.settings.grants),
            registry: Arc::clone(&self.registry),
            manifest_cache: Arc::clone(&self.manifest_cache),
            events: self.events.clone(),
            known_revision: self.head.clone(),
            registered: self.snapshot.as_ref().and_then(|snapshot| snapshot.registry.clone()),
            holders: self.fleet.as_ref().map(|fleet| Arc::clone(&fleet.identity_owners)).unwrap_or_default(),
            awaited_commit: self.awaited_commit.clone(),
            accepts_non_fast_forward: self.non_fast_forward.is_confirmed(Instant::now()),
        };
        let events = self.events.clone();
        tokio::spawn(async move {
            let span = tracing::trace_span!("load", revision = tracing::field::Empty);
            let loaded = load::load(ask).instrument(span.clone()).await;
            if let Ok(GitLoadResult { news: Some(news), .. }) = &loaded {
                span.record("revision", news.revision.short());
            }
            drop(span);
            // The send fails only when the controller has stopped.
            let _ = events.send(Event::Loaded(loaded.map(Box::new))).await;
        });
    }

    fn finish_loading(&mut self) {
        self.is_loading = false;
        if std::mem::take(&mut self.is_reload_requested) {
            self.load();
        }
    }

    pub(super) fn handle_load_failure(&mut self, error: LoadError) {
        self.schedule_reload(error);
        self.finish_loading();
    }

    fn schedule_reload(&mut self, error: LoadError) {
        // At the start nothing runs yet, and the caller shows the error.
        if self.fleet.is_some() {
            tracing::warn!(
                error = error.message,
                help = error.help,
                "failed to read the config repository; the last commit stays in effect"
            );
        }
        self.load_error = Some(error);
        self.reload_at = Some(Instant::now() + self.reload_pause);
        self.reload_pause = (self.reload_pause * 2).min(self.instance.poll.max(RELOAD_FIRST));
    }

    pub(super) fn handle_loaded(&mut self, loaded: GitLoadResult) {
        self.load_error = None;
        self.reload_at = None;
        self.reload_pause = RELOAD_FIRST;
        // Registry data alone is not an answer of Git.
        let is_from_git = loaded.git_error.is_none();
        if is_from_git {
            self.settings.metrics.record_source_read(Instant::now());
        }
        // The commit that a hook named is missing: the replication of the forge is behind. It is requested after 1, 2, 4 and 8 s;
        // after that the next poll finds it.
        if self.is_reload_requested {
            // A hook during this load named a commit that the load did not look for.
        } else if loaded.is_behind && self.awaited_pause <= RELOAD_MAX_BEHIND {
            self.reload_at = Some(Instant::now() + self.awaited_pause);
            self.awaited_pause *= 2;
        } else if is_from_git {
            self.awaited_commit = None;
        }
        if is_from_git
            && let Some(again) = self.non_fast_forward.observe(
                loaded.non_fast_forward.as_ref(),
                self.head.as_ref(),
                Instant::now(),
            )
        {
            self.reload_at = Some(self.reload_at.map_or(again, |at| at.min(again)));
        }
        if let Some(mut news) = loaded.news {
            news.snapshot.keys = self.settings.keys.clone();
            let fleet = Arc::new(news.fleet);
            tracing::info!(
                revision = news.revision.short(),
                errors = fleet.diagnostics.iter().filter(|it| it.is_error()).count(),
                "read the config repository"
            );
            // A command that runs once shows them at its end.
            if matches!(self.settings.until, RunUntil::Stopped) && self.settings.mode.is_none() {
                log_mistakes(&fleet, self.fleet.as_deref());
            }
            self.track_commits(&news.revision, &news.recent_commits, news.seen_at);
            // If only the registered clusters changed, the deletes of the commit so far still count.
            let is_same = self.head.as_ref() == Some(&news.revision);
            self.head = Some(news.revision.clone());
            if !is_same {
                self.writes = WriteCounts::default();
            }
            // Also when it was the head before: a commit in between may have changed the state.
            self.rendered_head = None;
            if !is_same {
                self.prune.begin_head(&self.in_flight);
            }
            self.blamed_diagnostics = load::blame(&fleet, &news.snapshot);
            // The first heads may come faster than their renders: they have no targets yet.
            let before = self.fleet.clone().filter(|_| self.renders.is_first());
            self.update_fleet(Arc::clone(&fleet));
            if let Some(before) = before {
                self.add_pending_removals(fleet.removed_targets(&before), &news.revision);
            }
            self.history.set_registered_clusters(news.snapshot.registry.clone());
            let is_other = self.open_outbox(news.recent_commits, news.token, fleet.is_usable());
            if !is_same || is_other {
                self.post_pending();
            }
            self.snapshot = Some(Arc::new(news.snapshot));
            self.render();
        }
        if let Some(error) = loaded.git_error {
            self.schedule_reload(error);
        }
        self.finish_loading();
    }

    /// Sets the commits that get statuses: this head, those between it and the previous one, and those tracked before.
    fn track_commits(&mut self, head: &Revision, recent: &[Revision], seen: Instant) {
        let newer: Vec<Revision> = match &self.head {
            Some(known) => recent.iter().take_while(|commit| *commit != known).cloned().collect(),
            None => vec![head.clone()],
        };
        // The push time of the first head is unknown.
        if self.head.is_some() {
            newer.iter().rev().for_each(|commit| self.settings.metrics.record_commit(commit, seen));
        }
        self.tracked_commits.retain(|commit| !newer.contains(commit));
        self.tracked_commits.splice(0..0, newer);
        let unfinished = self.unfinished_commits();
        let mut number = 0;
        self.tracked_commits.retain(|commit| {
            number += 1;
            number <= load::MAX_TRACKED_COMMITS || unfinished.contains(commit)
        });
    }
}
