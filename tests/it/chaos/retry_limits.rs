//! Limits how often a failing write may be retried within a minute.
//!
//! Tutti pauses after each failure: for an app on a cluster 1 s, 2 s, 4 s … 5 min; after a permanent refusal 30 s,
//! 1 min … 5 min; for a delete 5 s, 10 s … 5 min. The pauses restart when the app changes by a commit, the cluster
//! connects or disconnects, the process starts, or the object was written. A change of a refused object is answered
//! at once, with growing pauses.
//!
//! The pauses belong to an app: each transient failure of one of its objects explains one more retry of the others,
//! and so does each edit of them, within its own minute.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::{Method, StatusCode};
use tokio::time::Instant;

use super::desired::{ChaosApp, DesiredRepository};
use super::edit::LiveObjectKey;

const MINUTE: Duration = Duration::from_secs(60);
/// First pauses after a transient failure, a permanent refusal, and a failed delete.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const REFUSED_PAUSE: Duration = Duration::from_secs(30);
const DELETE_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// The reported state of a cluster changes a moment after its effect.
const REPORT_DELAY: Duration = Duration::from_millis(20);
/// An object that changed during its delete is deleted again at once, this many times.
const IMMEDIATE_RETRIES: usize = 3;

/// Reads of one object within a minute without a reason: waiting reads after 1 s, 2 s, 4 s …
const MAX_READS: usize = 6;

/// When others changed each object.
pub type EditTimes = BTreeMap<LiveObjectKey, Vec<Instant>>;

/// The attempts on one cluster or on all.
#[derive(Debug, Default)]
pub struct RetryMonitor {
    attempts: BTreeMap<LiveObjectKey, Vec<RequestAttempt>>,
    /// When pauses restarted: all, those of a cluster, of an object, and of all deletes.
    global_resets: Vec<Instant>,
    cluster_resets: BTreeMap<String, Vec<Instant>>,
    object_resets: BTreeMap<LiveObjectKey, Vec<Instant>>,
    delete_resets: Vec<Instant>,
    /// All apps that ever owned each object.
    owners: BTreeMap<LiveObjectKey, BTreeSet<String>>,
    /// The last reported state of each cluster.
    cluster_states: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptVerb {
    /// A read of one object; its failure fails the whole attempt.
    Read,
    Write,
    Delete,
}

impl AttemptVerb {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }

    pub fn of(method: &Method) -> Self {
        match *method {
            Method::GET => Self::Read,
            Method::DELETE => Self::Delete,
            _ => Self::Write,
        }
    }
}

#[derive(Debug)]
struct RequestAttempt {
    sent_at: Instant,
    verb: AttemptVerb,
    /// The resourceVersion of the object at that time.
    resource_version: Option<String>,
    is_answered: bool,
    /// `None` while the result is unknown.
    status: Option<StatusCode>,
}

impl RequestAttempt {
    fn succeeded(&self) -> bool {
        let is_nothing = self.verb == AttemptVerb::Read && self.status == Some(StatusCode::NOT_FOUND);
        is_nothing || self.status.is_some_and(|status| status.is_success())
    }

    /// Whether tutti treats the failure as transient. A conflict counts as one, as its status does not tell, and so does 401, which
    /// may pass.
    fn is_transient_failure(&self) -> bool {
        use StatusCode as S;
        self.status.is_none_or(|status| {
            matches!(status, S::UNAUTHORIZED | S::CONFLICT | S::TOO_MANY_REQUESTS) || status.is_server_error()
        })
    }
}

/// Reasons for more attempts on one object.
struct RetryReasons {
    transient_failures: Vec<Instant>,
    edits: Vec<Instant>,
    /// Writes of the app: a successful attempt restarts the pauses of the whole app.
    writes: Vec<Instant>,
}

impl RetryMonitor {
    /// A new process knows no earlier failure.
    pub fn process_started(&mut self) {
        self.global_resets.push(Instant::now());
        self.cluster_states.clear();
    }

