//! Observes the requests between tutti and the clusters, and checks each write against the commits that tutti may know.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, StatusCode};
use parking_lot::Mutex;
use sandbox::Sandbox;
use serde_json::Value;
use tokio::time::Instant;
use tutti::model::Revision;
use tutti::report::{Overview, TargetPhase};

use super::edit::{Place, Traces};
use super::judge::{may_apply, may_delete, may_take_along};
use super::object::{Kind, Name};
use super::pace::{Pace, Verb};
use super::wanted::{App, Drift, Wanted};
use super::{hands, truth};
use crate::support::wires;

/// Git is read when tutti is woken. A task that started before may still run at that moment, and the overview
/// follows a moment later.
const MOMENT: Duration = Duration::from_millis(20);
/// The number of deletes that never need an approval.
const FLOOR: u64 = 3;

pub struct Witness {
    clusters: BTreeMap<String, Sandbox>,
    started: Instant,
    pub state: Mutex<State>,
}

#[derive(Default)]
pub struct State {
    pub log: Vec<String>,
    pub violations: Vec<String>,
    pub traces: Traces,
    /// The desired state of each commit.
    wanted: HashMap<Revision, Arc<Wanted>>,
    newest: Option<Revision>,
    /// How often the desired content of each object was changed.
    pub changes: BTreeMap<Place, usize>,
    pub writes: BTreeMap<Place, Writes>,
    pub pace: Pace,
    /// Since when each cluster has had a fault: later changes there may be unknown for long.
    pub troubled: BTreeMap<String, Instant>,
    /// Clusters with a stale list, until they are reconnected.
    pub stale: BTreeSet<String>,
    pub misled: BTreeSet<String>,
    /// Clusters at which a write arrived after the end of its process.
    pub late: BTreeSet<String>,
    /// The number of processes so far.
    pub processes: usize,
    seen: Seen,
    /// Requests that are neither probes nor watches, since the last reset.
    pub requests: Vec<String>,
    pub total: u64,
    pub refused: u64,
}

/// The number of writes of one object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Writes {
    pub done: usize,
    /// Writes with an unknown result.
    pub lost: usize,
}

/// What the present process has reported.
#[derive(Default)]
struct Seen {
    /// The heads that it has read, with their times.
    heads: Vec<(Revision, Instant)>,
    offline: BTreeMap<String, Instant>,
    /// Writes to clusters that were reported offline: they may just have returned.
    suspects: Vec<(Instant, String, String)>,
    /// Deletes without approval, by head.
    deletes: BTreeMap<Revision, u64>,
    /// The head at which each delete was sent, by uid.
    asked: HashMap<String, Revision>,
    /// Targets that were reported healthy, by head.
    healthy: BTreeSet<(Revision, String, String)>,
}

impl Seen {
    fn head(&self) -> Option<&Revision> {
        self.heads.last().map(|(revision, _)| revision)
    }

    /// The newest head, and those that were it a moment ago.
    fn recent_heads(&self) -> impl Iterator<Item = &Revision> {
        let is_recent =
            |place: usize| self.heads.get(place + 1).is_none_or(|(_, since)| since.elapsed() <= MOMENT);
        let heads = self.heads.iter().enumerate().rev();
        heads.take_while(move |(place, _)| is_recent(*place)).map(|(_, (revision, _))| revision)
    }
}

impl Witness {
    pub fn new(clusters: BTreeMap<String, Sandbox>) -> Self {
        Self { clusters, started: Instant::now(), state: Mutex::default() }
    }

    pub fn say(&self, line: &str) {
        let at = self.started.elapsed().as_secs_f64();
        self.state.lock().log.push(format!("{at:9.3} {line}"));
    }

    pub fn violation(&self, words: &str) {
        self.say(&format!("VIOLATION {words}"));
        let at = self.started.elapsed().as_secs_f64();
        self.state.lock().violations.push(format!("{words} (at {at:.3})"));
    }

