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

use super::edit::Place;
use super::wanted::{App, Wanted};

const MINUTE: Duration = Duration::from_secs(60);
/// First pauses after a transient failure, a permanent refusal, and a failed delete.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const REFUSED_PAUSE: Duration = Duration::from_secs(30);
const DELETE_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// The reported state of a cluster changes a moment after its effect.
const MOMENT: Duration = Duration::from_millis(20);
/// An object that changed during its delete is deleted again at once, this many times.
const AT_ONCE: usize = 3;

/// Reads of one object within a minute without a reason: waiting reads after 1 s, 2 s, 4 s …
const READS: usize = 6;

/// When others changed each object.
pub type Edits = BTreeMap<Place, Vec<Instant>>;

/// The attempts on one cluster or on all.
#[derive(Debug, Default)]
pub struct Pace {
    tries: BTreeMap<Place, Vec<Try>>,
    /// When pauses restarted: all, those of a cluster, of an object, and of all deletes.
    anew: Vec<Instant>,
    cluster_anew: BTreeMap<String, Vec<Instant>>,
    place_anew: BTreeMap<Place, Vec<Instant>>,
    deletes_anew: Vec<Instant>,
    /// All apps that ever owned each object.
    owners: BTreeMap<Place, BTreeSet<String>>,
    /// The last reported state of each cluster.
    said: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// A read of one object; its failure fails the whole attempt.
    Read,
    Write,
    Delete,
}

impl Verb {
    fn word(self) -> &'static str {
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
struct Try {
    at: Instant,
    verb: Verb,
    /// The resourceVersion of the object at that time.
    version: Option<String>,
    is_answered: bool,
    /// `None` while the result is unknown.
    status: Option<StatusCode>,
}

impl Try {
    fn is_done(&self) -> bool {
        let is_nothing = self.verb == Verb::Read && self.status == Some(StatusCode::NOT_FOUND);
        is_nothing || self.status.is_some_and(|status| status.is_success())
    }

    /// Whether tutti treats the failure as transient. A conflict counts as one, as its status does not tell, and so does 401, which
    /// may pass.
    fn failed_in_passing(&self) -> bool {
        use StatusCode as S;
        self.status.is_none_or(|status| {
            matches!(status, S::UNAUTHORIZED | S::CONFLICT | S::TOO_MANY_REQUESTS) || status.is_server_error()
        })
    }
}

/// Reasons for more attempts on one object.
struct Near {
    passing: Vec<Instant>,
    edits: Vec<Instant>,
    /// Writes of the app: a successful attempt restarts the pauses of the whole app.
    written: Vec<Instant>,
}

impl Pace {
    /// A new process knows no earlier failure.
    pub fn begins(&mut self) {
        self.anew.push(Instant::now());
        self.said.clear();
    }

    /// The process has read another head.
    pub fn reads(&mut self, old: &Wanted, new: &Wanted) {
        let now = Instant::now();
        self.deletes_anew.push(now);
        if old.observes != new.observes {
            self.anew.push(now);
        }
        for (cluster, standing) in &new.clusters {
            if old.clusters.get(cluster) != Some(standing) {
                self.cluster_anew.entry(cluster.clone()).or_default().push(now);
            }
        }
        let changed = |one: &Wanted, other: &Wanted| -> Vec<(String, App)> {
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
                self.place_anew.entry(place.clone()).or_default().push(now);
                self.owners.entry(place).or_default().insert(id.clone());
            }
        }
    }

    /// The process reports a state of a cluster.
    pub fn says(&mut self, cluster: &str, state: &str) {
        if self.said.insert(cluster.to_owned(), state.to_owned()).is_none_or(|before| before != state) {
            self.cluster_anew.entry(cluster.to_owned()).or_default().push(Instant::now());
        }
    }

    pub fn sent(&mut self, place: &Place, verb: Verb, version: Option<String>) {
        let one = Try { at: Instant::now(), verb, version, is_answered: false, status: None };
        self.tries.entry(place.clone()).or_default().push(one);
    }