    /// The process has read another head.
    pub fn head_changed(&mut self, old: &DesiredRepository, new: &DesiredRepository) {
        let now = Instant::now();
        self.delete_resets.push(now);
        if old.observe_mode != new.observe_mode {
            self.global_resets.push(now);
        }
        for (cluster, standing) in &new.clusters {
            if old.clusters.get(cluster) != Some(standing) {
                self.cluster_resets.entry(cluster.clone()).or_default().push(now);
            }
        }
        let changed = |one: &DesiredRepository, other: &DesiredRepository| -> Vec<(String, ChaosApp)> {
            let apps = one.apps.iter().filter(|(id, app)| other.apps.get(*id) != Some(*app));
            apps.map(|(id, app)| (id.clone(), app.clone())).collect()
        };
        for (id, app) in changed(old, new).into_iter().chain(changed(new, old)) {
            for (cluster, (name, _)) in app
                .clusters
                .iter()
                .flat_map(|it| app.objects(&id).into_iter().map(move |object| (it, object)))
            {
                let place = (cluster.clone(), name.path());
                self.object_resets.entry(place.clone()).or_default().push(now);
                self.owners.entry(place).or_default().insert(id.clone());
            }
        }
    }

    /// The process reports a state of a cluster.
    pub fn cluster_state_reported(&mut self, cluster: &str, state: &str) {
        if self
            .cluster_states
            .insert(cluster.to_owned(), state.to_owned())
            .is_none_or(|before| before != state)
        {
            self.cluster_resets.entry(cluster.to_owned()).or_default().push(Instant::now());
        }
    }

    pub fn request_sent(&mut self, place: &LiveObjectKey, verb: AttemptVerb, version: Option<String>) {
        let one = RequestAttempt {
            sent_at: Instant::now(),
            verb,
            resource_version: version,
            is_answered: false,
            status: None,
        };
        self.attempts.entry(place.clone()).or_default().push(one);
    }

    /// Records the result of the last unanswered attempt: `None` if the connection broke. `version` is the present one of
    /// the object.
    pub fn request_answered(
        &mut self,
        place: &LiveObjectKey,
        verb: AttemptVerb,
        status: Option<StatusCode>,
        version: impl FnOnce() -> Option<String>,
    ) {
        let mut tries = self.attempts.get_mut(place).into_iter().flatten().rev();
        let Some(one) = tries.find(|it| it.verb == verb && !it.is_answered) else { return };
        (one.is_answered, one.status) = (true, status);
        // The answer to a successful write was lost.
        if verb != AttemptVerb::Read && (one.succeeded() || one.resource_version != version()) {
            self.object_resets.entry(place.clone()).or_default().push(Instant::now());
        }
    }

    /// The most failed writes of one object in one minute, and the violations.
    pub fn check(&self, edits: &EditTimes) -> (usize, Vec<String>) {
        let (mut most, mut found) = (0, Vec::new());
        for (place, tries) in &self.attempts {
            for verb in [AttemptVerb::Read, AttemptVerb::Write, AttemptVerb::Delete] {
                let failed: Vec<&RequestAttempt> =
                    tries.iter().filter(|it| it.verb == verb && !it.succeeded()).collect();
                if failed.is_empty() {
                    continue;
                }
                let near = self.retry_reasons(place, edits);
                for (first, one) in failed.iter().enumerate() {
                    let number =
                        failed[first..].iter().take_while(|it| it.sent_at - one.sent_at < MINUTE).count();
                    let allowed = self.allowed_failures(place, &failed[first..first + number], verb, &near);
                    most = most.max(number);
                    if number > allowed {
                        let verb = verb.name();
                        let (cluster, path) = place;
                        found.push(format!(
                            "{cluster} {path}: {number} tries to {verb} it failed within a minute, {allowed} is the most"
                        ));
                        break;
                    }
                }
            }
        }
        found.extend(self.excess_reads(edits));
        (most, found)
    }