    pub fn committed(&self, revision: &Revision, wanted: &Wanted, before: Option<&Wanted>) {
        let mut state = self.state.lock();
        for cluster in wanted.clusters.keys() {
            let all = |wanted: &Wanted| -> BTreeMap<Name, String> {
                let describe = |(id, app, name, body): (&str, &App, Name, Value)| {
                    // An app that never prunes says so in each object.
                    (name, format!("{id} {} {:?} {:?} {body}", app.paused, app.drift, app.prune))
                };
                wanted.on(cluster).map(describe).collect()
            };
            let (now, then) = (all(wanted), before.map(all).unwrap_or_default());
            let names: BTreeSet<&Name> = now.keys().chain(then.keys()).collect();
            for name in names.into_iter().filter(|name| now.get(*name) != then.get(*name)) {
                *state.changes.entry((cluster.clone(), name.path())).or_default() += 1;
            }
        }
        state.wanted.insert(revision.clone(), Arc::new(wanted.clone()));
        state.newest = Some(revision.clone());
    }

    /// The process fetches now.
    pub fn wakes(&self) {
        let mut state = self.state.lock();
        let newest = state.newest.clone();
        if state.seen.head() != newest.as_ref() {
            let State { wanted, seen, pace, .. } = &mut *state;
            let of = |revision: Option<&Revision>| {
                revision.and_then(|it| wanted.get(it)).cloned().unwrap_or_default()
            };
            pace.reads(&of(seen.head()), &of(newest.as_ref()));
            seen.heads.extend(newest.map(|newest| (newest, Instant::now())));
        }
    }

    /// A process starts.
    pub fn follows(&self) {
        let mut state = self.state.lock();
        state.processes += 1;
        state.seen = Seen::default();
        state.pace.begins();
        drop(state);
        self.wakes();
    }

