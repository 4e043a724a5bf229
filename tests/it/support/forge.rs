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
pub struct Posted {
    pub commit: String,
    pub context: String,
    pub state: String,
    pub text: String,
}

#[derive(Default)]
struct Told {
    posts: Vec<Posted>,
    /// Answers 503 to everything.
    is_down: bool,
    refused: usize,
    /// Requests without this token get 401.
    token: Option<String>,
}

impl Told {
    fn refusal(&mut self, headers: &HeaderMap) -> Option<Response> {
        let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let is_known = self.token.as_ref().is_none_or(|token| shown == Some(&format!("token {token}")));
        let code = match (self.is_down, is_known) {
            (true, _) => StatusCode::SERVICE_UNAVAILABLE,
            (false, false) => StatusCode::UNAUTHORIZED,
            (false, true) => return None,
        };
        self.refused += 1;
        Some(code.into_response())
    }
}

pub struct Gitea {
    address: SocketAddr,
    told: Arc<Mutex<Told>>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Gitea {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// A paused clock jumps whenever nothing runs, also while the kernel still holds bytes, so a request
/// would time out on the way. This task makes each second take at least two real milliseconds.
pub async fn real_time_passes_too() {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let pause = tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(2)));
        pause.await.expect("a pause");
    }
}

impl Gitea {
    pub async fn start() -> Self {
        let told = Arc::new(Mutex::new(Told::default()));
        let router = Router::new()
            .route("/api/v1/repos/platform/config/statuses/{commit}", post(write))
            .route("/api/v1/repos/platform/config/commits/{commit}/status", get(read))
            .with_state(Arc::clone(&told));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("address");
        let served = tokio::spawn(async move { axum::serve(listener, router).await.expect("serve") });
        Self { address, told, tasks: [served, tokio::spawn(real_time_passes_too())] }
    }

    /// An instance that reports to this server.
    pub fn instance(&self) -> String {
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
    pub fn ask_for_token(&self, token: &str) {
        self.told.lock().token = Some(token.to_owned());
    }

    pub fn set_down(&self, down: bool) {
        self.told.lock().is_down = down;
    }

    pub fn refused(&self) -> usize {
        self.told.lock().refused
    }

    pub fn posts(&self) -> Vec<Posted> {
        self.told.lock().posts.clone()
    }

    /// The statuses of a commit in order, as `state text`.
    pub fn said(&self, revision: &Revision) -> Vec<String> {
        let of_commit = |post: &&Posted| post.commit == revision.as_str();
        let posts = self.posts();
        posts.iter().filter(of_commit).map(|post| format!("{} {}", post.state, post.text)).collect()
    }

    /// The only status of a commit that is not `pending`, and the last. The number of `pending` ones before
    /// it depends on a race between the forge and the rollout.
    pub fn verdict(&self, revision: &Revision) -> String {
        let said = self.said(revision);
        let settled = said.iter().position(|it| !it.starts_with("pending "));
        assert_eq!(settled, said.len().checked_sub(1), "one word that is not pending, at the end: {said:#?}");
        self.last(revision)
    }

    /// The last status of a commit.
    pub fn last(&self, revision: &Revision) -> String {
        self.said(revision).pop().unwrap_or_default()
    }

    /// Waits until the last status of a commit begins with this text.
    pub async fn until(&self, revision: &Revision, beginning: &str) {
        for _ in 0..9_000 {
            if self.last(revision).starts_with(beginning) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{} never became {beginning:?}: {:#?}", revision.short(), self.said(revision));
    }

    /// No status was posted twice in a row for one context of a commit.
    pub fn assert_nothing_repeated(&self) {
        let posts = self.posts();
        for (index, post) in posts.iter().enumerate() {
            let same_place = |it: &&Posted| it.commit == post.commit && it.context == post.context;
            let before = posts[..index].iter().rev().find(same_place);
            assert_ne!(before, Some(post), "said twice");
        }
    }
}

#[derive(Deserialize)]
struct Written {
    state: String,
    context: String,
    description: String,
}

async fn write(
    State(told): State<Arc<Mutex<Told>>>,
    Path(commit): Path<String>,
    headers: HeaderMap,
    Json(written): Json<Written>,
) -> Response {
    let mut told = told.lock();
    if let Some(refusal) = told.refusal(&headers) {
        return refusal;
    }
    let Written { state, context, description } = written;
    told.posts.push(Posted { commit, context, state, text: description });
    (StatusCode::CREATED, Json(json!({}))).into_response()
}

/// All statuses of a commit, the newest of each context with the largest id.
async fn read(
    State(told): State<Arc<Mutex<Told>>>,
    Path(commit): Path<String>,
    headers: HeaderMap,
) -> Response {
    let mut told = told.lock();
    if let Some(refusal) = told.refusal(&headers) {
        return refusal;
    }
    let statuses: Vec<Value> = told
        .posts
        .iter()
        .enumerate()
        .filter(|(_, post)| post.commit == commit)
        .map(|(id, post)| {
            json!({"id": id, "context": post.context, "status": post.state, "description": post.text})
        })
        .collect();
    Json(json!({"total_count": statuses.len(), "statuses": statuses})).into_response()
}
