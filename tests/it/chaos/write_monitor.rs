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

use super::desired::{ChaosApp, DesiredRepository, DriftMode};
use super::edit::{ExternalChanges, LiveObjectKey};
use super::object::{ChaosKind, ChaosObjectId};
use super::retry_limits::{AttemptVerb, RetryMonitor};
use super::write_rules::{may_apply, may_delete, may_delete_contents};
use super::{direct_client, live_state};
use crate::support::connections;

/// Git is read when tutti is woken. A task that started before may still run at that moment, and the overview
/// follows a moment later.
const READ_DELAY: Duration = Duration::from_millis(20);
/// The number of deletes that never need an approval.
const DELETE_FLOOR: u64 = 3;

pub struct WriteMonitor {
    clusters: BTreeMap<String, Sandbox>,
    started: Instant,
    pub state: Mutex<WriteMonitorState>,
}

#[derive(Default)]
pub struct WriteMonitorState {
    pub log: Vec<String>,
    pub violations: Vec<String>,
    pub external_changes: ExternalChanges,
    /// The desired state of each commit.
    commits: HashMap<Revision, Arc<DesiredRepository>>,
    newest_commit: Option<Revision>,
    /// How often the desired content of each object was changed.
    pub content_changes: BTreeMap<LiveObjectKey, usize>,
    pub writes: BTreeMap<LiveObjectKey, ObjectWriteCounts>,
    pub retries: RetryMonitor,
    /// Since when each cluster has had a fault: later changes there may be unknown for long.
    pub fault_starts: BTreeMap<String, Instant>,
    /// Clusters with a stale list, until they are reconnected.
    pub stale_clusters: BTreeSet<String>,
    pub ever_stale_clusters: BTreeSet<String>,
    /// Clusters at which a write arrived after the end of its process.
    pub late_write_clusters: BTreeSet<String>,
    /// The number of processes so far.
    pub processes: usize,
    process: ProcessObservations,
    /// Requests that are neither probes nor watches, since the last reset.
    pub requests: Vec<String>,
    pub request_count: u64,
    pub refused_connections: u64,
}

/// The number of writes of one object.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObjectWriteCounts {
    pub done: usize,
    /// Writes with an unknown result.
    pub unanswered: usize,
}

/// What the present process has reported.
#[derive(Default)]
struct ProcessObservations {
    /// The heads that it has read, with their times.
    read_heads: Vec<(Revision, Instant)>,
    offline_since: BTreeMap<String, Instant>,
    /// Writes to clusters that were reported offline: they may just have returned.
    offline_writes: Vec<(Instant, String, String)>,
    /// Deletes without approval, by head.
    unapproved_deletes: BTreeMap<Revision, u64>,
    /// The head at which each delete was sent, by uid.
    delete_heads: HashMap<String, Revision>,
    /// Targets that were reported healthy, by head.
    healthy_targets: BTreeSet<(Revision, String, String)>,
}

impl ProcessObservations {
    fn head(&self) -> Option<&Revision> {
        self.read_heads.last().map(|(revision, _)| revision)
    }

    /// The newest head, and those that were it a moment ago.
    fn recent_heads(&self) -> impl Iterator<Item = &Revision> {
        let is_recent = |place: usize| {
            self.read_heads.get(place + 1).is_none_or(|(_, since)| since.elapsed() <= READ_DELAY)
        };
        let heads = self.read_heads.iter().enumerate().rev();
        heads.take_while(move |(place, _)| is_recent(*place)).map(|(_, (revision, _))| revision)
    }
}

impl WriteMonitor {
    pub fn new(clusters: BTreeMap<String, Sandbox>) -> Self {
        Self { clusters, started: Instant::now(), state: Mutex::default() }
    }

    pub fn log_line(&self, line: &str) {
        let at = self.started.elapsed().as_secs_f64();
        self.state.lock().log.push(format!("{at:9.3} {line}"));
    }

    pub fn violation(&self, words: &str) {
        self.log_line(&format!("VIOLATION {words}"));
        let at = self.started.elapsed().as_secs_f64();
        self.state.lock().violations.push(format!("{words} (at {at:.3})"));
    }

