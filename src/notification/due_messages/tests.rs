//! Random histories of one thread and of a small fleet, with silent services and process deaths.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;
use crate::model::{Location, MessageLanguage, NotificationService, SecretRef, TargetSelector};
use crate::report::notices::{OverviewIndex, RouteFilter};
use crate::report::{ClusterReport, Overview, RolloutReport, TargetPhase, TargetReport};
use NotificationPhase::{Degraded, Done, Failed, Recovered, Reverted, Started, Waiting};

fn route() -> Notification {
    Notification {
        name: "shop".to_owned(),
        service: NotificationService::Generic { url: SecretRef::Env("X".to_owned()), secret: None },
        language: MessageLanguage::En,
        selector: TargetSelector::default(),
        phases: Some(NotificationPhase::ALL.to_vec()),
        quiet_hours: Vec::new(),
        location: Location::new("notifications/shop.yaml", 1, 1),
    }
}

fn present(seen: BTreeMap<NotificationThread, ThreadState>) -> RouteState {
    RouteState {
        route: Arc::new(route()),
        instance: "main".to_owned(),
        threads: Arc::new(seen),
        commits: Arc::default(),
        reverted: Arc::default(),
        failing: Arc::default(),
        reports_commits: true,
        is_settled: true,
    }
}

/// A possible next condition of a rollout.
fn random_condition(random: &mut StdRng) -> ThreadCondition {
    let asked = |wave: &str| BTreeSet::from([wave.to_owned()]);
    match random.random_range(0..10) {
        0..3 => ThreadCondition::UnderWay,
        3 => ThreadCondition::Waiting(asked("canary")),
        4 => ThreadCondition::Waiting(asked("green")),
        5..8 => ThreadCondition::Done,
        8 => ThreadCondition::Failed(asked("canary")),
        _ => ThreadCondition::Failed(BTreeSet::new()),
    }
}

/// Messages of one thread come in order, each after the one before it at most once, plus `repeats` of messages that were sent
/// and not recorded.
#[track_caller]
fn check(sent: &[NotificationPhase], last: &ThreadCondition, story: &str) {
    let once = |happened: NotificationPhase, most: usize| {
        assert!(sent.iter().filter(|it| **it == happened).count() <= most, "{story}");
    };
    [Started, Done, Reverted].into_iter().for_each(|happened| once(happened, 1));
    once(Waiting, 2);
    // A failure after a confirmation is another failure.
    once(Failed, 3);
    assert!(sent.windows(2).all(|pair| pair[0] != pair[1] || pair[0] == Waiting), "{story}");
    let turns: Vec<NotificationPhase> =
        sent.iter().copied().filter(|it| matches!(it, Degraded | Recovered)).collect();
    assert!(
        turns.chunks(2).all(|pair| pair[0] == Degraded && pair.get(1).is_none_or(|it| *it == Recovered)),
        "{story}"
    );
    let after = sent.iter().skip_while(|it| **it != Done).skip(1);
    assert!(after.clone().all(|it| matches!(it, Degraded | Recovered)), "{story}");
    let end = sent.last();
    let is_told = match last {
        ThreadCondition::Done => matches!(end, Some(Done | Recovered)),
        // A confirmation was sent after the failure.
        ThreadCondition::Failed(asked) => {
            matches!(end, Some(Failed | Degraded)) || !asked.is_empty() && sent.contains(&Failed)
        }
        ThreadCondition::Reverted => matches!(end, Some(Reverted | Done | Recovered)) || end.is_none(),
        _ => true,
    };
    assert!(is_told, "the last state is lost: {story}");
}