    /// Records the overview, whenever it changes.
    pub fn sees(&self, overview: &Overview) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let State { seen, pace, .. } = &mut *state;
        let mut found = Vec::new();
        for cluster in &overview.clusters {
            pace.says(cluster.name.as_str(), cluster.state);
            if cluster.state == "Offline" {
                seen.offline.entry(cluster.name.to_string()).or_insert(now);
            } else {
                seen.offline.remove(cluster.name.as_str());
                seen.suspects.retain(|(_, name, _)| name != cluster.name.as_str());
            }
        }
        seen.suspects.retain(|(since, _, words)| {
            let is_over = since.elapsed() > MOMENT;
            found.extend(is_over.then(|| words.clone()));
            !is_over
        });
        drop(state);
        found.iter().for_each(|words| self.violation(words));
    }

    /// A target that is reported healthy for the first time at a commit must have the state of that commit.
    pub fn is_told_the_truth(&self, overview: &Overview) {
        let Some(revision) = &overview.revision else { return };
        let mut found = Vec::new();
        {
            let mut state = self.state.lock();
            let Some(wanted) = state.wanted.get(revision).cloned() else { return };
            for target in overview.targets.iter().filter(|target| target.phase == TargetPhase::Running) {
                let (cluster, id) = (target.cluster.to_string(), target.app.name.to_string());
                let key = (revision.clone(), cluster.clone(), id.clone());
                let is_read = state.seen.head() == Some(revision);
                if !is_read || !state.seen.healthy.insert(key) || state.stale.contains(&cluster) {
                    continue;
                }
                let read = state.seen.heads.last().map_or(self.started, |(_, since)| *since);
                let troubled = state.troubled.get(&cluster).copied();
                let repairs = wanted.apps.get(&id).is_some_and(|app| app.drift == Drift::Repair);
                let objects = wanted.on(&cluster).filter(|(owner, ..)| *owner == id);
                for (_, _, name, body) in objects {
                    let place = (cluster.clone(), name.path());
                    // Later edits may be unknown, and so are edits during a fault. Apps that do not repair report
                    // nothing of them.
                    let is_excused = |edit: &Instant| {
                        *edit >= read || troubled.is_some_and(|since| *edit + MOMENT >= since)
                    };
                    let edits = state.traces.edits.get(&place).map_or(&[][..], Vec::as_slice);
                    if edits.iter().any(|edit| !repairs || is_excused(edit)) {
                        continue;
                    }
                    if let Err(why) = truth::holds(&self.clusters[&cluster], &name, &body, &state.traces) {
                        found.push(format!("{id} is called healthy on {cluster}: {why}"));
                    }
                }
            }
        }
        found.iter().for_each(|words| self.violation(words));
    }

    /// The commits that a write may belong to.
    fn heads(state: &State) -> Vec<Arc<Wanted>> {
        state.seen.recent_heads().filter_map(|revision| state.wanted.get(revision).cloned()).collect()
    }

    fn judge(&self, cluster: &str, request: &Request<Bytes>, live: Option<&Value>) -> Result<(), String> {
        let mut state = self.state.lock();
        let path = path_of(request);
        let name = Name::parse(&path).ok_or_else(|| "nobody renders that".to_owned())?;
        let body = body_of(request);
        let heads = Self::heads(&state);
        if heads.is_empty() {
            return Err("nothing was read from Git yet".to_owned());
        }
        if state.seen.offline.get(cluster).is_some_and(|since| since.elapsed() > MOMENT) {
            let words = format!("{} {cluster} {path}: the cluster is known to be offline", request.method());
            state.seen.suspects.push((Instant::now(), cluster.to_owned(), words));
        }
        if let (true, Some(head)) = (*request.method() == Method::DELETE, state.seen.head().cloned()) {
            // The head may have been read again, and a delete that was approved before may be on its way.
            let place = (cluster.to_owned(), uid_of(&body).to_owned());
            let approves = |wanted: &Arc<Wanted>| wanted.approved.contains(&place);
            let approved = state.seen.recent_heads().find(|it| state.wanted.get(*it).is_some_and(approves));
            let head = approved.cloned().unwrap_or(head);
            state.seen.asked.insert(place.1, head);
        }
        let content = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let inside = match *request.method() {
            // A stale list may have hidden the object when the process connected.
            Method::DELETE if !state.stale.contains(cluster) => truth::inside(&self.clusters[cluster], &name),
            _ => Vec::new(),
        };
        let inside: Vec<String> = inside.into_iter().map(|(name, _)| name.to_string()).collect();
        let judge = |wanted: &Wanted| match (request.method(), content) {
            (&Method::PATCH, b"application/apply-patch+yaml") => may_apply(wanted, cluster, &name, &body),
            (&Method::DELETE, ..) => may_delete(wanted, cluster, &name, &body, live)
                .and_then(|()| may_take_along(wanted, cluster, &name, &inside)),
            _ => Err("tutti never does that".to_owned()),
        };
        let verdicts: Vec<Result<(), String>> = heads.iter().map(|wanted| judge(wanted)).collect();
        if verdicts.iter().any(Result::is_ok) { Ok(()) } else { verdicts[0].clone() }
    }

    fn count_delete(&self, cluster: &str, request: &Request<Bytes>) -> Option<String> {
        let mut state = self.state.lock();
        let uid = uid_of(&body_of(request)).to_owned();
        // A delete that was sent before a head was read does not count for that head.
        let head = state.seen.asked.get(&uid).or(state.seen.head())?.clone();
        if state.wanted.get(&head)?.approved.contains(&(cluster.to_owned(), uid)) {
            return None;
        }
        let before = state.seen.deletes.get(&head).copied().unwrap_or_default();
        let folders = || Kind::ALL.into_iter().map(Kind::folder);
        let ours = |sandbox| {
            folders().map(move |folder| hands::list(sandbox, folder, "tutti.dev/managed-by=main").len())
        };
        let managed: usize = self.clusters.values().flat_map(ours).sum();
        let cap = FLOOR.max(10.min((managed as u64 + before + 1) / 5));
        state.seen.deletes.insert(head, before + 1);
        (before + 1 > cap).then(|| format!("{} deletes at one commit, {cap} is the cap", before + 1))
    }
}

