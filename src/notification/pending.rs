//! What one route has to tell: how everything stands, against what it has told. No IO: the clock is the caller's.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::memory::{Entry, Memory};
use crate::model::{AppId, ClusterName, Happened, Notification, Revision};
use crate::report::notices::{Condition, Facts, Seen, Step, Thread, Told, next};

/// Since when each thread has its next message.
#[derive(Debug, Default)]
pub struct Pending(BTreeMap<Thread, (Happened, Instant)>);

/// One message that is to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Pended {
    pub thread: Thread,
    /// What people know, as far as this message goes.
    pub before: Told,
    pub step: Step,
    pub facts: Facts,
}

#[derive(Debug)]
pub struct Due {
    pub messages: Vec<Pended>,
    /// When there is more, if nothing changes.
    pub next: Option<Instant>,
    /// The memory was changed: it is to be kept.
    pub is_noted: bool,
}

impl Pending {
    pub fn due(
        &mut self,
        memory: &mut Memory,
        route: &Notification,
        seen: &BTreeMap<Thread, Seen>,
        reverted: &BTreeSet<Revision>,
        (now, at): (Instant, Timestamp),
    ) -> Due {
        let mut due = Due { messages: Vec::new(), next: None, is_noted: false };
        if std::mem::take(&mut memory.is_new) {
            adopt_finished(memory, seen, at);
            due.is_noted = true;
        }
        let seen = with_departed(memory, seen, reverted);
        let known = std::mem::take(&mut self.0);
        let mut later = |at: Instant| due.next = Some(due.next.map_or(at, |next: Instant| next.min(at)));
        for (thread, Seen { condition, facts }) in &seen {
            let key = thread.to_string();
            let mut entry = memory.of(&key).cloned().unwrap_or_default();
            if entry.at + SignedDuration::from_hours(24) < at && !entry.is_bad() {
                // It was well for long: what is bad now is told as soon as the first time.
                entry.told.episode = 0;
            }
            while let Some((before, step)) = step(&entry, condition) {
                let since = known.get(thread).filter(|(happened, _)| *happened == step.happened);
                let since = since.map_or(now, |(_, since)| *since);
                self.0.insert(thread.clone(), (step.happened, since));
                let ripe = since + step.hold;
                if ripe > now {
                    later(ripe);
                    break;
                }
                if route.selector.wants(step.happened) {
                    match route.quiet_until(at, step.happened) {
                        Some(until) => later(now + until.duration_since(at).try_into().unwrap_or_default()),
                        None => {
                            let (thread, facts) = (thread.clone(), facts.clone());
                            due.messages.push(Pended { thread, before: before.clone(), step, facts });
                        }
                    }
                    break;
                }
                // Nobody is told, and what comes after it is the same.
                (entry.told, entry.sent, entry.at, due.is_noted) = (step.after, None, at, true);
                memory.set(key.clone(), entry.clone());
            }
        }
        due
    }
}

/// What is told next, to people who know what. Where a message may have arrived, it is sent again, or what follows from it.
fn step<'e>(entry: &'e Entry, condition: &Condition) -> Option<(&'e Told, Step)> {
    let certain = next(&entry.told, condition).map(|step| (&entry.told, step));
    let Some(sent) = &entry.sent else { return certain };
    match certain {
        Some((before, step)) if step.after == *sent => Some((before, step)),
        certain => next(sent, condition).map(|step| (sent, step)).or(certain),
    }
}

/// With the commits that nothing is of any more, and whose end was not told.
fn with_departed(
    memory: &Memory,
    seen: &BTreeMap<Thread, Seen>,
    reverted: &BTreeSet<Revision>,
) -> BTreeMap<Thread, Seen> {
    let mut all = seen.clone();
    let is_bad = |seen: &&Seen| matches!(seen.condition, Condition::Failed(_) | Condition::Unwell);
    let bad: BTreeSet<String> = seen
        .values()
        .filter(is_bad)
        .flat_map(|seen| seen.facts.apps.iter().map(ToString::to_string))
        .collect();
    for (key, entry) in memory.threads().filter(|(_, entry)| entry.is_open()) {
        let Some(thread @ Thread::Rollout { .. }) = Thread::parse(key) else { continue };
        let condition = match thread.commit() {
            Some(commit) if reverted.contains(commit) => Condition::Reverted,
            // What took it over is bad as well.
            _ if entry.apps.iter().any(|app| bad.contains(app)) => Condition::Unclear,
            _ => Condition::TakenOver,
        };
        all.entry(thread).or_insert_with(|| Seen { condition, facts: facts_of(entry) });
    }
    all
}

fn facts_of(entry: &Entry) -> Facts {
    let apps = entry.apps.iter().filter_map(|app| app.split_once('/'));
    let apps: Vec<AppId> = apps.map(|(namespace, name)| AppId::new(namespace, name)).collect();
    let clusters: Vec<ClusterName> =
        entry.clusters.iter().map(|name| ClusterName::from(name.as_str())).collect();
    let mut facts = Facts::default();
    facts.name_apps(apps.iter());
    facts.name_clusters(clusters.iter());
    facts
}

/// What is done at the first look was done before: somebody else told of it, or nobody was there to tell.
fn adopt_finished(memory: &mut Memory, seen: &BTreeMap<Thread, Seen>, at: Timestamp) {
    for (thread, Seen { condition, .. }) in seen {
        let key = thread.to_string();
        let last = match condition {
            Condition::Done => Happened::Done,
            Condition::Is(happened @ (Happened::Held | Happened::Merged)) => *happened,
            _ => continue,
        };
        if memory.of(&key).is_none() {
            let told = Told { last: Some(last), ..Told::default() };
            memory.set(key, Entry { told, at, ..Entry::default() });
        }
    }
}

#[cfg(test)]
mod tests;
