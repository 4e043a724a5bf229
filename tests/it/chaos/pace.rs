//! No hammering: how often a write that fails may be tried again within a minute.
//!
//! Tutti promises a pause after each failure: of an app on a cluster 1 s, 2 s, 4 s … 5 min, of a delete 5 s, 10 s … 5 min. The
//! pauses begin anew where something changed: the app itself by a commit, the cluster that comes or goes, the process, or the
//! object, which was written after all. Who changes what was refused is followed at once, and ever more seldom.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::edit::Place;
use super::object::Name;
use super::wanted::{App, Wanted};

const MINUTE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// What tutti says of a cluster comes a moment after it went by it.
const MOMENT: Duration = Duration::from_millis(20);
/// An object that changed under its delete is asked for again at once, so often.
const AT_ONCE: usize = 3;

/// Of one cluster, or of all.
#[derive(Debug, Default)]
pub struct Pace {
    tries: BTreeMap<Place, Vec<Try>>,
    /// When the pauses of everything began anew, of a cluster, of an object, and of all deletes.
    anew: Vec<Instant>,
    cluster_anew: BTreeMap<String, Vec<Instant>>,
    place_anew: BTreeMap<Place, Vec<Instant>>,
    deletes_anew: Vec<Instant>,
    /// When others first changed something there.
    touched: BTreeMap<String, Instant>,
    /// What tutti said last of each cluster.
    said: BTreeMap<String, String>,
}

/// One write on the wire.
#[derive(Debug)]
struct Try {
    at: Instant,
    is_delete: bool,
    /// Of the object as it was then.
    version: Option<String>,
    is_done: Option<bool>,
}

impl Pace {
    /// A process starts, and knows nothing of what failed.
    pub fn begins(&mut self) {
        self.anew.push(Instant::now());
        self.said.clear();
    }

    /// It has read another head.
    pub fn reads(&mut self, old: &Wanted, new: &Wanted) {
        let now = Instant::now();
        self.deletes_anew.push(now);
        if old.observes != new.observes {
            self.anew.push(now);
        }
        for (cluster, is_maintained) in &new.clusters {
            if old.clusters.get(cluster) != Some(is_maintained) {
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
                self.place_anew.entry((cluster.clone(), name.path())).or_default().push(now);
            }
        }
    }

    /// What it says of a cluster.
    pub fn says(&mut self, cluster: &str, state: &str) {
        if self.said.insert(cluster.to_owned(), state.to_owned()).is_none_or(|before| before != state) {
            self.cluster_anew.entry(cluster.to_owned()).or_default().push(Instant::now());
        }
    }

    /// Others changed something there.
    pub fn touched(&mut self, cluster: &str) {
        self.touched.entry(cluster.to_owned()).or_insert_with(Instant::now);
    }

    pub fn sent(&mut self, place: &Place, is_delete: bool, version: Option<String>) {
        let one = Try { at: Instant::now(), is_delete, version, is_done: None };
        self.tries.entry(place.clone()).or_default().push(one);
    }

    /// What came of the last one that was sent and not answered yet; `version` as the object is now.
    pub fn answered(
        &mut self,
        place: &Place,
        is_delete: bool,
        is_done: bool,
        version: impl FnOnce() -> Option<String>,
    ) {
        let mut tries = self.tries.get_mut(place).into_iter().flatten().rev();
        let Some(one) = tries.find(|it| it.is_delete == is_delete && it.is_done.is_none()) else { return };
        one.is_done = Some(is_done);
        // An answer that was lost, of a write that was done.
        if is_done || one.version != version() {
            self.place_anew.entry(place.clone()).or_default().push(Instant::now());
        }
    }

    /// The most writes of one object that failed in one minute, and what was too much.
    pub fn check(&self) -> (usize, Vec<String>) {
        let (mut most, mut found) = (0, Vec::new());
        for (place, tries) in &self.tries {
            for is_delete in [false, true] {
                let failed = tries.iter().filter(|it| it.is_delete == is_delete && it.is_done != Some(true));
                let failed: Vec<Instant> = failed.map(|it| it.at).collect();
                for (first, at) in failed.iter().enumerate() {
                    let number = failed[first..].iter().take_while(|it| **it - *at < MINUTE).count();
                    let allowed = self.allowed(place, *at, is_delete);
                    most = most.max(number);
                    if number > allowed {
                        let verb = if is_delete { "delete" } else { "write" };
                        let (cluster, path) = place;
                        found.push(format!(
                            "{cluster} {path}: {number} tries to {verb} it failed within a minute, {allowed} is the most"
                        ));
                        break;
                    }
                }
            }
        }
        (most, found)
    }