    /// Records the result of the last unanswered attempt: `None` if the connection broke. `version` is the present one of
    /// the object.
    pub fn answered(
        &mut self,
        place: &Place,
        verb: Verb,
        status: Option<StatusCode>,
        version: impl FnOnce() -> Option<String>,
    ) {
        let mut tries = self.tries.get_mut(place).into_iter().flatten().rev();
        let Some(one) = tries.find(|it| it.verb == verb && !it.is_answered) else { return };
        (one.is_answered, one.status) = (true, status);
        // The answer to a successful write was lost.
        if verb != Verb::Read && (one.is_done() || one.version != version()) {
            self.place_anew.entry(place.clone()).or_default().push(Instant::now());
        }
    }

    /// The most failed writes of one object in one minute, and the violations.
    pub fn check(&self, edits: &Edits) -> (usize, Vec<String>) {
        let (mut most, mut found) = (0, Vec::new());
        for (place, tries) in &self.tries {
            for verb in [Verb::Read, Verb::Write, Verb::Delete] {
                let failed: Vec<&Try> = tries.iter().filter(|it| it.verb == verb && !it.is_done()).collect();
                if failed.is_empty() {
                    continue;
                }
                let near = self.near(place, edits);
                for (first, one) in failed.iter().enumerate() {
                    let number = failed[first..].iter().take_while(|it| it.at - one.at < MINUTE).count();
                    let allowed = self.allowed(place, &failed[first..first + number], verb, &near);
                    most = most.max(number);
                    if number > allowed {
                        let verb = verb.word();
                        let (cluster, path) = place;
                        found.push(format!(
                            "{cluster} {path}: {number} tries to {verb} it failed within a minute, {allowed} is the most"
                        ));
                        break;
                    }
                }
            }
        }
        found.extend(self.read_too_often(edits));
        (most, found)
    }