    pub fn record_commit(
        &self,
        revision: &Revision,
        wanted: &DesiredRepository,
        before: Option<&DesiredRepository>,
    ) {
        let mut state = self.state.lock();
        for cluster in wanted.clusters.keys() {
            let all = |wanted: &DesiredRepository| -> BTreeMap<ChaosObjectId, String> {
                let describe = |(id, app, name, body): (&str, &ChaosApp, ChaosObjectId, Value)| {
                    // An app that never prunes says so in each object.
                    (name, format!("{id} {} {:?} {:?} {body}", app.paused, app.drift, app.prune))
                };
                wanted.objects_on(cluster).map(describe).collect()
            };
            let (now, then) = (all(wanted), before.map(all).unwrap_or_default());
            let names: BTreeSet<&ChaosObjectId> = now.keys().chain(then.keys()).collect();
            for name in names.into_iter().filter(|name| now.get(*name) != then.get(*name)) {
                *state.content_changes.entry((cluster.clone(), name.path())).or_default() += 1;
            }
        }
        state.commits.insert(revision.clone(), Arc::new(wanted.clone()));
        state.newest_commit = Some(revision.clone());
    }

    /// The process fetches now.
    pub fn record_wake(&self) {
        let mut state = self.state.lock();
        let newest = state.newest_commit.clone();
        if state.process.head() != newest.as_ref() {
            let WriteMonitorState { commits: wanted, process: seen, retries: pace, .. } = &mut *state;
            let of = |revision: Option<&Revision>| {
                revision.and_then(|it| wanted.get(it)).cloned().unwrap_or_default()
            };
            pace.head_changed(&of(seen.head()), &of(newest.as_ref()));
            seen.read_heads.extend(newest.map(|newest| (newest, Instant::now())));
        }
    }

    /// A process starts.
    pub fn process_started(&self) {
        let mut state = self.state.lock();
        state.processes += 1;
        state.process = ProcessObservations::default();
        state.retries.process_started();
        drop(state);
        self.record_wake();
    }