    /// How many may fail in the minute that begins then.
    fn allowed(&self, place: &Place, from: Instant, is_delete: bool) -> usize {
        let of_cluster = self.cluster_anew.get(&place.0);
        let of_place = self.place_anew.get(place);
        let of_deletes = Some(&self.deletes_anew).filter(|_| is_delete);
        let all = [Some(&self.anew), of_cluster, of_place, of_deletes];
        let end = from + MINUTE;
        let near = |at: &&Instant| **at + MOMENT > from && **at < end + MOMENT;
        let mut cuts: Vec<Instant> =
            all.into_iter().flatten().flatten().filter(near).map(|at| (*at).clamp(from, end)).collect();
        cuts.extend([from, end]);
        cuts.sort();
        let first = Duration::from_secs(if is_delete { 5 } else { 1 });
        let more = if is_delete { AT_ONCE } else { 0 };
        let pieces = cuts.windows(2).map(|pair| tries_within(pair[1] - pair[0], first) + more);
        let mut attempts: usize = pieces.sum();
        if !is_delete && self.touched.get(&place.0).is_some_and(|at| *at < end) {
            attempts += tries_within(MINUTE, first);
        }
        attempts * if is_delete { 1 } else { requests_of_an_attempt(&place.1) }
    }
}

/// How many tries there are in that time when the first is at its begin and each pause twice the one before.
fn tries_within(time: Duration, first_pause: Duration) -> usize {
    let (mut tries, mut pause, mut at) = (1, first_pause, first_pause);
    while at <= time {
        tries += 1;
        pause = (pause * 2).min(LONGEST_PAUSE);
        at += pause;
    }
    tries
}

/// An apply that is in conflict is repeated once by force. Without server-side apply an object is asked for, created, and
/// changed up to three times while others change it.
fn requests_of_an_attempt(path: &str) -> usize {
    match Name::parse(path) {
        Some(name) if !name.kind.knows_apply() => 5,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::super::object::Kind;
    use super::*;

    fn place() -> Place {
        ("c1".to_owned(), Name::new(Kind::ConfigMap, "o1").path())
    }

    /// Tries that fail, each so many seconds after the one before; what is said of them.
    async fn tried(pauses: &[u64], is_delete: bool, between: impl Fn(&mut Pace)) -> Vec<String> {
        let mut pace = Pace::default();
        pace.begins();
        for pause in pauses {
            tokio::time::sleep(Duration::from_secs(*pause)).await;
            pace.sent(&place(), is_delete, None);
            pace.answered(&place(), is_delete, false, || None);
            between(&mut pace);
        }
        pace.check().1
    }

    const TWICE: [u64; 12] = [0, 0, 1, 0, 2, 0, 4, 0, 8, 0, 16, 0];

    #[tokio::test(start_paused = true)]
    async fn what_is_promised_is_allowed_and_once_more_is_seen() {
        let nothing = |_: &mut Pace| {};
        assert_eq!(tried(&TWICE, false, nothing).await, Vec::<String>::new());
        let once_more = [&TWICE[..], &[1]].concat();
        // The begin of the process is another begin of the pauses.
        let words = "c1 /api/v1/namespaces/default/configmaps/o1: 15 tries to write it failed within a minute, 14 is the most";
        assert_eq!(tried(&[&once_more[..], &[0]].concat(), false, nothing).await, Vec::<String>::new());
        assert_eq!(tried(&[&once_more[..], &[0, 0]].concat(), false, nothing).await, [words]);
        assert_eq!(tried(&[0, 0, 0, 0, 5, 10, 20], true, nothing).await, Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn what_changes_begins_the_pauses_anew() {
        let many = [1; 40];
        assert_ne!(tried(&many, false, |_| {}).await, Vec::<String>::new());
        assert_eq!(tried(&many, false, Pace::begins).await, Vec::<String>::new());
        let comes_and_goes = |cluster: &'static str| {
            move |pace: &mut Pace| {
                pace.says(cluster, "Offline");
                pace.says(cluster, "Ready");
            }
        };
        assert_eq!(tried(&many, false, comes_and_goes("c1")).await, Vec::<String>::new());
        assert_ne!(tried(&many, false, comes_and_goes("c2")).await, Vec::<String>::new());
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