#[tokio::test(start_paused = true)]
async fn histories_with_deaths_keep_the_last_state() {
    let thread = NotificationThread::Rollout { commit: Revision::from("a1"), ring: Some("prod".to_owned()) };
    for seed in 0..400 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut memory = RouteHistory::open(None, "shop", RouteStart::NewRoute);
        memory.start = None;
        let mut pending = MessageTimers::default();
        let (mut sent, mut deaths, mut story) = (Vec::new(), 0, Vec::new());
        let mut condition = ThreadCondition::UnderWay;
        for step in 0..40 {
            let is_last = step == 39;
            if step > 0 {
                condition = random_condition(&mut random);
            }
            if is_last && !matches!(condition, ThreadCondition::Done | ThreadCondition::Failed(_)) {
                condition = if random.random() { ThreadCondition::Reverted } else { ThreadCondition::Done };
            }
            let lasts = if is_last { 7200 } else { random.random_range(1..200) };
            let until = Instant::now() + Duration::from_secs(lasts);
            story.push(format!("{condition:?} {lasts} s"));
            let seen = BTreeMap::from([(
                thread.clone(),
                ThreadState { condition: condition.clone(), facts: NoticeFacts::default() },
            )]);
            let present = present(seen);
            // The service does not answer for a while.
            let is_deaf = !is_last && random.random_bool(0.2);
            while Instant::now() < until {
                let due =
                    pending.due_messages(&mut memory, &present, (Instant::now(), Timestamp::UNIX_EPOCH));
                for message in &due.messages {
                    let key = message.thread.to_string();
                    if is_deaf {
                        continue;
                    }
                    let (told, sent_now) =
                        (message.history_before.clone(), Some(message.notice.history.clone()));
                    memory.set(key.clone(), ThreadRecord { told, sent: sent_now, ..ThreadRecord::default() });
                    story.push(format!("sent {:?}", message.notice.happened));
                    sent.push((message.notice.clone(), deaths));
                    if random.random_bool(0.1) {
                        deaths += 1;
                        story.push("died".to_owned());
                        // Sent messages are on disk.
                        pending = MessageTimers::default();
                        break;
                    }
                    let told = message.notice.history.clone();
                    memory.set(key, ThreadRecord { told, ..ThreadRecord::default() });
                }
                let wake = due.next.unwrap_or(until).min(Instant::now() + Duration::from_secs(5)).min(until);
                tokio::time::sleep_until(wake.max(Instant::now() + Duration::from_millis(100))).await;
            }
        }
        let story = format!("seed {seed}: {story:#?}");
        // The last message before a death may be repeated.
        let before = sent.len();
        let mut once: Vec<(NextNotice, i32)> = Vec::new();
        for (step, death) in sent {
            match once.last() {
                Some((known, died)) if *known == step && *died < death => {
                    *once.last_mut().unwrap() = (step, death)
                }
                _ => once.push((step, death)),
            }
        }
        assert!(before - once.len() <= usize::try_from(deaths).unwrap(), "{story}");
        let happened: Vec<NotificationPhase> = once.iter().map(|(step, _)| step.happened).collect();
        check(&happened, &condition, &story);
    }
}

/// Two apps in two rings, with commits and failing pods.
struct Fleet {
    overview: Overview,
    reverted: BTreeSet<Revision>,
    commits: usize,
}

const LOOK: RouteFilter<'_> = RouteFilter {
    wants_apps: false,
    wants_rings_or_clusters: false,
    app: &|_| true,
    ring: &|_| true,
    cluster: &|_| true,
};
const PHASES: [TargetPhase; 6] = [
    TargetPhase::Running,
    TargetPhase::Running,
    TargetPhase::Progressing,
    TargetPhase::Degraded,
    TargetPhase::Waiting,
    TargetPhase::Unreachable,
];

impl Fleet {
    fn new() -> Self {
        let clusters = [("t1", "test"), ("p1", "prod")];
        let apps = ["pay", "web"];
        let first = Revision::from("c0");
        let targets = apps.iter().flat_map(|app| {
            clusters.map(|(cluster, ring)| TargetReport {
                revision: Revision::from("c0"),
                ring: Some(ring.to_owned()),
                ..TargetReport::of_test(AppId::new("shop", app), cluster, TargetPhase::Running)
            })
        });
        let rollouts = apps
            .map(|app| RolloutReport::with_confirmation(AppId::new("shop", app), &["p1", "t1"], "", "all"));
        let clusters = clusters.map(|(name, ring)| ClusterReport::of_test(name, Some(ring)));
        let overview = Overview {
            revision: Some(first.clone()),
            is_rendered: true,
            tracked_commits: vec![first],
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
                    (target.revision, target.phase) = (commit.clone(), TargetPhase::Progressing);
                }
                self.overview.tracked_commits.insert(0, commit.clone());
                self.overview.tracked_commits.truncate(2);
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
        self.overview.targets.iter_mut().for_each(|target| target.phase = TargetPhase::Running);
    }
}