    /// Records the overview, whenever it changes.
    pub fn record_overview(&self, overview: &Overview) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let WriteMonitorState { process: seen, retries: pace, .. } = &mut *state;
        let mut found = Vec::new();
        for cluster in &overview.clusters {
            pace.cluster_state_reported(cluster.name.as_str(), cluster.state);
            if cluster.state == "Offline" {
                seen.offline_since.entry(cluster.name.to_string()).or_insert(now);
            } else {
                seen.offline_since.remove(cluster.name.as_str());
                seen.offline_writes.retain(|(_, name, _)| name != cluster.name.as_str());
            }
        }
        seen.offline_writes.retain(|(since, _, words)| {
            let is_over = since.elapsed() > READ_DELAY;
            found.extend(is_over.then(|| words.clone()));
            !is_over
        });
        drop(state);
        found.iter().for_each(|words| self.violation(words));
    }

    /// A target that is reported healthy for the first time at a commit must have the state of that commit.
    pub fn check_healthy_targets(&self, overview: &Overview) {
        let Some(revision) = &overview.revision else { return };
        let mut found = Vec::new();
        {
            let mut state = self.state.lock();
            let Some(wanted) = state.commits.get(revision).cloned() else { return };
            for target in overview.targets.iter().filter(|target| target.phase == TargetPhase::Running) {
                let (cluster, id) = (target.cluster.to_string(), target.app.name.to_string());
                let key = (revision.clone(), cluster.clone(), id.clone());
                let is_read = state.process.head() == Some(revision);
                if !is_read
                    || !state.process.healthy_targets.insert(key)
                    || state.stale_clusters.contains(&cluster)
                {
                    continue;
                }
                let read = state.process.read_heads.last().map_or(self.started, |(_, since)| *since);
                let troubled = state.fault_starts.get(&cluster).copied();
                let repairs = wanted.apps.get(&id).is_some_and(|app| app.drift == DriftMode::Repair);
                let objects = wanted.objects_on(&cluster).filter(|(owner, ..)| *owner == id);
                for (_, _, name, body) in objects {
                    let place = (cluster.clone(), name.path());
                    // Later edits may be unknown, and so are edits during a fault. Apps that do not repair report
                    // nothing of them.
                    let is_excused = |edit: &Instant| {
                        *edit >= read || troubled.is_some_and(|since| *edit + READ_DELAY >= since)
                    };
                    let edits = state.external_changes.edit_times.get(&place).map_or(&[][..], Vec::as_slice);
                    if edits.iter().any(|edit| !repairs || is_excused(edit)) {
                        continue;
                    }
                    if let Err(why) = live_state::check_object(
                        &self.clusters[&cluster],
                        &name,
                        &body,
                        &state.external_changes,
                    ) {
                        found.push(format!("{id} is called healthy on {cluster}: {why}"));
                    }
                }
            }
        }
        found.iter().for_each(|words| self.violation(words));
    }

    /// The commits that a write may belong to.
    fn possible_commits(state: &WriteMonitorState) -> Vec<Arc<DesiredRepository>> {
        state.process.recent_heads().filter_map(|revision| state.commits.get(revision).cloned()).collect()
    }

    fn check_write(
        &self,
        cluster: &str,
        request: &Request<Bytes>,
        live: Option<&Value>,
    ) -> Result<(), String> {
        let mut state = self.state.lock();
        let path = object_path(request);
        let name = ChaosObjectId::from_path(&path).ok_or_else(|| "nobody renders that".to_owned())?;
        let body = body_of(request);
        let heads = Self::possible_commits(&state);
        if heads.is_empty() {
            return Err("nothing was read from Git yet".to_owned());
        }
        if state.process.offline_since.get(cluster).is_some_and(|since| since.elapsed() > READ_DELAY) {
            let words = format!("{} {cluster} {path}: the cluster is known to be offline", request.method());
            state.process.offline_writes.push((Instant::now(), cluster.to_owned(), words));
        }
        if let (true, Some(head)) = (*request.method() == Method::DELETE, state.process.head().cloned()) {
            // The head may have been read again, and a delete that was approved before may be on its way.
            let place = (cluster.to_owned(), precondition_uid(&body).to_owned());
            let approves = |wanted: &Arc<DesiredRepository>| wanted.approved_deletes.contains(&place);
            let approved =
                state.process.recent_heads().find(|it| state.commits.get(*it).is_some_and(approves));
            let head = approved.cloned().unwrap_or(head);
            state.process.delete_heads.insert(place.1, head);
        }
        let content = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let inside = match *request.method() {
            // A stale list may have hidden the object when the process connected.
            Method::DELETE if !state.stale_clusters.contains(cluster) => {
                live_state::managed_contents(&self.clusters[cluster], &name)
            }
            _ => Vec::new(),
        };
        let inside: Vec<String> = inside.into_iter().map(|(name, _)| name.to_string()).collect();
        let judge = |wanted: &DesiredRepository| match (request.method(), content) {
            (&Method::PATCH, b"application/apply-patch+yaml") => may_apply(wanted, cluster, &name, &body),
            (&Method::DELETE, ..) => may_delete(wanted, cluster, &name, &body, live)
                .and_then(|()| may_delete_contents(wanted, cluster, &name, &inside)),
            _ => Err("tutti never does that".to_owned()),
        };
        let verdicts: Vec<Result<(), String>> = heads.iter().map(|wanted| judge(wanted)).collect();
        if verdicts.iter().any(Result::is_ok) { Ok(()) } else { verdicts[0].clone() }
    }

    fn count_delete(&self, cluster: &str, request: &Request<Bytes>) -> Option<String> {
        let mut state = self.state.lock();
        let uid = precondition_uid(&body_of(request)).to_owned();
        // A delete that was sent before a head was read does not count for that head.
        let head = state.process.delete_heads.get(&uid).or(state.process.head())?.clone();
        if state.commits.get(&head)?.approved_deletes.contains(&(cluster.to_owned(), uid)) {
            return None;
        }
        let before = state.process.unapproved_deletes.get(&head).copied().unwrap_or_default();
        let folders = || ChaosKind::ALL.into_iter().map(ChaosKind::collection_path);
        let ours = |sandbox| {
            folders()
                .map(move |folder| direct_client::list(sandbox, folder, "tutti.dev/managed-by=main").len())
        };
        let managed: usize = self.clusters.values().flat_map(ours).sum();
        let cap = DELETE_FLOOR.max(10.min((managed as u64 + before + 1) / 5));
        state.process.unapproved_deletes.insert(head, before + 1);
        (before + 1 > cap).then(|| format!("{} deletes at one commit, {cap} is the cap", before + 1))
    }
}

