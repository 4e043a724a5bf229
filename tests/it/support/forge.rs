//! A small server with the commit status API of Gitea, which records all posts. [`simulator`] has
//! all of Gitea's API that the client uses.

pub mod simulator;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tutti::model::Revision;

/// One accepted POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostedStatus {
    pub commit: String,
    pub context: String,
    pub state: String,
    pub description: String,
}

#[derive(Default)]
struct StatusServerState {
    posts: Vec<PostedStatus>,
    /// Answers 503 to everything.
    is_down: bool,
    refused_requests: usize,
    /// Requests without this token get 401.
    token: Option<String>,
}

impl StatusServerState {
    fn refuse_request(&mut self, headers: &HeaderMap) -> Option<Response> {
        let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let is_known = self.token.as_ref().is_none_or(|token| shown == Some(&format!("token {token}")));
        let code = match (self.is_down, is_known) {
            (true, _) => StatusCode::SERVICE_UNAVAILABLE,
            (false, false) => StatusCode::UNAUTHORIZED,
            (false, true) => return None,
        };
        self.refused_requests += 1;
        Some(code.into_response())
    }
}

pub struct GiteaStatusServer {
    address: SocketAddr,
    state: Arc<Mutex<StatusServerState>>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for GiteaStatusServer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// A paused clock jumps whenever nothing runs, also while the kernel still holds bytes, so a request
/// would time out on the way. This task makes each second take at least two real milliseconds.
pub async fn slow_down_paused_clock() {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let pause = tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(2)));
        pause.await.expect("a pause");
    }
}

impl GiteaStatusServer {
    pub async fn start() -> Self {
        let told = Arc::new(Mutex::new(StatusServerState::default()));
        let router = Router::new()
            .route("/api/v1/repos/platform/config/statuses/{commit}", post(write_status))
            .route("/api/v1/repos/platform/config/commits/{commit}/status", get(read_statuses))
            .with_state(Arc::clone(&told));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("address");
        let served = tokio::spawn(async move { axum::serve(listener, router).await.expect("serve") });
        Self { address, state: told, tasks: [served, tokio::spawn(slow_down_paused_clock())] }
    }

    /// An instance that reports to this server.
    pub fn instance_manifest(&self) -> String {
        format!(
            "\
apiVersion: tutti.dev/v1alpha1
kind: Instance
metadata: {{name: main}}
spec: {{forge: {{type: gitea, url: \"http://{}\", repository: platform/config}}}}
",
            self.address
        )
    }

    /// From now on requests need this token.
    pub fn require_token(&self, token: &str) {
        self.state.lock().token = Some(token.to_owned());
    }

    pub fn set_down(&self, down: bool) {
        self.state.lock().is_down = down;
    }

    pub fn refused_requests(&self) -> usize {
        self.state.lock().refused_requests
    }

    pub fn posts(&self) -> Vec<PostedStatus> {
        self.state.lock().posts.clone()
    }

    /// The statuses of a commit in order, as `state text`.
    pub fn statuses_of(&self, revision: &Revision) -> Vec<String> {
        let of_commit = |post: &&PostedStatus| post.commit == revision.as_str();
        let posts = self.posts();
        posts.iter().filter(of_commit).map(|post| format!("{} {}", post.state, post.description)).collect()
    }

    /// The only status of a commit that is not `pending`, and the last. The number of `pending` ones before
    /// it depends on a race between the forge and the rollout.
    pub fn final_status(&self, revision: &Revision) -> String {
        let said = self.statuses_of(revision);
        let settled = said.iter().position(|it| !it.starts_with("pending "));
        assert_eq!(settled, said.len().checked_sub(1), "one word that is not pending, at the end: {said:#?}");
        self.last_status(revision)
    }

    /// The last status of a commit.
    pub fn last_status(&self, revision: &Revision) -> String {
        self.statuses_of(revision).pop().unwrap_or_default()
    }

    /// Waits until the last status of a commit begins with this text.
    pub async fn until_status(&self, revision: &Revision, beginning: &str) {
        for _ in 0..9_000 {
            if self.last_status(revision).starts_with(beginning) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{} never became {beginning:?}: {:#?}", revision.short(), self.statuses_of(revision));
    }

    /// No status was posted twice in a row for one context of a commit.
    pub fn assert_no_repeated_status(&self) {
        let posts = self.posts();
        for (index, post) in posts.iter().enumerate() {
            let same_place = |it: &&PostedStatus| it.commit == post.commit && it.context == post.context;
            let before = posts[..index].iter().rev().find(same_place);
            assert_ne!(before, Some(post), "said twice");
        }
    }
}

#[derive(Deserialize)]
struct StatusBody {
    state: String,
    context: String,
    description: String,
}

async fn write_status(
    State(told): State<Arc<Mutex<StatusServerState>>>,
    Path(commit): Path<String>,
    headers: HeaderMap,
    Json(written): Json<StatusBody>,
) -> Response {
    let mut told = told.lock();
    if let Some(refusal) = told.refuse_request(&headers) {
        return refusal;
    }
    let StatusBody { state, context, description } = written;
    told.posts.push(PostedStatus { commit, context, state, description });
    (StatusCode::CREATED, Json(json!({}))).into_response()
}

/// All statuses of a commit, the newest of each context with the largest id.
async fn read_statuses(
    State(told): State<Arc<Mutex<StatusServerState>>>,
    Path(commit): Path<String>,
    headers: HeaderMap,
) -> Response {
    let mut told = told.lock();
    if let Some(refusal) = told.refuse_request(&headers) {
        return refusal;
    }
    let statuses: Vec<Value> = told
        .posts
        .iter()
        .enumerate()
        .filter(|(_, post)| post.commit == commit)
        .map(|(id, post)| {
            json!({"id": id, "context": post.context, "status": post.state, "description": post.description})
        })
        .collect();
    Json(json!({"total_count": statuses.len(), "statuses": statuses})).into_response()
}
