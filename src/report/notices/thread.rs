//! Threads of notifications, and the state machine that returns the next notification of a thread.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::NoticeFacts;
use crate::model::{ClusterName, NotificationPhase, Revision};

/// The subject of notifications. Those of one thread are sent in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotificationThread {
    /// A commit in a ring. All clusters in no ring count as one ring.
    Rollout {
        commit: Revision,
        ring: Option<String>,
    },
    /// Apps of commits that are no longer tracked, in a ring.
    Health {
        ring: Option<String>,
    },
    /// A commit with errors outside of its apps, for all rings.
    Errors {
        commit: Revision,
    },
    Promotion(u64),
    Cluster(ClusterName),
    /// Deletes that wait for one approval, by its digest.
    Deletes(String),
    Credential {
        cluster: ClusterName,
        ends: String,
    },
    Server {
        name: String,
        ends: String,
    },
}

/// The format on disk and in events for programs.
impl fmt::Display for NotificationThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rollout { commit, ring: Some(ring) } => write!(f, "rollout/{commit}/{ring}"),
            Self::Rollout { commit, ring: None } => write!(f, "rollout/{commit}"),
            Self::Health { ring: Some(ring) } => write!(f, "health/{ring}"),
            Self::Health { ring: None } => f.write_str("health"),
            Self::Errors { commit } => write!(f, "errors/{commit}"),
            Self::Promotion(number) => write!(f, "promotion/{number}"),
            Self::Cluster(name) => write!(f, "cluster/{name}"),
            Self::Deletes(digest) => write!(f, "deletes/{digest}"),
            Self::Credential { cluster, ends } => write!(f, "credential/{cluster}/{ends}"),
            Self::Server { name, ends } => write!(f, "server/{name}/{ends}"),
        }
    }
}

impl NotificationThread {
    pub fn parse(text: &str) -> Option<Self> {
        if text == "health" {
            return Some(Self::Health { ring: None });
        }
        let (kind, rest) = text.split_once('/')?;
        let owned = ToOwned::to_owned;
        Some(match kind {
            "rollout" => match rest.split_once('/') {
                Some((commit, ring)) => {
                    Self::Rollout { commit: Revision::from(commit), ring: Some(ring.to_owned()) }
                }
                None => Self::Rollout { commit: Revision::from(rest), ring: None },
            },
            "health" => Self::Health { ring: Some(rest.to_owned()) },
            "errors" => Self::Errors { commit: Revision::from(rest) },
            "promotion" => Self::Promotion(rest.parse().ok()?),
            "cluster" => Self::Cluster(ClusterName::from(rest)),
            "deletes" => Self::Deletes(rest.to_owned()),
            "credential" => {
                let (cluster, ends) = rest.split_once('/')?;
                Self::Credential { cluster: ClusterName::from(cluster), ends: owned(ends) }
            }
            "server" => {
                let (name, ends) = rest.split_once('/')?;
                Self::Server { name: owned(name), ends: owned(ends) }
            }
            _ => return None,
        })
    }

