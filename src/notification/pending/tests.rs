//! Random histories of one thread and of a small fleet, with silent services and process deaths.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;
use crate::model::{Language, Location, NotificationService, SecretRef, TargetSelector};
use crate::report::notices::{Look, Moment};
use crate::report::{ClusterReport, Overview, Phase, RolloutReport, TargetReport};
use Happened::{Degraded, Done, Failed, Recovered, Reverted, Started, Waiting};

fn route() -> Notification {
    Notification {
        name: "shop".to_owned(),
        service: NotificationService::Generic { url: SecretRef::Env("X".to_owned()), secret: None },
        language: Language::En,
        selector: TargetSelector::default(),
        phases: Some(Happened::ALL.to_vec()),
        quiet_hours: Vec::new(),
        location: Location::new("notifications/shop.yaml", 1, 1),
    }
}

fn present(seen: BTreeMap<Thread, Seen>) -> Present {
    Present {
        route: Arc::new(route()),
        instance: "main".to_owned(),
        seen: Arc::new(seen),
        commits: Arc::default(),
        reverted: Arc::default(),
        failing: Arc::default(),
        tells_of_commits: true,
        is_settled: true,
    }
}

/// A possible next condition of a rollout.
fn random_condition(random: &mut StdRng) -> Condition {
    let asked = |wave: &str| BTreeSet::from([wave.to_owned()]);
    match random.random_range(0..10) {
        0..3 => Condition::UnderWay,
        3 => Condition::Waiting(asked("canary")),
        4 => Condition::Waiting(asked("green")),
        5..8 => Condition::Done,
        8 => Condition::Failed(asked("canary")),
        _ => Condition::Failed(BTreeSet::new()),
    }
}

/// Messages of one thread come in order, each after the one before it at most once, plus `repeats` of messages that were sent
/// and not recorded.
#[track_caller]
fn check(sent: &[Happened], last: &Condition, story: &str) {
    let once = |happened: Happened, most: usize| {
        assert!(sent.iter().filter(|it| **it == happened).count() <= most, "{story}");
    };
    [Started, Done, Reverted].into_iter().for_each(|happened| once(happened, 1));
    once(Waiting, 2);
    // A failure after a confirmation is another failure.
    once(Failed, 3);
    assert!(sent.windows(2).all(|pair| pair[0] != pair[1] || pair[0] == Waiting), "{story}");
    let turns: Vec<Happened> = sent.iter().copied().filter(|it| matches!(it, Degraded | Recovered)).collect();
    assert!(
        turns.chunks(2).all(|pair| pair[0] == Degraded && pair.get(1).is_none_or(|it| *it == Recovered)),
        "{story}"
    );
    let after = sent.iter().skip_while(|it| **it != Done).skip(1);
    assert!(after.clone().all(|it| matches!(it, Degraded | Recovered)), "{story}");
    let end = sent.last();
    let is_told = match last {
        Condition::Done => matches!(end, Some(Done | Recovered)),
        // A confirmation was sent after the failure.
        Condition::Failed(asked) => {
            matches!(end, Some(Failed | Degraded)) || !asked.is_empty() && sent.contains(&Failed)
        }
        Condition::Reverted => matches!(end, Some(Reverted | Done | Recovered)) || end.is_none(),
        _ => true,
    };
    assert!(is_told, "the last state is lost: {story}");
}

#[tokio::test(start_paused = true)]
async fn histories_with_deaths_keep_the_last_state() {
    let thread = Thread::Rollout { commit: Revision::from("a1"), ring: Some("prod".to_owned()) };
    for seed in 0..400 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut memory = Memory::open(None, "shop", FirstLook::OfRoute);
        memory.first_look = None;
        let mut pending = Pending::default();
        let (mut sent, mut deaths, mut story) = (Vec::new(), 0, Vec::new());
        let mut condition = Condition::UnderWay;
        for step in 0..40 {
            let is_last = step == 39;
            if step > 0 {
                condition = random_condition(&mut random);
            }
            if is_last && !matches!(condition, Condition::Done | Condition::Failed(_)) {
                condition = if random.random() { Condition::Reverted } else { Condition::Done };
            }
            let lasts = if is_last { 7200 } else { random.random_range(1..200) };
            let until = Instant::now() + Duration::from_secs(lasts);
            story.push(format!("{condition:?} {lasts} s"));
            let seen = BTreeMap::from([(
                thread.clone(),
                Seen { condition: condition.clone(), facts: Facts::default() },
            )]);
            let present = present(seen);
            // The service does not answer for a while.
            let is_deaf = !is_last && random.random_bool(0.2);
            while Instant::now() < until {
                let due = pending.due(&mut memory, &present, (Instant::now(), Timestamp::UNIX_EPOCH));
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
                        // Sent messages are on disk.
                        pending = Pending::default();
                        break;
                    }
                    let told = message.step.after.clone();
                    memory.set(key, Entry { told, ..Entry::default() });
                }
                let wake = due.next.unwrap_or(until).min(Instant::now() + Duration::from_secs(5)).min(until);
                tokio::time::sleep_until(wake.max(Instant::now() + Duration::from_millis(100))).await;
            }
        }
        let story = format!("seed {seed}: {story:#?}");
        // The last message before a death may be repeated.
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