    /// Limits successful reads too: within a minute an object is read a few times, and once more for each reason: a write of it, a
    /// change of it or of its apps, a restart of pauses, and a failed attempt of its app. An object that lost our label
    /// without an event is read in full once.
    fn excess_reads(&self, edits: &EditTimes) -> Vec<String> {
        let mut found = Vec::new();
        for (place, tries) in &self.attempts {
            let (reads, writes): (Vec<&RequestAttempt>, Vec<&RequestAttempt>) =
                tries.iter().partition(|it| it.verb == AttemptVerb::Read);
            if reads.len() <= MAX_READS {
                continue;
            }
            let anew =
                [Some(&self.global_resets), self.cluster_resets.get(&place.0), self.object_resets.get(place)];
            let anew: Vec<Instant> = anew.into_iter().flatten().flatten().copied().collect();
            let mut reasons: Vec<Instant> = edits.get(place).into_iter().flatten().copied().collect();
            reasons.extend(writes.iter().map(|it| it.sent_at));
            let near = self.retry_reasons(place, edits);
            let within = |from: Instant, at: Instant| at + REPORT_DELAY > from && at < from + MINUTE;
            let too_many = reads.iter().enumerate().find_map(|(first, one)| {
                let number = reads[first..].iter().take_while(|it| it.sent_at - one.sent_at < MINUTE).count();
                let most = retries_after_resets(&anew, one.sent_at, FIRST_PAUSE, 0)
                    * self.reader_count(place)
                    + usize::from(edits.contains_key(place))
                    + reasons.iter().filter(|at| within(one.sent_at, **at)).count()
                    + explained_retries(&near.transient_failures, one.sent_at);
                (number > most).then_some((number, most))
            });
            if let Some((number, most)) = too_many {
                found.push(format!(
                    "{} {}: read {number} times within a minute, {most} is the most",
                    place.0, place.1
                ));
            }
        }
        found
    }

    /// The number of apps that read the object; two may render it.
    fn reader_count(&self, place: &LiveObjectKey) -> usize {
        self.owners.get(place).map_or(1, |owners| owners.len().max(1))
    }

    /// The events on that cluster of all objects of the apps that own the object.
    fn retry_reasons(&self, place: &LiveObjectKey, edits: &EditTimes) -> RetryReasons {
        let nobody = BTreeSet::new();
        let owners = |place: &LiveObjectKey| self.owners.get(place).unwrap_or(&nobody);
        let ours = owners(place);
        let is_near =
            |other: &LiveObjectKey| other == place || other.0 == place.0 && !owners(other).is_disjoint(ours);
        let tries = || self.attempts.iter().filter(|(other, _)| is_near(other)).flat_map(|(_, tries)| tries);
        let passing = tries()
            .filter(|it| it.verb != AttemptVerb::Delete && it.is_transient_failure())
            .map(|it| it.sent_at);
        let written = tries()
            .filter(|it| it.verb == AttemptVerb::Write && it.succeeded())
            .map(|it| it.sent_at)
            .collect();
        let edits = edits.iter().filter(|(other, _)| is_near(other)).flat_map(|(_, times)| times).copied();
        let (mut passing, mut edits): (Vec<Instant>, Vec<Instant>) = (passing.collect(), edits.collect());
        passing.sort();
        edits.sort();
        RetryReasons { transient_failures: passing, edits, writes: written }
    }

    /// How many of the failures in one minute are allowed. `failed`: all failures of that minute.
    fn allowed_failures(
        &self,
        place: &LiveObjectKey,
        failed: &[&RequestAttempt],
        verb: AttemptVerb,
        near: &RetryReasons,
    ) -> usize {
        let Some(from) = failed.first().map(|it| it.sent_at) else { return 0 };
        let is_delete = verb == AttemptVerb::Delete;
        let of_cluster = self.cluster_resets.get(&place.0);
        let of_place = self.object_resets.get(place);
        let of_deletes = Some(&self.delete_resets).filter(|_| is_delete);
        let all = [Some(&self.global_resets), of_cluster, of_place, of_deletes];
        let mut anew: Vec<Instant> = all.into_iter().flatten().flatten().copied().collect();
        if verb == AttemptVerb::Read {
            anew.extend(&near.writes);
        }
        let tries = |first: Duration, more: usize| retries_after_resets(&anew, from, first, more);
        if is_delete {
            return tries(DELETE_PAUSE, IMMEDIATE_RETRIES);
        }
        let (in_passing, for_good) = (tries(FIRST_PAUSE, 0), tries(REFUSED_PAUSE, 0));
        let woken = explained_retries(&near.edits, from).min(retries_within(MINUTE, FIRST_PAUSE));
        let attempts = in_passing.min(for_good + explained_retries(&near.transient_failures, from)) + woken;
        let attempts = if verb == AttemptVerb::Read { attempts * self.reader_count(place) } else { attempts };
        // A conflicting apply is repeated once with `force`.
        let repeated = failed.iter().filter(|it| it.status == Some(StatusCode::CONFLICT)).count();
        attempts + repeated.min(attempts)
    }
}

