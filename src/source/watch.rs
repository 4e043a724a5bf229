//! Decides when to fetch again: by polling, and for a local path when a reference moves. A hook is only a hint, so polling never stops;
//! it slows down while verified hooks arrive.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The shortest poll interval while hooks arrive.
const RELAXED_INTERVAL: Duration = Duration::from_secs(5 * 60);
/// Hooks count as arriving until this long after the last one.
const HOOK_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// The fraction by which a poll may be early or late, so that instances spread out.
const JITTER: f64 = 0.1;
/// Debounces file events: one commit moves several files.
const DEBOUNCE: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeReason {
    /// The interval is over.
    Poll,
    /// A reference of the local repository moved.
    Changed,
}

/// Reports hooks and setting changes to the watch.
#[derive(Clone, Debug)]
pub struct WatchControl {
    shared: Arc<RepositoryWatchState>,
}

#[derive(Debug)]
struct RepositoryWatchState {
    schedule: Mutex<PollSchedule>,
    interval_changed: Notify,
    reference_moved: Notify,
}

#[derive(Clone, Copy, Debug)]
struct PollSchedule {
    interval: Duration,
    last_hook: Option<Instant>,
}

impl PollSchedule {
    /// The current interval, and when it ends without another event.
    fn interval_at(&self, now: Instant) -> (Duration, Option<Instant>) {
        match self.last_hook.map(|hook| hook + HOOK_TIMEOUT) {
            Some(until) if now < until => (self.interval.max(RELAXED_INTERVAL), Some(until)),
            _ => (self.interval, None),
        }
    }
}

impl WatchControl {
    /// A hook with a valid signature arrived.
    pub fn record_hook(&self) {
        self.shared.schedule.lock().last_hook = Some(Instant::now());
        self.shared.interval_changed.notify_one();
    }

    pub fn set_interval(&self, interval: Duration) {
        self.shared.schedule.lock().interval = interval;
        self.shared.interval_changed.notify_one();
    }
}

/// The stream of reasons to fetch.
#[derive(Debug)]
pub struct RepositoryWatch {
    shared: Arc<RepositoryWatchState>,
    random: StdRng,
    last_wake: Instant,
    /// Between `1 - JITTER` and `1 + JITTER`; drawn once per poll.
    jitter_factor: f64,
    /// A reference moved, which was not returned yet.
    has_pending_move: bool,
    /// Lives as long as the watch; dropping it ends the notifications.
    _files: Option<RecommendedWatcher>,
}

impl RepositoryWatch {
    /// Only by the clock.
    pub fn polling(interval: Duration, seed: u64) -> Self {
        let shared = RepositoryWatchState {
            schedule: Mutex::new(PollSchedule { interval, last_hook: None }),
            interval_changed: Notify::new(),
            reference_moved: Notify::new(),
        };
        let mut random = StdRng::seed_from_u64(seed);
        let factor = draw_jitter(&mut random);
        Self {
            shared: Arc::new(shared),
            random,
            last_wake: Instant::now(),
            jitter_factor: factor,
            has_pending_move: false,
            _files: None,
        }
    }

    /// By the clock, and when a reference moves: `own` is the Git folder of the worktree, `common` that
    /// of the repository; they differ for linked worktrees.
    pub(super) fn of_references(interval: Duration, seed: u64, own: &Path, common: &Path) -> Self {
        let mut watch = Self::polling(interval, seed);
        match watch_files(&watch.shared, own, common) {
            Ok(files) => watch._files = Some(files),
            Err(error) => {
                tracing::warn!(path = %own.display(), %error, "failed to watch the repository, only polling it");
            }
        }
        watch
    }

    pub fn control(&self) -> WatchControl {
        WatchControl { shared: Arc::clone(&self.shared) }
    }

    /// Waits for the next reason. Cancel safe.
    pub async fn next(&mut self) -> WakeReason {
        let shared = Arc::clone(&self.shared);
        loop {
            if self.has_pending_move {
                tokio::time::sleep(DEBOUNCE).await;
                // Moves during the debounce belong to the same change.
                let _ = shared.reference_moved.notified().now_or_never();
                self.restart();
                return WakeReason::Changed;
            }
            let now = Instant::now();
            let (interval, change) = shared.schedule.lock().interval_at(now);
            let due = self.last_wake + interval.mul_f64(self.jitter_factor);
            if due <= now {
                self.restart();
                return WakeReason::Poll;
            }
            let until = change.map_or(due, |change| due.min(change));
            tokio::select! {
                biased;
                () = shared.reference_moved.notified() => self.has_pending_move = true,
                () = shared.interval_changed.notified() => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    fn restart(&mut self) {
        self.last_wake = Instant::now();
        self.jitter_factor = draw_jitter(&mut self.random);
        self.has_pending_move = false;
    }
}

fn draw_jitter(random: &mut StdRng) -> f64 {
    random.random_range(1.0 - JITTER..=1.0 + JITTER)
}

fn watch_files(
    shared: &Arc<RepositoryWatchState>,
    own: &Path,
    common: &Path,
) -> notify::Result<RecommendedWatcher> {
    let shared = Arc::clone(shared);
    let references = common.join("refs");
    let seen = references.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // Lost events count as a change, because a fetch is cheap.
        if event.map_or(true, |event| event.need_rescan() || moves_reference(&event, &seen)) {
            shared.reference_moved.notify_one();
        }
    })?;
    watcher.watch(own, RecursiveMode::NonRecursive)?;
    if common != own {
        watcher.watch(common, RecursiveMode::NonRecursive)?;
    }
    watcher.watch(&references, RecursiveMode::Recursive)?;
    Ok(watcher)
}

/// Reading references makes events too, and writing one starts with a lock file.
fn moves_reference(event: &Event, references: &Path) -> bool {
    !event.kind.is_access()
        && event.paths.iter().any(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name == "HEAD"
                || name == "packed-refs"
                || (path.starts_with(references) && !name.ends_with(".lock"))
        })
}