/// Two apps in two rings, with commits and failing pods.
struct Fleet {
    overview: Overview,
    reverted: BTreeSet<Revision>,
    commits: usize,
}

const LOOK: Look<'_> =
    Look { wants_apps: false, wants_places: false, app: &|_| true, ring: &|_| true, cluster: &|_| true };
const PHASES: [Phase; 6] =
    [Phase::Running, Phase::Running, Phase::Progressing, Phase::Degraded, Phase::Waiting, Phase::Unreachable];

impl Fleet {
    fn new() -> Self {
        let clusters = [("t1", "test"), ("p1", "prod")];
        let apps = ["pay", "web"];
        let first = Revision::from("c0");
        let targets = apps.iter().flat_map(|app| {
            clusters.map(|(cluster, ring)| TargetReport {
                revision: Revision::from("c0"),
                ring: Some(ring.to_owned()),
                ..TargetReport::of_test(AppId::new("shop", app), cluster, Phase::Running)
            })
        });
        let rollouts =
            apps.map(|app| RolloutReport::that_asks(AppId::new("shop", app), &["p1", "t1"], "", "all"));
        let clusters = clusters.map(|(name, ring)| ClusterReport::of_test(name, Some(ring)));
        let overview = Overview {
            revision: Some(first.clone()),
            is_rendered: true,
            told: vec![first],
            clusters: clusters.to_vec(),
            targets: targets.collect(),
            rollouts: rollouts.to_vec(),
            ..Overview::default()
        };
        Self { overview, reverted: BTreeSet::new(), commits: 1 }
    }

    fn goes_on(&mut self, random: &mut StdRng) {
        let target = random.random_range(0..self.overview.targets.len());
        match random.random_range(0..10) {
            // A commit changes one app everywhere, and sometimes reverts the previous change.
            0 | 1 => {
                let commit = Revision::from(format!("c{}", self.commits).as_str());
                self.commits += 1;
                let app = self.overview.targets[target].app.clone();
                if random.random_bool(0.3) {
                    self.reverted.insert(self.overview.targets[target].revision.clone());
                }
                for target in self.overview.targets.iter_mut().filter(|target| target.app == app) {
                    (target.revision, target.phase) = (commit.clone(), Phase::Progressing);
                }
                self.overview.told.insert(0, commit.clone());
                self.overview.told.truncate(2);
                self.overview.revision = Some(commit);
            }
            2 => {
                let cluster = random.random_range(0..self.overview.clusters.len());
                self.overview.clusters[cluster].observed ^= true;
            }
            _ => self.overview.targets[target].phase = PHASES[random.random_range(0..PHASES.len())],
        }
    }

    fn ends_well(&mut self) {
        self.overview.clusters.iter_mut().for_each(|cluster| cluster.observed = true);
        self.overview.targets.iter_mut().for_each(|target| target.phase = Phase::Running);
    }
}

