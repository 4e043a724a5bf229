//! The loop of the controller: handles the events, advances the state, and publishes it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::channels::{ControllerInputs, ControllerOutputs};
use super::event::Event;
use super::run_ending::RunEnding;
use super::settings::{ControllerSettings, RunUntil};
use super::state::ControllerState;
use crate::report::Overview;

/// Events in the queue before senders wait.
const QUEUE_CAPACITY: usize = 1024;

/// How long a stop waits for requests in progress, and then for the forge.
const STOP_GRACE_PERIOD: Duration = Duration::from_secs(30);
const FORGE_GRACE_PERIOD: Duration = Duration::from_secs(5);

/// Runs the controller. The last overview shows the remaining state.
pub async fn run(
    settings: ControllerSettings,
    mut inputs: ControllerInputs,
    outputs: ControllerOutputs,
) -> (RunEnding, Arc<Overview>) {
    let (sender, mut events) = mpsc::channel(QUEUE_CAPACITY);
    let queue = sender.downgrade();
    let depth = move || queue.upgrade().map_or(0, |queue| queue.max_capacity() - queue.capacity());
    settings.metrics.watch_queue(depth);
    let deadline = match settings.until {
        RunUntil::Stopped => None,
        // A timeout beyond the range of the clock means no timeout.
        RunUntil::Settled { timeout } | RunUntil::Planned { timeout } | RunUntil::Explained { timeout } => {
            Instant::now().checked_add(timeout)
        }
    };
    let mut state = ControllerState::new(settings, sender);
    state.handle(Event::Wake);
    let mut published = None;

    let ending = loop {
        let wake = state.advance(Instant::now());
        let next = publish(&mut state, &outputs, &mut published);
        if let Some(ending) = state.ending() {
            break ending;
        }
        let wake = [wake, next, deadline].into_iter().flatten().min();
        tokio::select! {
            biased;
            () = inputs.stop.cancelled() => break RunEnding::Stopped,
            () = inputs.elected.cancelled(), if state.is_standby() => state.handle(Event::Elected),
            Some(event) = events.recv() => {
                state.handle(event);
                // Events that are in the queue already belong to the same turn.
                while let Ok(event) = events.try_recv() {
                    state.handle(event);
                }
            }
            Some(hint) = inputs.hints.recv() => state.handle(Event::Hint(hint)),
            Ok(()) = inputs.measurements.changed() => {
                state.update_measurements(Arc::clone(&inputs.measurements.borrow_and_update()));
            }
            Some(()) = inputs.wakes.recv() => state.handle(Event::Wake),
            () = sleep_until(wake) => {
                if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                    break RunEnding::TimedOut;
                }
            }
        }
    };

    drain(&mut state, &mut events).await;
    publish(&mut state, &outputs, &mut None);
    state.flush(&mut events, FORGE_GRACE_PERIOD).await;
    let overview = Arc::clone(&outputs.overview.borrow());
    (ending, overview)
}

/// Starts nothing new, and lets work in progress end: a write is never interrupted between request and response.
async fn drain(state: &mut ControllerState, events: &mut mpsc::Receiver<Event>) {
    state.cancel();
    let give_up = Instant::now() + STOP_GRACE_PERIOD;
    while state.is_busy() {
        tokio::select! {
            Some(event) = events.recv() => state.handle(event),
            () = tokio::time::sleep_until(give_up) => {
                tracing::warn!("requests are still under way after {STOP_GRACE_PERIOD:?}; this process does \
                                not wait for their results");
                return;
            }
        }
    }
}

/// Publishes the overview if the state has changed, or returns when it will. The overview covers everything, so a large fleet
/// that changes all the time is not published at each change.
fn publish(
    state: &mut ControllerState,
    outputs: &ControllerOutputs,
    last: &mut Option<Instant>,
) -> Option<Instant> {
    if !state.has_changed() {
        return None;
    }
    let now = Instant::now();
    if let Some(next) = last.map(|last| last + state.overview_interval()).filter(|next| *next > now) {
        return Some(next);
    }
    *last = Some(now);
    let overview = Arc::new(state.overview());
    state.handle_published(&overview);
    outputs.overview.send_replace(overview);
    outputs.instance.send_if_modified(|known| {
        let instance = state.instance();
        let changed = *known != instance;
        *known = instance;
        changed
    });
    outputs.head.send_if_modified(|known| state.refresh_head(known));
    None
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