fn body_of(request: &Request<Bytes>) -> Value {
    serde_json::from_slice(request.body()).unwrap_or_default()
}

/// The path of the object; the name of a new one is in its body.
fn object_path(request: &Request<Bytes>) -> String {
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
fn read_object(cluster: &str, request: &Request<Bytes>) -> Option<LiveObjectKey> {
    let path = request.uri().path();
    ChaosObjectId::from_path(path)
        .filter(|_| *request.method() == Method::GET)
        .map(|_| (cluster.to_owned(), path.to_owned()))
}

fn resource_version(live: &Value) -> Option<String> {
    live["metadata"]["resourceVersion"].as_str().map(ToOwned::to_owned)
}

fn precondition_uid(delete: &Value) -> &str {
    delete["preconditions"]["uid"].as_str().unwrap_or_default()
}

impl connections::RequestObserver for WriteMonitor {
    fn sent(&self, cluster: &str, request: &Request<Bytes>) {
        let query = request.uri().query().unwrap_or_default();
        let path = request.uri().path();
        // A watch that begins with a list counts as a request.
        let is_watch = query.contains("watch=") && !query.contains("sendInitialEvents=");
        let what = || format!("{} {cluster} {path}", request.method());
        {
            let mut state = self.state.lock();
            state.request_count += 1;
            if !is_watch && path != "/version" {
                state.requests.push(what());
            }
        }
        if let Some(place) = read_object(cluster, request) {
            self.state.lock().retries.request_sent(&place, AttemptVerb::Read, None);
            self.log_line(&format!("  {}", what()));
        }
        if !is_write(request) {
            return;
        }
        self.log_line(&format!("  {}", what()));
        let place = (cluster.to_owned(), object_path(request));
        let live = direct_client::get(&self.clusters[cluster], &place.1);
        {
            let mut state = self.state.lock();
            state.retries.request_sent(
                &place,
                AttemptVerb::of(request.method()),
                live.as_ref().and_then(resource_version),
            );
        }
        if let Err(why) = self.check_write(cluster, request, live.as_ref()) {
            self.violation(&format!("{}: {why}", what()));
        }
    }

    fn answered(&self, cluster: &str, request: &Request<Bytes>, answer: Result<StatusCode, String>) {
        if answer.as_ref().is_err_and(|error| error == "connection refused") {
            self.state.lock().refused_connections += 1;
        }
        if let Some(place) = read_object(cluster, request) {
            let status = answer.as_ref().ok().copied();
            self.state.lock().retries.request_answered(&place, AttemptVerb::Read, status, || None);
        }
        if !is_write(request) {
            return;
        }
        let is_done = answer.as_ref().is_ok_and(StatusCode::is_success);
        {
            let mut state = self.state.lock();
            let place = (cluster.to_owned(), object_path(request));
            let live = || direct_client::get(&self.clusters[cluster], &place.1);
            let (verb, status) = (AttemptVerb::of(request.method()), answer.as_ref().ok().copied());
            state
                .retries
                .request_answered(&place, verb, status, || live().as_ref().and_then(resource_version));
            let writes = state.writes.entry(place).or_default();
            writes.done += usize::from(is_done);
            writes.unanswered += usize::from(answer.is_err());
        }
        let word = answer.map_or_else(|error| error, |status| status.as_str().to_owned());
        self.log_line(&format!("  {} {cluster} {}: {word}", request.method(), request.uri().path()));
        if is_done
            && *request.method() == Method::DELETE
            && let Some(words) = self.count_delete(cluster, request)
        {
            self.violation(&words);
        }
    }

    fn late_arrival(&self, cluster: &str, request: &Request<Bytes>) {
        if is_write(request) {
            self.state.lock().late_write_clusters.insert(cluster.to_owned());
        }
    }
}