    pub fn commit(&self) -> Option<&Revision> {
        match self {
            Self::Rollout { commit, .. } | Self::Errors { commit } => Some(commit),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ThreadState {
    pub condition: ThreadCondition,
    pub facts: NoticeFacts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadCondition {
    UnderWay,
    /// For a confirmation: the apps and waves to confirm.
    Waiting(BTreeSet<String>),
    Done,
    /// With the confirmations that other targets wait for.
    Failed(BTreeSet<String>),
    /// An app became unhealthy after its rollout was done.
    Unwell,
    /// Unknown, or neither good nor bad: no notification follows.
    Unknown,
    /// A later commit reverted it.
    Reverted,
    /// Later commits changed everything of this commit.
    Superseded,
    /// A single event, sent once.
    Is(NotificationPhase),
    /// The problem is over or never existed; for a cluster: it is online.
    Well,
}

/// What was sent about a thread so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ThreadHistory {
    pub last: Option<NotificationPhase>,
    /// The number of notifications.
    #[serde(skip_serializing_if = "is_zero")]
    pub count: u32,
    /// How often it became bad and that was sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub episode: u32,
    /// The confirmations that were asked for.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub asked: BTreeSet<String>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextNotice {
    pub happened: NotificationPhase,
    /// The history once this was sent.
    pub history: ThreadHistory,
    /// How long the condition must last before it is sent.
    pub delay: Duration,
}

/// Other failures and confirmations of the same moment are collected into one notification.
const FAILURE_DELAY: Duration = Duration::from_secs(5);
/// Later confirmations are collected for twice as long with each notification, up to five minutes.
const MOST_DOUBLINGS: u32 = 6;
/// A shorter problem needs no notification. The delay doubles with each repetition, up to an hour.
const UNHEALTHY_DELAY: Duration = Duration::from_secs(60);
const MAX_DELAY: Duration = Duration::from_secs(3600);

/// `None`: nothing to send. Each phase is sent once. Exceptions: a failure after a confirmation, and a problem that comes back
/// after a recovery; problem and recovery are always sent in pairs.
pub fn next_notice(told: &ThreadHistory, condition: &ThreadCondition) -> Option<NextNotice> {
    use NotificationPhase::{Degraded, Done, Failed, Offline, Online, Recovered, Reverted, Started, Waiting};
    let last = told.last;
    let after = |happened: NotificationPhase| {
        let asked = if matches!(happened, Done | Reverted) { BTreeSet::new() } else { told.asked.clone() };
        ThreadHistory { last: Some(happened), count: told.count + 1, episode: told.episode, asked }
    };
    let step = |happened: NotificationPhase, hold: Duration| {
        Some(NextNotice { happened, history: after(happened), delay: hold })
    };
    let becomes_bad = |happened: NotificationPhase| {
        let hold = UNHEALTHY_DELAY.saturating_mul(1 << told.episode.min(6)).min(MAX_DELAY);
        let after = ThreadHistory { episode: told.episode + 1, ..after(happened) };
        Some(NextNotice { happened, history: after, delay: hold })
    };
    match (condition, last) {
        // While something fails, the state stays Failed: it is not sent again when other targets continue.
        (ThreadCondition::Failed(asked), Some(Failed)) if !asked.is_subset(&told.asked) => {
            let mut step = confirmation_notice(told, asked);
            step.history.last = Some(Failed);
            Some(step)
        }
        (ThreadCondition::UnderWay, None) => step(Started, Duration::ZERO),
        (ThreadCondition::Waiting(asked), None | Some(Started | Waiting | Failed))
            if !asked.is_subset(&told.asked) =>
        {
            Some(confirmation_notice(told, asked))
        }
        (ThreadCondition::Done, None | Some(Started | Waiting | Failed)) => step(Done, Duration::ZERO),
        (ThreadCondition::Failed(_), None | Some(Started | Waiting)) => step(Failed, FAILURE_DELAY),
        (ThreadCondition::Unwell, None)
        | (ThreadCondition::Failed(_) | ThreadCondition::Unwell, Some(Done | Recovered)) => {
            becomes_bad(Degraded)
        }
        (ThreadCondition::Done | ThreadCondition::Well | ThreadCondition::Superseded, Some(Degraded)) => {
            step(Recovered, UNHEALTHY_DELAY)
        }
        // A revert ends the problem.
        (ThreadCondition::Reverted, Some(Degraded)) => step(Recovered, Duration::ZERO),
        (ThreadCondition::Reverted, Some(Started | Waiting | Failed)) => step(Reverted, Duration::ZERO),
        (ThreadCondition::Is(Offline), None | Some(Online)) => becomes_bad(Offline),
        (ThreadCondition::Well, Some(Offline)) => step(Online, Duration::ZERO),
        (ThreadCondition::Is(happened), last) if *happened != Offline && last != Some(*happened) => {
            step(*happened, Duration::ZERO)
        }
        _ => None,
    }
}

/// A confirmation that was not asked for before.
fn confirmation_notice(told: &ThreadHistory, asked: &BTreeSet<String>) -> NextNotice {
    let mut after =
        ThreadHistory { last: Some(NotificationPhase::Waiting), count: told.count + 1, ..told.clone() };
    after.asked.extend(asked.iter().cloned());
    let hold = FAILURE_DELAY * (1 << told.count.min(MOST_DOUBLINGS));
    NextNotice { happened: NotificationPhase::Waiting, history: after, delay: hold }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NotificationPhase::{
        Degraded, Done, Failed, Held, Merged, Offline, Online, Opened, Recovered, Reverted, Started, Waiting,
    };

    fn waiting(what: &str) -> ThreadCondition {
        ThreadCondition::Waiting(BTreeSet::from([what.to_owned()]))
    }

    const FAILS: ThreadCondition = ThreadCondition::Failed(BTreeSet::new());

    /// Something fails while other targets wait for a confirmation.
    fn fails_beside(what: &str) -> ThreadCondition {
        ThreadCondition::Failed(BTreeSet::from([what.to_owned()]))
    }

    #[test]
    fn each_phase_is_sent_once_and_in_order() {
        #[track_caller]
        fn check(conditions: &[ThreadCondition], expected: &[NotificationPhase]) {
            let mut told = ThreadHistory::default();
            let mut happened = Vec::new();
            for condition in conditions {
                if let Some(step) = next_notice(&told, condition) {
                    happened.push(step.happened);
                    told = step.history;
                }
                assert!(next_notice(&told, condition).is_none(), "{condition:?} is told twice");
            }
            assert_eq!(happened, expected, "{conditions:?}");
        }
        use ThreadCondition::{Is, Reverted as TakenBack, UnderWay, Unwell, Well};
        check(&[UnderWay, ThreadCondition::Done, UnderWay, ThreadCondition::Done], &[Started, Done]);
        check(
            &[
                UnderWay,
                waiting("canary"),
                UnderWay,
                waiting("green"),
                waiting("canary"),
                ThreadCondition::Done,
            ],
            &[Started, Waiting, Waiting, Done],
        );
        check(&[FAILS, UnderWay, FAILS, ThreadCondition::Done], &[Failed, Done]);
        check(
            &[UnderWay, FAILS, fails_beside("canary"), waiting("canary"), FAILS, ThreadCondition::Done],
            &[Started, Failed, Waiting, Done],
        );
        check(
            &[ThreadCondition::Done, waiting("canary"), FAILS, UnderWay, ThreadCondition::Done],
            &[Done, Degraded, Recovered],
        );
        check(&[UnderWay, FAILS, TakenBack, UnderWay], &[Started, Failed, Reverted]);
        check(&[ThreadCondition::Done, TakenBack], &[Done]);
        check(&[ThreadCondition::Done, FAILS, TakenBack], &[Done, Degraded, Recovered]);
        check(&[TakenBack], &[]);
        check(&[Well, Unwell, Well, Unwell, Well], &[Degraded, Recovered, Degraded, Recovered]);
        check(&[Well, Is(Offline), Well, Is(Offline)], &[Offline, Online, Offline]);
        check(&[Is(Opened), Is(Held), Is(Opened), Is(Merged)], &[Opened, Held, Opened, Merged]);
    }

    #[test]
    fn thread_is_parsed_from_its_text() {
        let commit = || Revision::from("a1");
        let cluster = || ClusterName::from("bj1");
        for thread in [
            NotificationThread::Rollout { commit: commit(), ring: Some("prod".to_owned()) },
            NotificationThread::Rollout { commit: commit(), ring: None },
            NotificationThread::Health { ring: Some("prod".to_owned()) },
            NotificationThread::Health { ring: None },
            NotificationThread::Errors { commit: commit() },
            NotificationThread::Promotion(7),
            NotificationThread::Cluster(cluster()),
            NotificationThread::Deletes("3f9a".to_owned()),
            NotificationThread::Credential { cluster: cluster(), ends: "2026-12-01T00:00:00Z".to_owned() },
            NotificationThread::Server { name: "ecs-1".to_owned(), ends: "2026-12-01".to_owned() },
        ] {
            assert_eq!(NotificationThread::parse(&thread.to_string()), Some(thread));
        }
        assert_eq!(NotificationThread::parse("promotion/x"), None);
    }

    #[test]
    fn later_confirmations_are_collected() {
        let mut told = ThreadHistory::default();
        let mut holds = Vec::new();
        for wave in 0..9 {
            let step = next_notice(&told, &waiting(&format!("wave {wave}"))).unwrap();
            holds.push(step.delay.as_secs());
            told = step.history;
        }
        assert_eq!(holds, [5, 10, 20, 40, 80, 160, 320, 320, 320]);
    }

    #[test]
    fn repeated_problems_are_sent_less_often() {
        let mut told = ThreadHistory { last: Some(Done), ..ThreadHistory::default() };
        let mut holds = Vec::new();
        for _ in 0..9 {
            let step = next_notice(&told, &FAILS).unwrap();
            holds.push(step.delay.as_secs() / 60);
            told = next_notice(&step.history, &ThreadCondition::Done).unwrap().history;
        }
        assert_eq!(holds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }
}