#[tokio::test(start_paused = true)]
async fn fleet_histories_report_commits_in_order() {
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut memory = Memory::open(None, "shop", FirstLook::OfRoute);
        memory.first_look = None;
        let (mut pending, mut fleet) = (Pending::default(), Fleet::new());
        let mut sent: BTreeMap<Thread, Vec<Happened>> = BTreeMap::new();
        let mut story = Vec::new();
        for step in 0..60 {
            let is_last = step == 59;
            if is_last {
                fleet.ends_well()
            } else {
                fleet.goes_on(&mut random)
            }
            let lasts = if is_last { 7200 } else { random.random_range(1..200) };
            let targets = fleet.overview.targets.iter();
            let targets = targets.map(|it| format!("{} {:?} {:?}", it.revision, it.ring, it.phase));
            story.push(format!("{} for {lasts} s", targets.collect::<Vec<_>>().join(", ")));
            let until = Instant::now() + Duration::from_secs(lasts);
            while Instant::now() < until {
                let open = memory.threads().filter(|(_, entry)| entry.is_open());
                let open = open.filter_map(|(key, _)| Thread::parse(key)?.commit().cloned()).collect();
                let moment = Moment::of(&fleet.overview, &open).expect("it is known");
                let seen = moment.seen(&LOOK, &fleet.reverted, Timestamp::UNIX_EPOCH);
                let at = (Instant::now(), Timestamp::UNIX_EPOCH);
                let present = Present {
                    reverted: Arc::new(fleet.reverted.clone()),
                    failing: Arc::new(moment.failing()),
                    ..present(seen)
                };
                let due = pending.due(&mut memory, &present, at);
                for message in due.messages {
                    story.push(format!("{} {:?}", message.thread, message.step.happened));
                    sent.entry(message.thread.clone()).or_default().push(message.step.happened);
                    let mut entry = Entry { told: message.step.after, ..Entry::default() };
                    entry.note_names(&message.facts);
                    memory.set(message.thread.to_string(), entry);
                }
                let wake = due.next.unwrap_or(until).min(until);
                tokio::time::sleep_until(wake.max(Instant::now() + Duration::from_millis(500))).await;
            }
        }
        let runs: BTreeSet<&Revision> =
            fleet.overview.targets.iter().map(|target| &target.revision).collect();
        for (thread, happened) in &sent {
            let story = format!("seed {seed}, {thread}: {happened:?}\n{story:#?}");
            let is_current = thread.commit().is_some_and(|commit| {
                runs.contains(commit)
                    && fleet.overview.told.contains(commit)
                    && !fleet.reverted.contains(commit)
            });
            match thread {
                Thread::Rollout { .. } => {
                    let end = if is_current { Condition::Done } else { Condition::Unclear };
                    check(happened, &end, &story);
                }
                _ => assert!(happened.windows(2).all(|pair| pair[0] != pair[1]), "{story}"),
            }
            // Every problem ends with a recovery.
            assert!(!matches!(happened.last(), Some(Degraded | Happened::Offline)), "{story}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn recently_done_commits_are_sent_at_start() {
    let now: Timestamp = "2026-11-27T08:00:00Z".parse().expect("a time");
    let check = |first_look: FirstLook, minutes: i64, expected: &[Happened]| {
        let commit = Revision::from("a1");
        let facts =
            CommitFacts { time: Some(now - SignedDuration::from_mins(minutes)), ..CommitFacts::default() };
        let thread = Thread::Rollout { commit: commit.clone(), ring: None };
        let seen = Seen { condition: Condition::Done, facts: Facts::default() };
        let present = Present {
            commits: Arc::new(BTreeMap::from([(commit, facts)])),
            ..present(BTreeMap::from([(thread, seen)]))
        };
        let mut memory = Memory::open(None, "shop", first_look);
        let due = Pending::default().due(&mut memory, &present, (Instant::now(), now));
        let happened: Vec<Happened> = due.messages.iter().map(|due| due.step.happened).collect();
        assert_eq!(happened, expected, "{first_look:?}, {minutes} minutes");
    };
    check(FirstLook::OfProcess, 1, &[Done]);
    check(FirstLook::OfProcess, 11, &[]);
    check(FirstLook::OfRoute, 1, &[]);
}

#[tokio::test(start_paused = true)]
async fn deselected_commit_is_not_reported_as_healthy() {
    let thread = Thread::Rollout { commit: Revision::from("a1"), ring: None };
    let mut memory = Memory::open(None, "shop", FirstLook::OfProcess);
    memory.first_look = None;
    let told = Told { last: Some(Degraded), count: 2, ..Told::default() };
    let apps = vec!["shop/web".to_owned()];
    memory.set(thread.to_string(), Entry { told, apps, app_count: 1, ..Entry::default() });
    let mut pending = Pending::default();
    let mut happened = async |present: Present| {
        let mut look = || pending.due(&mut memory, &present, (Instant::now(), Timestamp::UNIX_EPOCH));
        look();
        tokio::time::sleep(Duration::from_secs(120)).await;
        look().messages.into_iter().map(|due| (due.step.happened, due.facts.app_count)).collect::<Vec<_>>()
    };
    let nothing = || present(BTreeMap::new());
    assert_eq!(happened(Present { tells_of_commits: false, ..nothing() }).await, []);
    let failing = Arc::new(BTreeSet::from([AppId::new("shop", "web")]));
    assert_eq!(happened(Present { failing, ..nothing() }).await, []);
    assert_eq!(happened(nothing()).await, [(Recovered, 1)]);
}