/// How many more attempts `times` explain in the minute from `from` on. Two times within the shortest pause belong to one
/// attempt. A time of the minute before may cause an attempt in this one.
fn explained_retries(times: &[Instant], from: Instant) -> usize {
    let is_before = times.iter().any(|at| *at < from && *at + MINUTE > from);
    let (mut number, mut last) = (usize::from(is_before), None);
    for at in times.iter().filter(|at| **at >= from && **at < from + MINUTE) {
        if last.is_none_or(|last: Instant| *at - last >= FIRST_PAUSE) {
            (number, last) = (number + 1, Some(*at));
        }
    }
    number
}

/// The number of attempts in the minute from `from` on, if pauses restart at `anew`, each time with `more` immediate attempts.
fn retries_after_resets(anew: &[Instant], from: Instant, first_pause: Duration, more: usize) -> usize {
    let end = from + MINUTE;
    let within = anew.iter().filter(|at| **at + REPORT_DELAY > from && **at < end + REPORT_DELAY);
    let mut cuts: Vec<Instant> = within.map(|at| (*at).clamp(from, end)).collect();
    cuts.extend([from, end]);
    cuts.sort();
    cuts.windows(2).map(|pair| retries_within(pair[1] - pair[0], first_pause) + more).sum()
}

/// The number of attempts in `time`, if the first is at its start and each pause is twice the one before.
fn retries_within(time: Duration, first_pause: Duration) -> usize {
    let (mut tries, mut pause, mut at) = (1, first_pause, first_pause);
    while at <= time {
        tries += 1;
        pause = (pause * 2).min(LONGEST_PAUSE);
        at += pause;
    }
    tries
}

#[cfg(test)]
mod tests {
    use super::super::desired::{ChaosAppKind, DriftMode, PruneMode};
    use super::super::object::{ChaosKind, ChaosObjectId};
    use super::*;

    fn place() -> LiveObjectKey {
        ("c1".to_owned(), ChaosObjectId::new(ChaosKind::ConfigMap, "o1").path())
    }

    fn other_place() -> LiveObjectKey {
        ("c1".to_owned(), ChaosObjectId::new(ChaosKind::ConfigMap, "o2").path())
    }

    fn try_once(pace: &mut RetryMonitor, place: &LiveObjectKey, verb: AttemptVerb, status: u16) {
        pace.request_sent(place, verb, None);
        pace.request_answered(place, verb, StatusCode::from_u16(status).ok(), || None);
    }

    /// The violations after failing attempts, each `seconds` after the one before.
    async fn failures_after(
        pauses: &[u64],
        verb: AttemptVerb,
        status: u16,
        mut between: impl FnMut(&mut RetryMonitor, &mut EditTimes),
    ) -> Vec<String> {
        let (mut pace, mut edits) = (RetryMonitor::default(), EditTimes::new());
        pace.process_started();
        let app = ChaosApp {
            kind: ChaosAppKind::Objects(
                ["o1", "o2"].map(|name| (ChaosObjectId::new(ChaosKind::ConfigMap, name), 1)).into(),
            ),
            clusters: ["c1".to_owned()].into(),
            paused: false,
            drift: DriftMode::Repair,
            prune: PruneMode::WhenHealthy,
            mistake: None,
            broken_image: false,
        };
        let wanted =
            DesiredRepository { apps: [("app1".to_owned(), app)].into(), ..DesiredRepository::default() };
        pace.head_changed(&DesiredRepository::default(), &wanted);
        // The start of the process restarts the pauses.
        tokio::time::sleep(MINUTE).await;
        for pause in pauses {
            tokio::time::sleep(Duration::from_secs(*pause)).await;
            try_once(&mut pace, &place(), verb, status);
            between(&mut pace, &mut edits);
        }
        pace.check(&edits).1
    }