    /// Limits successful reads too: within a minute an object is read a few times, and once more for each reason: a write of it, a
    /// change of it or of its apps, a restart of pauses, and a failed attempt of its app. An object that lost our label
    /// without an event is read in full once.
    fn read_too_often(&self, edits: &Edits) -> Vec<String> {
        let mut found = Vec::new();
        for (place, tries) in &self.tries {
            let (reads, writes): (Vec<&Try>, Vec<&Try>) = tries.iter().partition(|it| it.verb == Verb::Read);
            if reads.len() <= READS {
                continue;
            }
            let anew = [Some(&self.anew), self.cluster_anew.get(&place.0), self.place_anew.get(place)];
            let anew: Vec<Instant> = anew.into_iter().flatten().flatten().copied().collect();
            let mut reasons: Vec<Instant> = edits.get(place).into_iter().flatten().copied().collect();
            reasons.extend(writes.iter().map(|it| it.at));
            let near = self.near(place, edits);
            let within = |from: Instant, at: Instant| at + MOMENT > from && at < from + MINUTE;
            let too_many = reads.iter().enumerate().find_map(|(first, one)| {
                let number = reads[first..].iter().take_while(|it| it.at - one.at < MINUTE).count();
                let most = series(&anew, one.at, FIRST_PAUSE, 0) * self.readers(place)
                    + usize::from(edits.contains_key(place))
                    + reasons.iter().filter(|at| within(one.at, **at)).count()
                    + explained(&near.passing, one.at);
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
    fn readers(&self, place: &Place) -> usize {
        self.owners.get(place).map_or(1, |owners| owners.len().max(1))
    }

    /// The events on that cluster of all objects of the apps that own the object.
    fn near(&self, place: &Place, edits: &Edits) -> Near {
        let nobody = BTreeSet::new();
        let owners = |place: &Place| self.owners.get(place).unwrap_or(&nobody);
        let ours = owners(place);
        let is_near =
            |other: &Place| other == place || other.0 == place.0 && !owners(other).is_disjoint(ours);
        let tries = || self.tries.iter().filter(|(other, _)| is_near(other)).flat_map(|(_, tries)| tries);
        let passing = tries().filter(|it| it.verb != Verb::Delete && it.failed_in_passing()).map(|it| it.at);
        let written = tries().filter(|it| it.verb == Verb::Write && it.is_done()).map(|it| it.at).collect();
        let edits = edits.iter().filter(|(other, _)| is_near(other)).flat_map(|(_, times)| times).copied();
        let (mut passing, mut edits): (Vec<Instant>, Vec<Instant>) = (passing.collect(), edits.collect());
        passing.sort();
        edits.sort();
        Near { passing, edits, written }
    }

    /// How many of the failures in one minute are allowed. `failed`: all failures of that minute.
    fn allowed(&self, place: &Place, failed: &[&Try], verb: Verb, near: &Near) -> usize {
        let Some(from) = failed.first().map(|it| it.at) else { return 0 };
        let is_delete = verb == Verb::Delete;
        let of_cluster = self.cluster_anew.get(&place.0);
        let of_place = self.place_anew.get(place);
        let of_deletes = Some(&self.deletes_anew).filter(|_| is_delete);
        let all = [Some(&self.anew), of_cluster, of_place, of_deletes];
        let mut anew: Vec<Instant> = all.into_iter().flatten().flatten().copied().collect();
        if verb == Verb::Read {
            anew.extend(&near.written);
        }
        let tries = |first: Duration, more: usize| series(&anew, from, first, more);
        if is_delete {
            return tries(DELETE_PAUSE, AT_ONCE);
        }
        let (in_passing, for_good) = (tries(FIRST_PAUSE, 0), tries(REFUSED_PAUSE, 0));
        let woken = explained(&near.edits, from).min(tries_within(MINUTE, FIRST_PAUSE));
        let attempts = in_passing.min(for_good + explained(&near.passing, from)) + woken;
        let attempts = if verb == Verb::Read { attempts * self.readers(place) } else { attempts };
        // A conflicting apply is repeated once with `force`.
        let repeated = failed.iter().filter(|it| it.status == Some(StatusCode::CONFLICT)).count();
        attempts + repeated.min(attempts)
    }
}

/// How many more attempts `times` explain in the minute from `from` on. Two times within the shortest pause belong to one
/// attempt. A time of the minute before may cause an attempt in this one.
fn explained(times: &[Instant], from: Instant) -> usize {
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
fn series(anew: &[Instant], from: Instant, first_pause: Duration, more: usize) -> usize {
    let end = from + MINUTE;
    let within = anew.iter().filter(|at| **at + MOMENT > from && **at < end + MOMENT);
    let mut cuts: Vec<Instant> = within.map(|at| (*at).clamp(from, end)).collect();
    cuts.extend([from, end]);
    cuts.sort();
    cuts.windows(2).map(|pair| tries_within(pair[1] - pair[0], first_pause) + more).sum()
}

/// The number of attempts in `time`, if the first is at its start and each pause is twice the one before.
fn tries_within(time: Duration, first_pause: Duration) -> usize {
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
    use super::super::object::{Kind, Name};
    use super::super::wanted::{Drift, Prune, Sort};
    use super::*;

    fn place() -> Place {
        ("c1".to_owned(), Name::new(Kind::ConfigMap, "o1").path())
    }

    fn other() -> Place {
        ("c1".to_owned(), Name::new(Kind::ConfigMap, "o2").path())
    }

    fn try_once(pace: &mut Pace, place: &Place, verb: Verb, status: u16) {
        pace.sent(place, verb, None);
        pace.answered(place, verb, StatusCode::from_u16(status).ok(), || None);
    }

    /// The violations after failing attempts, each `seconds` after the one before.
    async fn tried(
        pauses: &[u64],
        verb: Verb,
        status: u16,
        mut between: impl FnMut(&mut Pace, &mut Edits),
    ) -> Vec<String> {
        let (mut pace, mut edits) = (Pace::default(), Edits::new());
        pace.begins();
        let app = App {
            sort: Sort::Objects(["o1", "o2"].map(|name| (Name::new(Kind::ConfigMap, name), 1)).into()),
            clusters: ["c1".to_owned()].into(),
            paused: false,
            drift: Drift::Repair,
            prune: Prune::WhenHealthy,
            mistake: None,
            broken_image: false,
        };
        let wanted = Wanted { apps: [("app1".to_owned(), app)].into(), ..Wanted::default() };
        pace.reads(&Wanted::default(), &wanted);
        // The start of the process restarts the pauses.
        tokio::time::sleep(MINUTE).await;
        for pause in pauses {
            tokio::time::sleep(Duration::from_secs(*pause)).await;
            try_once(&mut pace, &place(), verb, status);
            between(&mut pace, &mut edits);
        }
        pace.check(&edits).1
    }

    const NOTHING: fn(&mut Pace, &mut Edits) = |_, _| {};

    fn too_many(verb: &str, number: usize, most: usize) -> Vec<String> {
        let path = "c1 /api/v1/namespaces/default/configmaps/o1";
        vec![format!("{path}: {number} tries to {verb} it failed within a minute, {most} is the most")]
    }

    #[tokio::test(start_paused = true)]
    async fn retries_above_the_promised_number_are_violations() {
        let (write, delete) = (Verb::Write, Verb::Delete);
        let none = Vec::<String>::new();
        for status in [503, 429, 500, 401] {
            assert_eq!(tried(&[0, 1, 2, 4, 8, 16, 32], write, status, NOTHING).await, none, "{status}");
            let found = tried(&[0, 1, 2, 4, 8, 16, 16], write, status, NOTHING).await;
            assert_eq!(found, too_many("write", 7, 6), "{status}");
        }
        for status in [403, 422, 400] {
            assert_eq!(tried(&[0, 30, 60, 120, 240, 300], write, status, NOTHING).await, none, "{status}");
            let found = tried(&[0, 30, 29], write, status, NOTHING).await;
            assert_eq!(found, too_many("write", 3, 2), "{status}");
        }
        assert_eq!(tried(&[0, 5, 10, 20, 40], delete, 403, NOTHING).await, none);
        assert_eq!(tried(&[0, 0, 0, 0, 5, 10, 20], delete, 409, NOTHING).await, none);
        assert_eq!(tried(&[0, 0, 0, 0, 5, 10, 20, 5], delete, 409, NOTHING).await, too_many("delete", 8, 7));
    }

    #[tokio::test(start_paused = true)]
    async fn reads_that_go_well_are_few_too() {
        assert_eq!(tried(&[1; READS], Verb::Read, 200, NOTHING).await, Vec::<String>::new());
        let path = "c1 /api/v1/namespaces/default/configmaps/o1";
        let expected = vec![format!("{path}: read {} times within a minute, {READS} is the most", READS + 1)];
        assert_eq!(tried(&[1; READS + 1], Verb::Read, 200, NOTHING).await, expected);
        assert_eq!(tried(&[8; READS + 1], Verb::Read, 404, NOTHING).await.len(), 1, "found to be nothing");
        let edited = |_: &mut Pace, edits: &mut Edits| edits.entry(place()).or_default().push(Instant::now());
        assert_eq!(tried(&[1; READS * 2], Verb::Read, 200, edited).await, Vec::<String>::new());
        let two_apps = |pace: &mut Pace, _: &mut Edits| {
            pace.owners.entry(place()).or_default().insert("app2".to_owned());
        };
        assert_eq!(tried(&[1; READS * 2], Verb::Read, 200, two_apps).await, Vec::<String>::new());
        assert_eq!(tried(&[1; READS * 2 + 1], Verb::Read, 200, two_apps).await.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_of_the_app_resets_read_retries() {
        let pauses = [1, 1, 2, 4, 1, 2, 4];
        assert_eq!(tried(&pauses, Verb::Read, 429, NOTHING).await, too_many("read", 7, 6));
        let mut number = 0;
        let written = |pace: &mut Pace, _: &mut Edits| {
            number += 1;
            if number == 4 {
                try_once(pace, &other(), Verb::Write, 200);
            }
        };
        assert_eq!(tried(&pauses, Verb::Read, 429, written).await, Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_conflict_is_retried_at_once() {
        let twice = [0, 0, 1, 0, 2, 0, 4, 0, 8, 0, 16, 0];
        assert_eq!(tried(&twice, Verb::Write, 409, NOTHING).await, Vec::<String>::new());
        let found = tried(&[&twice[..], &[1]].concat(), Verb::Write, 409, NOTHING).await;
        assert_eq!(found, too_many("write", 13, 12));
        assert_eq!(tried(&twice, Verb::Write, 503, NOTHING).await, too_many("write", 12, 6));
    }

    #[tokio::test(start_paused = true)]
    async fn a_transient_failure_explains_one_neighbour_retry() {
        let with = |verb: Verb, status: u16| {
            let mut is_first = true;
            move |pace: &mut Pace, _: &mut Edits| {
                if std::mem::take(&mut is_first) {
                    try_once(pace, &other(), verb, status);
                }
            }
        };
        let (short, none) = ([0, 1, 30], Vec::<String>::new());
        assert_eq!(tried(&short, Verb::Write, 403, with(Verb::Write, 503)).await, none);
        assert_eq!(tried(&short, Verb::Write, 403, with(Verb::Read, 503)).await, none);
        assert_eq!(tried(&short, Verb::Write, 403, with(Verb::Write, 403)).await, too_many("write", 3, 2));
        let found = tried(&[0, 1, 2, 30], Verb::Write, 403, with(Verb::Write, 503)).await;
        assert_eq!(found, too_many("write", 4, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn an_edit_counts_in_its_own_minute() {
        let edit = |place: fn() -> Place, number: usize| {
            let mut left = number;
            move |_: &mut Pace, edits: &mut Edits| {
                if left > 0 {
                    left -= 1;
                    edits.entry(place()).or_default().push(Instant::now());
                }
            }
        };
        let (short, none) = ([0, 1, 30], Vec::<String>::new());
        assert_eq!(tried(&short, Verb::Write, 403, edit(place, 1)).await, none);
        assert_eq!(tried(&short, Verb::Write, 403, edit(other, 1)).await, none);
        let elsewhere = || ("c2".to_owned(), place().1);
        assert_eq!(tried(&short, Verb::Write, 403, edit(elsewhere, 1)).await, too_many("write", 3, 2));
        let later = [0, 120, 30, 29];
        assert_eq!(tried(&later, Verb::Write, 403, edit(place, 1)).await, too_many("write", 3, 2));
        // Continuous changes are answered with growing pauses.
        let found = tried(&[1; 40], Verb::Write, 403, edit(place, 40)).await;
        assert_eq!(found, too_many("write", 40, 8));
    }

    #[tokio::test(start_paused = true)]
    async fn each_change_resets_the_pauses() {
        let many = [1; 40];
        let tried = async |between: fn(&mut Pace, &mut Edits)| tried(&many, Verb::Write, 503, between).await;
        assert_ne!(tried(NOTHING).await, Vec::<String>::new());
        assert_eq!(tried(|pace, _| pace.begins()).await, Vec::<String>::new());
        assert_eq!(tried(|pace, _| come_and_go(pace, "c1")).await, Vec::<String>::new());
        assert_ne!(tried(|pace, _| come_and_go(pace, "c2")).await, Vec::<String>::new());
    }

    fn come_and_go(pace: &mut Pace, cluster: &str) {
        pace.says(cluster, "Offline");
        pace.says(cluster, "Ready");
    }

    #[test]
    fn each_pause_is_twice_the_one_before() {
        let check = |seconds, first, expected| {
            let (time, first) = (Duration::from_secs(seconds), Duration::from_secs(first));
            assert_eq!(tries_within(time, first), expected, "{time:?}");
        };
        check(0, 1, 1);
        check(1, 1, 2);
        check(30, 1, 5);
        check(60, 1, 6);
        check(60, 5, 4);
        check(1_000, 300, 4);
    }
}
