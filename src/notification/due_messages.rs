//! Computes the due messages of one route from the state of its threads and its history. No IO: the caller passes the clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::message_text::CommitText;
use super::route_history::{RouteHistory, RouteStart, ThreadRecord};
use crate::model::{AppId, Notification, NotificationPhase, Revision};
use crate::report::notices::{
    NextNotice, NoticeFacts, NotificationThread, ThreadCondition, ThreadHistory, ThreadState, next_notice,
};

/// A commit older than this that was done before the process started counts as sent.
const RECENT_COMMIT_AGE: SignedDuration = SignedDuration::from_mins(10);

/// The current state for one route.
#[derive(Clone, Debug)]
pub struct RouteState {
    pub route: Arc<Notification>,
    pub instance: String,
    pub threads: Arc<BTreeMap<NotificationThread, ThreadState>>,
    pub commits: Arc<BTreeMap<Revision, CommitText>>,
    /// Commits that later commits of the branch reverted.
    pub reverted: Arc<BTreeSet<Revision>>,
    /// Apps that fail somewhere, also those that the route does not select.
    pub failing: Arc<BTreeSet<AppId>>,
    /// False in observe mode, which has no rollouts.
    pub reports_commits: bool,
    /// Everything is known: what is done now was done before the process started.
    pub is_settled: bool,
}

/// When the next message of each thread became necessary.
#[derive(Debug, Default)]
pub struct MessageTimers(BTreeMap<NotificationThread, (NotificationPhase, Instant)>);

#[derive(Clone, Debug, PartialEq)]
pub struct DueMessage {
    pub thread: NotificationThread,
    /// The history before this message.
    pub history_before: ThreadHistory,
    pub notice: NextNotice,
    pub facts: NoticeFacts,
    pub started_at: Timestamp,
}

#[derive(Debug)]
pub struct DueMessages {
    pub messages: Vec<DueMessage>,
    /// When the next message is due if nothing changes.
    pub next: Option<Instant>,
    /// The history changed and must be saved.
    pub is_history_changed: bool,
}

impl MessageTimers {
    pub fn due_messages(
        &mut self,
        memory: &mut RouteHistory,
        present: &RouteState,
        (now, at): (Instant, Timestamp),
    ) -> DueMessages {
        let mut due = DueMessages { messages: Vec::new(), next: None, is_history_changed: false };
        if let Some(first_look) = memory.start.take() {
            adopt_finished(memory, present, first_look, at);
            due.is_history_changed = true;
        }
        let departed = departed_commits(memory, present);
        let known = std::mem::take(&mut self.0);
        let mut later = |at: Instant| due.next = Some(due.next.map_or(at, |next: Instant| next.min(at)));
        for (thread, ThreadState { condition, facts }) in present.threads.iter().chain(&departed) {
            let key = thread.to_string();
            let mut entry = memory
                .record(&key)
                .cloned()
                .unwrap_or_else(|| ThreadRecord { began: at, ..ThreadRecord::default() });
            if entry.at + SignedDuration::from_hours(24) < at && !entry.is_bad() {
                // After a long healthy time the next problem is sent as fast as the first.
                entry.told.episode = 0;
            }
            let mut is_next = false;
            while let Some((before, step)) = next_message(&entry, condition) {
                is_next = true;
                let since = known.get(thread).filter(|(happened, _)| *happened == step.happened);
                let since = since.map_or(now, |(_, since)| *since);
                self.0.insert(thread.clone(), (step.happened, since));
                let ripe = since + step.delay;
                if ripe > now {
                    later(ripe);
                    break;
                }
                // A commit without any message needs no message about its revert.
                let is_known = step.happened != NotificationPhase::Reverted || before.count > 0;
                if is_known && present.route.selects_phase(step.happened) {
                    match present.route.quiet_until(at, step.happened) {
                        Some(until) => later(now + until.duration_since(at).try_into().unwrap_or_default()),
                        None => due.messages.push(DueMessage {
                            thread: thread.clone(),
                            history_before: before.clone(),
                            notice: step,
                            facts: entry.with_names(facts),
                            started_at: entry.began,
                        }),
                    }
                    break;
                }
                // The route does not want this message, and the state continues as if it was sent.
                let told = ThreadHistory { count: before.count, ..step.history };
                (entry.told, entry.sent, entry.at, due.is_history_changed, is_next) =
                    (told, None, at, true, false);
                entry.note_names(facts);
                memory.set(key.clone(), entry.clone());
            }
            if *condition == ThreadCondition::Superseded && !is_next && entry.is_open() {
                (entry.is_over, due.is_history_changed) = (true, true);
                memory.set(key, entry);
            }
        }
        due
    }
}

/// The next message and the history before it. A message that may have arrived is sent again, or its successor is.
fn next_message<'e>(
    entry: &'e ThreadRecord,
    condition: &ThreadCondition,
) -> Option<(&'e ThreadHistory, NextNotice)> {
    let certain = next_notice(&entry.told, condition).map(|step| (&entry.told, step));
    let Some(sent) = &entry.sent else { return certain };
    match certain {
        Some((before, step)) if step.history == *sent => Some((before, step)),
        certain => next_notice(sent, condition).map(|step| (sent, step)).or(certain),
    }
}

/// Open commits without any target left.
fn departed_commits(
    memory: &RouteHistory,
    present: &RouteState,
) -> BTreeMap<NotificationThread, ThreadState> {
    let mut departed = BTreeMap::new();
    if !present.reports_commits {
        return departed;
    }
    for (key, entry) in memory.threads().filter(|(_, entry)| entry.is_open()) {
        let Some(thread @ NotificationThread::Rollout { .. }) = NotificationThread::parse(key) else {
            continue;
        };
        if present.threads.contains_key(&thread) {
            continue;
        }
        let condition = match thread.commit() {
            Some(commit) if present.reverted.contains(commit) => ThreadCondition::Reverted,
            // The commit that replaced it fails too, or left this route.
            _ if entry.apps().any(|app| present.failing.contains(&app)) => ThreadCondition::Unknown,
            _ => ThreadCondition::Superseded,
        };
        departed.insert(thread, ThreadState { condition, facts: entry.with_names(&NoticeFacts::default()) });
    }
    departed
}

/// At the first evaluation, commits that are done count as sent; recent ones only if the route is new.
fn adopt_finished(memory: &mut RouteHistory, present: &RouteState, first_look: RouteStart, at: Timestamp) {
    for (thread, ThreadState { condition, .. }) in &*present.threads {
        let key = thread.to_string();
        let facts = thread.commit().and_then(|commit| present.commits.get(commit));
        let is_young = facts.and_then(|facts| facts.time).is_some_and(|time| time + RECENT_COMMIT_AGE > at);
        let last = match condition {
            ThreadCondition::Done if first_look == RouteStart::NewRoute || !is_young => {
                NotificationPhase::Done
            }
            ThreadCondition::Is(happened @ (NotificationPhase::Held | NotificationPhase::Merged)) => {
                *happened
            }
            _ => continue,
        };
        if memory.record(&key).is_none() {
            let told = ThreadHistory { last: Some(last), ..ThreadHistory::default() };
            memory.set(key, ThreadRecord { told, began: at, at, ..ThreadRecord::default() });
        }
    }
}

#[cfg(test)]
mod tests;