fn body_of(request: &Request<Bytes>) -> Value {
    serde_json::from_slice(request.body()).unwrap_or_default()
}

/// The path of the object; the name of a new one is in its body.
fn path_of(request: &Request<Bytes>) -> String {
    let path = request.uri().path();
    if *request.method() != Method::POST {
        return path.to_owned();
    }
    format!("{path}/{}", body_of(request)["metadata"]["name"].as_str().unwrap_or_default())
}

/// Whether it changes something; a dry run does not.
fn is_write(request: &Request<Bytes>) -> bool {
    *request.method() != Method::GET && !request.uri().query().unwrap_or_default().contains("dryRun=")
}

/// The object of a single read; `None` for a list.
fn read_of(cluster: &str, request: &Request<Bytes>) -> Option<Place> {
    let path = request.uri().path();
    Name::parse(path)
        .filter(|_| *request.method() == Method::GET)
        .map(|_| (cluster.to_owned(), path.to_owned()))
}

fn version_of(live: &Value) -> Option<String> {
    live["metadata"]["resourceVersion"].as_str().map(ToOwned::to_owned)
}

fn uid_of(delete: &Value) -> &str {
    delete["preconditions"]["uid"].as_str().unwrap_or_default()
}

impl wires::Witness for Witness {
    fn sent(&self, cluster: &str, request: &Request<Bytes>) {
        let query = request.uri().query().unwrap_or_default();
        let path = request.uri().path();
        // A watch that begins with a list counts as a request.
        let is_watch = query.contains("watch=") && !query.contains("sendInitialEvents=");
        let what = || format!("{} {cluster} {path}", request.method());
        {
            let mut state = self.state.lock();
            state.total += 1;
            if !is_watch && path != "/version" {
                state.requests.push(what());
            }
        }
        if let Some(place) = read_of(cluster, request) {
            self.state.lock().pace.sent(&place, Verb::Read, None);
            self.say(&format!("  {}", what()));
        }
        if !is_write(request) {
            return;
        }
        self.say(&format!("  {}", what()));
        let place = (cluster.to_owned(), path_of(request));
        let live = hands::get(&self.clusters[cluster], &place.1);
        {
            let mut state = self.state.lock();
            state.pace.sent(&place, Verb::of(request.method()), live.as_ref().and_then(version_of));
        }
        if let Err(why) = self.judge(cluster, request, live.as_ref()) {
            self.violation(&format!("{}: {why}", what()));
        }
    }

    fn answered(&self, cluster: &str, request: &Request<Bytes>, answer: Result<StatusCode, String>) {
        if answer.as_ref().is_err_and(|error| error == "connection refused") {
            self.state.lock().refused += 1;
        }
        if let Some(place) = read_of(cluster, request) {
            let status = answer.as_ref().ok().copied();
            self.state.lock().pace.answered(&place, Verb::Read, status, || None);
        }
        if !is_write(request) {
            return;
        }
        let is_done = answer.as_ref().is_ok_and(StatusCode::is_success);
        {
            let mut state = self.state.lock();
            let place = (cluster.to_owned(), path_of(request));
            let live = || hands::get(&self.clusters[cluster], &place.1);
            let (verb, status) = (Verb::of(request.method()), answer.as_ref().ok().copied());
            state.pace.answered(&place, verb, status, || live().as_ref().and_then(version_of));
            let writes = state.writes.entry(place).or_default();
            writes.done += usize::from(is_done);
            writes.lost += usize::from(answer.is_err());
        }
        let word = answer.map_or_else(|error| error, |status| status.as_str().to_owned());
        self.say(&format!("  {} {cluster} {}: {word}", request.method(), request.uri().path()));
        if is_done
            && *request.method() == Method::DELETE
            && let Some(words) = self.count_delete(cluster, request)
        {
            self.violation(&words);
        }
    }

    fn came_late(&self, cluster: &str, request: &Request<Bytes>) {
        if is_write(request) {
            self.state.lock().late.insert(cluster.to_owned());
        }
    }
}
