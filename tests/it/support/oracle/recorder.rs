//! Records commits, events and writes of a fleet.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use parking_lot::Mutex;
use sandbox::Sandbox;
use serde_json::Value;
use tokio::time::Instant;
use tutti::model::{Digest, Revision, Snapshot};

use super::commit::OracleCommit;
use super::history::{AppliedContent, ControllerWrite, ExpectedWaves, OracleEvent, RolloutHistory};
use super::live_state::{LiveState, object_at, read_live_state};
use super::verdict::{find_violations, units_behind};
use crate::support::connections::RequestObserver;

pub struct Oracle {
    clusters: Mutex<BTreeMap<String, Sandbox>>,
    began: Instant,
    state: Mutex<RecorderState>,
}

#[derive(Default)]
struct RecorderState {
    story: RolloutHistory,
    commits: usize,
    /// Pending writes by cluster and path: their positions in the story.
    open_writes: HashMap<(String, String), Vec<usize>>,
}

impl Oracle {
    pub fn new(clusters: BTreeMap<String, Sandbox>) -> Self {
        let mut state = RecorderState::default();
        state.story.grace = Duration::from_secs(5);
        Self { clusters: Mutex::new(clusters), began: Instant::now(), state: Mutex::new(state) }
    }

    /// A commit is on the main branch from now on.
    pub fn record_commit(&self, revision: &Revision, snapshot: &Snapshot) -> Arc<OracleCommit> {
        let mut state = self.state.lock();
        let commit = OracleCommit::of(snapshot, revision.as_str(), state.commits).shared();
        state.commits += 1;
        let at = self.began.elapsed();
        state.story.add(at, OracleEvent::Commit(Arc::clone(&commit)));
        commit
    }

    /// The head renders differently by what clusters serve; its digests stay those of Git alone.
    pub fn record_rendered(&self, revision: &Revision, of_git: &Snapshot, snapshot: &Snapshot) {
        let mut state = self.state.lock();
        let number = state.commits.saturating_sub(1);
        let of_git = OracleCommit::of(of_git, revision.as_str(), number);
        let mut commit = OracleCommit::of(snapshot, revision.as_str(), number);
        for (app, at) in &mut commit.apps {
            if let Some(known) = of_git.apps.get(app) {
                at.digest.clone_from(&known.digest);
            }
        }
        let at = self.began.elapsed();
        state.story.add(at, OracleEvent::Commit(commit.shared()));
    }

    pub fn record_event(&self, event: OracleEvent) {
        let at = self.began.elapsed();
        self.state.lock().story.add(at, event);
    }

    /// A cluster is replaced.
    pub fn record_rebuilt(&self, cluster: &str, sandbox: Sandbox) {
        self.clusters.lock().insert(cluster.to_owned(), sandbox);
        self.record_event(OracleEvent::Rebuilt(cluster.to_owned()));
    }

    fn world(&self) -> LiveState {
        read_live_state(self.clusters.lock().iter())
    }

    pub fn story(&self) -> RolloutHistory {
        self.state.lock().story.clone()
    }

    /// Units that differ from the last commit or are not healthy.
    pub fn units_behind(&self, waves: &[ExpectedWaves]) -> Vec<String> {
        let (story, now) = (self.story(), self.world());
        waves.iter().flat_map(|waves| units_behind(&story, waves, &now)).collect()
    }

    pub fn violations(&self, waves: &[ExpectedWaves]) -> Vec<String> {
        let story = self.story();
        waves.iter().flat_map(|waves| find_violations(&story, waves)).collect()
    }
}

fn is_write(request: &Request<Bytes>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    !matches!(*request.method(), Method::GET | Method::HEAD) && !query.contains("dryRun=")
}

fn applied_content(request: &Request<Bytes>) -> Option<AppliedContent> {
    let body: Value = serde_json::from_slice(request.body()).ok()?;
    let annotation = |name: &str| body["metadata"]["annotations"][name].as_str();
    Some(AppliedContent {
        app: annotation("tutti.dev/app")?.to_owned(),
        revision: annotation("tutti.dev/revision").unwrap_or_default().to_owned(),
        content: annotation("tutti.dev/content").and_then(Digest::parse),
        replicas: body["spec"]["replicas"].as_u64(),
        previous: annotation("tutti.dev/previous").unwrap_or_default().to_owned(),
    })
}

impl RequestObserver for Oracle {
    fn sent(&self, cluster: &str, request: &Request<Bytes>) {
        let path = request.uri().path();
        let Some(object) = object_at(path).filter(|_| is_write(request)) else { return };
        let applied = match *request.method() {
            Method::DELETE => None,
            // A write without an app is of another kind: a transfer of ownership.
            _ => match applied_content(request) {
                Some(applied) => Some(applied),
                None => return,
            },
        };
        let write = ControllerWrite {
            cluster: cluster.to_owned(),
            object,
            applied,
            objects_before: self.world(),
            answered_at_event: None,
        };
        let mut state = self.state.lock();
        let place = state.story.events.len();
        let at = self.began.elapsed();
        state.story.add(at, OracleEvent::Write(Box::new(write)));
        state.open_writes.entry((cluster.to_owned(), path.to_owned())).or_default().push(place);
    }

    fn answered(&self, cluster: &str, request: &Request<Bytes>, _: Result<StatusCode, String>) {
        let mut state = self.state.lock();
        let key = (cluster.to_owned(), request.uri().path().to_owned());
        if !is_write(request) {
            return;
        }
        let until = state.story.events.len();
        let Some(place) = state.open_writes.get_mut(&key).and_then(Vec::pop) else { return };
        if let Some((_, OracleEvent::Write(write))) = state.story.events.get_mut(place) {
            write.answered_at_event = Some(until);
        }
    }

    fn late_arrival(&self, _: &str, _: &Request<Bytes>) {}
}
