//! Computes the due messages of one route from the state of its threads and its history. No IO: the caller passes the clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::memory::{Entry, FirstLook, Memory};
use super::words::CommitFacts;
use crate::model::{AppId, Happened, Notification, Revision};
use crate::report::notices::{Condition, Facts, Seen, Step, Thread, Told, next};

/// A commit older than this that was done before the process started counts as sent.
const YOUNG: SignedDuration = SignedDuration::from_mins(10);

/// The current state for one route.
#[derive(Clone, Debug)]
pub struct Present {
    pub route: Arc<Notification>,
    pub instance: String,
    pub seen: Arc<BTreeMap<Thread, Seen>>,
    pub commits: Arc<BTreeMap<Revision, CommitFacts>>,
    /// Commits that later commits of the branch reverted.
    pub reverted: Arc<BTreeSet<Revision>>,
    /// Apps that fail somewhere, also those that the route does not select.
    pub failing: Arc<BTreeSet<AppId>>,
    /// False in observe mode, which has no rollouts.
    pub tells_of_commits: bool,
    /// Everything is known: what is done now was done before the process started.
    pub is_settled: bool,
}

/// When the next message of each thread became necessary.
#[derive(Debug, Default)]
pub struct Pending(BTreeMap<Thread, (Happened, Instant)>);

#[derive(Clone, Debug, PartialEq)]
pub struct Pended {
    pub thread: Thread,
    /// The history before this message.
    pub before: Told,
    pub step: Step,
    pub facts: Facts,
    pub began: Timestamp,
}

#[derive(Debug)]
pub struct Due {
    pub messages: Vec<Pended>,
    /// When the next message is due if nothing changes.
    pub next: Option<Instant>,
    /// The history changed and must be saved.
    pub is_noted: bool,
}

impl Pending {
    pub fn due(&mut self, memory: &mut Memory, present: &Present, (now, at): (Instant, Timestamp)) -> Due {
        let mut due = Due { messages: Vec::new(), next: None, is_noted: false };
        if let Some(first_look) = memory.first_look.take() {
            adopt_finished(memory, present, first_look, at);
            due.is_noted = true;
        }
        let departed = departed(memory, present);
        let known = std::mem::take(&mut self.0);
        let mut later = |at: Instant| due.next = Some(due.next.map_or(at, |next: Instant| next.min(at)));
        for (thread, Seen { condition, facts }) in present.seen.iter().chain(&departed) {
            let key = thread.to_string();
            let mut entry =
                memory.of(&key).cloned().unwrap_or_else(|| Entry { began: at, ..Entry::default() });
            if entry.at + SignedDuration::from_hours(24) < at && !entry.is_bad() {
                // After a long healthy time the next problem is sent as fast as the first.
                entry.told.episode = 0;
            }
            let mut is_next = false;
            while let Some((before, step)) = step(&entry, condition) {
                is_next = true;
                let since = known.get(thread).filter(|(happened, _)| *happened == step.happened);
                let since = since.map_or(now, |(_, since)| *since);
                self.0.insert(thread.clone(), (step.happened, since));
                let ripe = since + step.hold;
                if ripe > now {
                    later(ripe);
                    break;
                }
                // A commit without any message needs no message about its revert.
                let is_known = step.happened != Happened::Reverted || before.count > 0;
                if is_known && present.route.wants(step.happened) {
                    match present.route.quiet_until(at, step.happened) {
                        Some(until) => later(now + until.duration_since(at).try_into().unwrap_or_default()),
                        None => due.messages.push(Pended {
                            thread: thread.clone(),
                            before: before.clone(),
                            step,
                            facts: entry.named(facts),
                            began: entry.began,
                        }),
                    }
                    break;
                }
                // The route does not want this message, and the state continues as if it was sent.
                let told = Told { count: before.count, ..step.after };
                (entry.told, entry.sent, entry.at, due.is_noted, is_next) = (told, None, at, true, false);
                entry.note_names(facts);
                memory.set(key.clone(), entry.clone());
            }
            if *condition == Condition::TakenOver && !is_next && entry.is_open() {
                (entry.is_over, due.is_noted) = (true, true);
                memory.set(key, entry);
            }
        }
        due
    }
}

/// The next message and the history before it. A message that may have arrived is sent again, or its successor is.
fn step<'e>(entry: &'e Entry, condition: &Condition) -> Option<(&'e Told, Step)> {
    let certain = next(&entry.told, condition).map(|step| (&entry.told, step));
    let Some(sent) = &entry.sent else { return certain };
    match certain {
        Some((before, step)) if step.after == *sent => Some((before, step)),
        certain => next(sent, condition).map(|step| (sent, step)).or(certain),
    }
}

/// Open commits without any target left.
fn departed(memory: &Memory, present: &Present) -> BTreeMap<Thread, Seen> {
    let mut departed = BTreeMap::new();
    if !present.tells_of_commits {
        return departed;
    }
    for (key, entry) in memory.threads().filter(|(_, entry)| entry.is_open()) {
        let Some(thread @ Thread::Rollout { .. }) = Thread::parse(key) else { continue };
        if present.seen.contains_key(&thread) {
            continue;
        }
        let condition = match thread.commit() {
            Some(commit) if present.reverted.contains(commit) => Condition::Reverted,
            // The commit that replaced it fails too, or left this route.
            _ if entry.apps().any(|app| present.failing.contains(&app)) => Condition::Unclear,
            _ => Condition::TakenOver,
        };
        departed.insert(thread, Seen { condition, facts: entry.named(&Facts::default()) });
    }
    departed
}

/// At the first evaluation, commits that are done count as sent; recent ones only if the route is new.
fn adopt_finished(memory: &mut Memory, present: &Present, first_look: FirstLook, at: Timestamp) {
    for (thread, Seen { condition, .. }) in &*present.seen {
        let key = thread.to_string();
        let facts = thread.commit().and_then(|commit| present.commits.get(commit));
        let is_young = facts.and_then(|facts| facts.time).is_some_and(|time| time + YOUNG > at);
        let last = match condition {
            Condition::Done if first_look == FirstLook::OfRoute || !is_young => Happened::Done,
            Condition::Is(happened @ (Happened::Held | Happened::Merged)) => *happened,
            _ => continue,
        };
        if memory.of(&key).is_none() {
            let told = Told { last: Some(last), ..Told::default() };
            memory.set(key, Entry { told, began: at, at, ..Entry::default() });
        }
    }
}

#[cfg(test)]
mod tests;