#[tokio::test(start_paused = true)]
async fn fleet_histories_report_commits_in_order() {
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut memory = RouteHistory::open(None, "shop", RouteStart::NewRoute);
        memory.start = None;
        let (mut pending, mut fleet) = (MessageTimers::default(), Fleet::new());
        let mut sent: BTreeMap<NotificationThread, Vec<NotificationPhase>> = BTreeMap::new();
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
                let open =
                    open.filter_map(|(key, _)| NotificationThread::parse(key)?.commit().cloned()).collect();
                let moment = OverviewIndex::of(&fleet.overview, &open).expect("it is known");
                let seen = moment.thread_states(&LOOK, &fleet.reverted, Timestamp::UNIX_EPOCH);
                let at = (Instant::now(), Timestamp::UNIX_EPOCH);
                let present = RouteState {
                    reverted: Arc::new(fleet.reverted.clone()),
                    failing: Arc::new(moment.failing_apps()),
                    ..present(seen)
                };
                let due = pending.due_messages(&mut memory, &present, at);
                for message in due.messages {
                    story.push(format!("{} {:?}", message.thread, message.notice.happened));
                    sent.entry(message.thread.clone()).or_default().push(message.notice.happened);
                    let mut entry = ThreadRecord { told: message.notice.history, ..ThreadRecord::default() };
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
                    && fleet.overview.tracked_commits.contains(commit)
                    && !fleet.reverted.contains(commit)
            });
            match thread {
                NotificationThread::Rollout { .. } => {
                    let end = if is_current { ThreadCondition::Done } else { ThreadCondition::Unknown };
                    check(happened, &end, &story);
                }
                _ => assert!(happened.windows(2).all(|pair| pair[0] != pair[1]), "{story}"),
            }
            // Every problem ends with a recovery.
            assert!(!matches!(happened.last(), Some(Degraded | NotificationPhase::Offline)), "{story}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn recently_done_commits_are_sent_at_start() {
    let now: Timestamp = "2026-11-27T08:00:00Z".parse().expect("a time");
    let check = |first_look: RouteStart, minutes: i64, expected: &[NotificationPhase]| {
        let commit = Revision::from("a1");
        let facts =
            CommitText { time: Some(now - SignedDuration::from_mins(minutes)), ..CommitText::default() };
        let thread = NotificationThread::Rollout { commit: commit.clone(), ring: None };
        let seen = ThreadState { condition: ThreadCondition::Done, facts: NoticeFacts::default() };
        let present = RouteState {
            commits: Arc::new(BTreeMap::from([(commit, facts)])),
            ..present(BTreeMap::from([(thread, seen)]))
        };
        let mut memory = RouteHistory::open(None, "shop", first_look);
        let due = MessageTimers::default().due_messages(&mut memory, &present, (Instant::now(), now));
        let happened: Vec<NotificationPhase> = due.messages.iter().map(|due| due.notice.happened).collect();
        assert_eq!(happened, expected, "{first_look:?}, {minutes} minutes");
    };
    check(RouteStart::ProcessStart, 1, &[Done]);
    check(RouteStart::ProcessStart, 11, &[]);
    check(RouteStart::NewRoute, 1, &[]);
}

#[tokio::test(start_paused = true)]
async fn deselected_commit_is_not_reported_as_healthy() {
    let thread = NotificationThread::Rollout { commit: Revision::from("a1"), ring: None };
    let mut memory = RouteHistory::open(None, "shop", RouteStart::ProcessStart);
    memory.start = None;
    let told = ThreadHistory { last: Some(Degraded), count: 2, ..ThreadHistory::default() };
    let apps = vec!["shop/web".to_owned()];
    memory.set(thread.to_string(), ThreadRecord { told, apps, app_count: 1, ..ThreadRecord::default() });
    let mut pending = MessageTimers::default();
    let mut happened = async |present: RouteState| {
        let mut look =
            || pending.due_messages(&mut memory, &present, (Instant::now(), Timestamp::UNIX_EPOCH));
        look();
        tokio::time::sleep(Duration::from_secs(120)).await;
        look().messages.into_iter().map(|due| (due.notice.happened, due.facts.app_count)).collect::<Vec<_>>()
    };
    let nothing = || present(BTreeMap::new());
    assert_eq!(happened(RouteState { reports_commits: false, ..nothing() }).await, []);
    let failing = Arc::new(BTreeSet::from([AppId::new("shop", "web")]));
    assert_eq!(happened(RouteState { failing, ..nothing() }).await, []);
    assert_eq!(happened(nothing()).await, [(Recovered, 1)]);
}
