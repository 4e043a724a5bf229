//! What one route has to tell: how everything stands, against what it has told. No IO: the clock is the caller's.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::memory::{Entry, Memory};
use crate::model::{AppId, ClusterName, Happened, Notification, Revision};
use crate::report::notices::{Condition, Facts, Seen, Step, Thread, Told, next};

/// Since when each thread stands as it does.
#[derive(Debug, Default)]
pub struct Pending(BTreeMap<Thread, (Condition, Instant)>);

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
        self.note(&seen, now);
        let mut later = |at: Instant| due.next = Some(due.next.map_or(at, |next: Instant| next.min(at)));
        for (thread, Seen { condition, facts }) in &seen {
            let key = thread.to_string();
            let mut entry = memory.of(&key).cloned().unwrap_or_default();
            if entry.at + SignedDuration::from_hours(24) < at && !entry.is_bad() {
                // It was well for long: what is bad now is told as soon as the first time.
                entry.told.episode = 0;
            }
            while let Some((before, step)) = step(&entry, condition) {
                let ripe = self.0.get(thread).map_or(now, |(_, since)| *since) + step.hold;
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

    fn note(&mut self, seen: &BTreeMap<Thread, Seen>, now: Instant) {
        self.0.retain(|thread, _| seen.contains_key(thread));
        for (thread, Seen { condition, .. }) in seen {
            match self.0.get_mut(thread) {
                Some(known) if known.0 == *condition => {}
                Some(known) => *known = (condition.clone(), now),
                None => drop(self.0.insert(thread.clone(), (condition.clone(), now))),
            }
        }
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
    let is_bad = |seen: &&Seen| matches!(seen.condition, Condition::Failed | Condition::Unwell);
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
mod tests {
    use std::time::Duration;

    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;
    use crate::model::{Language, Location, NotificationSelector, NotificationService, SecretRef};
    use Happened::{Degraded, Done, Failed, Recovered, Reverted, Started, Waiting};

    fn route() -> Notification {
        Notification {
            name: "shop".to_owned(),
            service: NotificationService::Generic { url: SecretRef::Env("X".to_owned()), secret: None },
            language: Language::En,
            selector: NotificationSelector {
                phases: Some(Happened::ALL.to_vec()),
                ..NotificationSelector::default()
            },
            quiet_hours: Vec::new(),
            location: Location::new("notifications/shop.yaml", 1, 1),
        }
    }

    /// What comes next, as a rollout could go.
    fn random_condition(random: &mut StdRng) -> Condition {
        match random.random_range(0..10) {
            0..3 => Condition::UnderWay,
            3 => Condition::Waiting(BTreeSet::from(["canary".to_owned()])),
            4 => Condition::Waiting(BTreeSet::from(["green".to_owned()])),
            5..8 => Condition::Done,
            _ => Condition::Failed,
        }
    }

    /// Of one thread, in the order in which the messages were sent: each after the one before it at most once, with `repeats` of those
    /// that were sent and not noted.
    #[track_caller]
    fn check(sent: &[Happened], last: &Condition, story: &str) {
        let once = |happened: Happened, most: usize| {
            assert!(sent.iter().filter(|it| **it == happened).count() <= most, "{story}");
        };
        [Started, Done, Reverted].into_iter().for_each(|happened| once(happened, 1));
        once(Waiting, 2);
        // What fails after a person let it go on is another failure.
        once(Failed, 3);
        assert!(sent.windows(2).all(|pair| pair[0] != pair[1] || pair[0] == Waiting), "{story}");
        let turns: Vec<Happened> =
            sent.iter().copied().filter(|it| matches!(it, Degraded | Recovered)).collect();
        assert!(
            turns.chunks(2).all(|pair| pair[0] == Degraded && pair.get(1).is_none_or(|it| *it == Recovered)),
            "{story}"
        );
        let after = sent.iter().skip_while(|it| **it != Done).skip(1);
        assert!(after.clone().all(|it| matches!(it, Degraded | Recovered)), "{story}");
        let end = sent.last();
        let is_told = match last {
            Condition::Done => matches!(end, Some(Done | Recovered)),
            Condition::Failed => matches!(end, Some(Failed | Degraded)),
            Condition::Reverted => matches!(end, Some(Reverted | Done | Recovered)) || end.is_none(),
            _ => true,
        };
        assert!(is_told, "the last state is lost: {story}");
    }

    #[tokio::test(start_paused = true)]
    async fn histories_with_deaths_lose_no_last_state_and_repeat_at_most_once_for_each_death() {
        let route = route();
        let thread = Thread::Rollout { commit: Revision::from("a1"), ring: Some("prod".to_owned()) };
        for seed in 0..400 {
            let mut random = StdRng::seed_from_u64(seed);
            let mut memory = Memory::open(None, "shop");
            memory.is_new = false;
            let mut pending = Pending::default();
            let (mut sent, mut deaths, mut story) = (Vec::new(), 0, Vec::new());
            let mut condition = Condition::UnderWay;
            for step in 0..40 {
                let is_last = step == 39;
                if step > 0 {
                    condition = random_condition(&mut random);
                }
                if is_last && !matches!(condition, Condition::Done | Condition::Failed) {
                    condition = if random.random() { Condition::Reverted } else { Condition::Done };
                }
                let lasts = if is_last { 7200 } else { random.random_range(1..200) };
                let until = Instant::now() + Duration::from_secs(lasts);
                story.push(format!("{condition:?} {lasts} s"));
                let seen = BTreeMap::from([(
                    thread.clone(),
                    Seen { condition: condition.clone(), facts: Facts::default() },
                )]);
                // A service that does not answer for a while.
                let is_deaf = !is_last && random.random_bool(0.2);
                while Instant::now() < until {
                    let due = pending.due(
                        &mut memory,
                        &route,
                        &seen,
                        &BTreeSet::new(),
                        (Instant::now(), Timestamp::UNIX_EPOCH),
                    );
                    for message in &due.messages {
                        let key = message.thread.to_string();
                        if is_deaf {
                            continue;
                        }
                        let (told, sent_now) = (message.before.clone(), Some(message.step.after.clone()));
                        memory.set(key.clone(), Entry { told, sent: sent_now, ..Entry::default() });
                        story.push(format!("sent {:?}", message.step.happened));
                        sent.push((message.step.clone(), deaths));
                        if random.random_bool(0.1) {
                            deaths += 1;
                            story.push("died".to_owned());
                            // What was sent stands on the disk.
                            pending = Pending::default();
                            break;
                        }
                        let told = message.step.after.clone();
                        memory.set(key, Entry { told, ..Entry::default() });
                    }
                    let wake =
                        due.next.unwrap_or(until).min(Instant::now() + Duration::from_secs(5)).min(until);
                    tokio::time::sleep_until(wake.max(Instant::now() + Duration::from_millis(100))).await;
                }
            }
            let story = format!("seed {seed}: {story:#?}");
            // What was sent just before a death may be sent once more.
            let before = sent.len();
            let mut once: Vec<(Step, i32)> = Vec::new();
            for (step, death) in sent {
                match once.last() {
                    Some((known, died)) if *known == step && *died < death => {
                        *once.last_mut().unwrap() = (step, death)
                    }
                    _ => once.push((step, death)),
                }
            }
            assert!(before - once.len() <= usize::try_from(deaths).unwrap(), "{story}");
            let happened: Vec<Happened> = once.iter().map(|(step, _)| step.happened).collect();
            check(&happened, &condition, &story);
        }
    }
}