    const NO_EVENT: fn(&mut RetryMonitor, &mut EditTimes) = |_, _| {};

    fn expected_violation(verb: &str, number: usize, most: usize) -> Vec<String> {
        let path = "c1 /api/v1/namespaces/default/configmaps/o1";
        vec![format!("{path}: {number} tries to {verb} it failed within a minute, {most} is the most")]
    }

    #[tokio::test(start_paused = true)]
    async fn retries_above_the_promised_number_are_violations() {
        let (write, delete) = (AttemptVerb::Write, AttemptVerb::Delete);
        let none = Vec::<String>::new();
        for status in [503, 429, 500, 401] {
            assert_eq!(
                failures_after(&[0, 1, 2, 4, 8, 16, 32], write, status, NO_EVENT).await,
                none,
                "{status}"
            );
            let found = failures_after(&[0, 1, 2, 4, 8, 16, 16], write, status, NO_EVENT).await;
            assert_eq!(found, expected_violation("write", 7, 6), "{status}");
        }
        for status in [403, 422, 400] {
            assert_eq!(
                failures_after(&[0, 30, 60, 120, 240, 300], write, status, NO_EVENT).await,
                none,
                "{status}"
            );
            let found = failures_after(&[0, 30, 29], write, status, NO_EVENT).await;
            assert_eq!(found, expected_violation("write", 3, 2), "{status}");
        }
        assert_eq!(failures_after(&[0, 5, 10, 20, 40], delete, 403, NO_EVENT).await, none);
        assert_eq!(failures_after(&[0, 0, 0, 0, 5, 10, 20], delete, 409, NO_EVENT).await, none);
        assert_eq!(
            failures_after(&[0, 0, 0, 0, 5, 10, 20, 5], delete, 409, NO_EVENT).await,
            expected_violation("delete", 8, 7)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn reads_that_go_well_are_few_too() {
        assert_eq!(
            failures_after(&[1; MAX_READS], AttemptVerb::Read, 200, NO_EVENT).await,
            Vec::<String>::new()
        );
        let path = "c1 /api/v1/namespaces/default/configmaps/o1";
        let expected =
            vec![format!("{path}: read {} times within a minute, {MAX_READS} is the most", MAX_READS + 1)];
        assert_eq!(failures_after(&[1; MAX_READS + 1], AttemptVerb::Read, 200, NO_EVENT).await, expected);
        assert_eq!(
            failures_after(&[8; MAX_READS + 1], AttemptVerb::Read, 404, NO_EVENT).await.len(),
            1,
            "found to be nothing"
        );
        let edited = |_: &mut RetryMonitor, edits: &mut EditTimes| {
            edits.entry(place()).or_default().push(Instant::now())
        };
        assert_eq!(
            failures_after(&[1; MAX_READS * 2], AttemptVerb::Read, 200, edited).await,
            Vec::<String>::new()
        );
        let two_apps = |pace: &mut RetryMonitor, _: &mut EditTimes| {
            pace.owners.entry(place()).or_default().insert("app2".to_owned());
        };
        assert_eq!(
            failures_after(&[1; MAX_READS * 2], AttemptVerb::Read, 200, two_apps).await,
            Vec::<String>::new()
        );
        assert_eq!(failures_after(&[1; MAX_READS * 2 + 1], AttemptVerb::Read, 200, two_apps).await.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_of_the_app_resets_read_retries() {
        let pauses = [1, 1, 2, 4, 1, 2, 4];
        assert_eq!(
            failures_after(&pauses, AttemptVerb::Read, 429, NO_EVENT).await,
            expected_violation("read", 7, 6)
        );
        let mut number = 0;
        let written = |pace: &mut RetryMonitor, _: &mut EditTimes| {
            number += 1;
            if number == 4 {
                try_once(pace, &other_place(), AttemptVerb::Write, 200);
            }
        };
        assert_eq!(failures_after(&pauses, AttemptVerb::Read, 429, written).await, Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_conflict_is_retried_at_once() {
        let twice = [0, 0, 1, 0, 2, 0, 4, 0, 8, 0, 16, 0];
        assert_eq!(failures_after(&twice, AttemptVerb::Write, 409, NO_EVENT).await, Vec::<String>::new());
        let found = failures_after(&[&twice[..], &[1]].concat(), AttemptVerb::Write, 409, NO_EVENT).await;
        assert_eq!(found, expected_violation("write", 13, 12));
        assert_eq!(
            failures_after(&twice, AttemptVerb::Write, 503, NO_EVENT).await,
            expected_violation("write", 12, 6)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_transient_failure_explains_one_neighbour_retry() {
        let with = |verb: AttemptVerb, status: u16| {
            let mut is_first = true;
            move |pace: &mut RetryMonitor, _: &mut EditTimes| {
                if std::mem::take(&mut is_first) {
                    try_once(pace, &other_place(), verb, status);
                }
            }
        };
        let (short, none) = ([0, 1, 30], Vec::<String>::new());
        assert_eq!(
            failures_after(&short, AttemptVerb::Write, 403, with(AttemptVerb::Write, 503)).await,
            none
        );
        assert_eq!(failures_after(&short, AttemptVerb::Write, 403, with(AttemptVerb::Read, 503)).await, none);
        assert_eq!(
            failures_after(&short, AttemptVerb::Write, 403, with(AttemptVerb::Write, 403)).await,
            expected_violation("write", 3, 2)
        );
        let found =
            failures_after(&[0, 1, 2, 30], AttemptVerb::Write, 403, with(AttemptVerb::Write, 503)).await;
        assert_eq!(found, expected_violation("write", 4, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn an_edit_counts_in_its_own_minute() {
        let edit = |place: fn() -> LiveObjectKey, number: usize| {
            let mut left = number;
            move |_: &mut RetryMonitor, edits: &mut EditTimes| {
                if left > 0 {
                    left -= 1;
                    edits.entry(place()).or_default().push(Instant::now());
                }
            }
        };
        let (short, none) = ([0, 1, 30], Vec::<String>::new());
        assert_eq!(failures_after(&short, AttemptVerb::Write, 403, edit(place, 1)).await, none);
        assert_eq!(failures_after(&short, AttemptVerb::Write, 403, edit(other_place, 1)).await, none);
        let elsewhere = || ("c2".to_owned(), place().1);
        assert_eq!(
            failures_after(&short, AttemptVerb::Write, 403, edit(elsewhere, 1)).await,
            expected_violation("write", 3, 2)
        );
        let later = [0, 120, 30, 29];
        assert_eq!(
            failures_after(&later, AttemptVerb::Write, 403, edit(place, 1)).await,
            expected_violation("write", 3, 2)
        );
        // Continuous changes are answered with growing pauses.
        let found = failures_after(&[1; 40], AttemptVerb::Write, 403, edit(place, 40)).await;
        assert_eq!(found, expected_violation("write", 40, 8));
    }

    #[tokio::test(start_paused = true)]
    async fn each_change_resets_the_pauses() {
        let many = [1; 40];
        let tried = async |between: fn(&mut RetryMonitor, &mut EditTimes)| {
            failures_after(&many, AttemptVerb::Write, 503, between).await
        };
        assert_ne!(tried(NO_EVENT).await, Vec::<String>::new());
        assert_eq!(tried(|pace, _| pace.process_started()).await, Vec::<String>::new());
        assert_eq!(tried(|pace, _| reconnect(pace, "c1")).await, Vec::<String>::new());
        assert_ne!(tried(|pace, _| reconnect(pace, "c2")).await, Vec::<String>::new());
    }

    fn reconnect(pace: &mut RetryMonitor, cluster: &str) {
        pace.cluster_state_reported(cluster, "Offline");
        pace.cluster_state_reported(cluster, "Ready");
    }

    #[test]
    fn each_pause_is_twice_the_one_before() {
        let check = |seconds, first, expected| {
            let (time, first) = (Duration::from_secs(seconds), Duration::from_secs(first));
            assert_eq!(retries_within(time, first), expected, "{time:?}");
        };
        check(0, 1, 1);
        check(1, 1, 2);
        check(30, 1, 5);
        check(60, 1, 6);
        check(60, 5, 4);
        check(1_000, 300, 4);
    }
}
