//! A simulated Gitea: its API for one repository, which is a bare Git repository on disk.
//!
//! Branches, commits and merges are real Git objects; users, pull requests, reviews, statuses, labels,
//! hooks and protections are rows in memory. Surprising behaviour of Gitea is switched by [`ForgeQuirks`]. Answers were
//! compared with Gitea 1.26.4: `live/forge.rs` makes the same requests.

mod answers;
mod contents;
mod faults;
mod git;
mod hooks;
mod issues;
mod pulls;
mod settings;
mod state;
mod statuses;
mod test_access;
mod users;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use parking_lot::Mutex;
use secrecy::SecretString;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tutti::forge::{CommitStatus, ForgeClient, ForgeHostRules};
use tutti::model::{Hosts, Revision};

pub use faults::ForgeFault;
pub use hooks::{DeliveryRecord, signature};
pub use state::ForgeQuirks;
pub use test_access::{PullRequestView, StatusWrite};
pub use users::ForgePermission;

use super::super::repository::FileTextChange;
use super::slow_down_paused_clock;
use answers::{ForgeAnswer, ForgeRequest};
use state::ForgeState;

/// The name of the repository.
pub const REPOSITORY: &str = "platform/config";
/// The user of tutti's token, with the right to write.
pub const BOT: &str = "tutti";

pub struct ForgeSimulator {
    address: SocketAddr,
    state: Arc<Mutex<ForgeState>>,
    path: PathBuf,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for ForgeSimulator {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl ForgeSimulator {
    /// With these files on `main`, and the user [`BOT`].
    pub async fn start(files: &[FileTextChange<'_>]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("address");
        let (sender, receiver) = mpsc::unbounded_channel();
        let state = ForgeState::new(&format!("http://{address}"), sender);
        let path = state.git.path();
        let state = Arc::new(Mutex::new(state));
        let router = Router::new().fallback(serve).with_state(Arc::clone(&state));
        let served = tokio::spawn(async move { axum::serve(listener, router).await.expect("serve") });
        let sent = tokio::spawn(hooks::send_deliveries(receiver, Arc::clone(&state)));
        let tasks = vec![served, sent, tokio::spawn(slow_down_paused_clock())];
        let simulator = Self { address, state, path, tasks };
        simulator.add_user(BOT, ForgePermission::Write);
        simulator.push(BOT, "main", "Begin", files);
        simulator
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bare repository, to fetch from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A client with the token of a user, which is the login.
    pub fn client(&self, login: &str) -> ForgeClient {
        let rules = ForgeHostRules::new(".", Hosts::new(["127.0.0.1"]), Hosts::default());
        ForgeClient::gitea(&self.url(), REPOSITORY, Some(SecretString::from(login)), &rules)
            .expect("a client")
    }

    pub fn add_user(&self, login: &str, right: ForgePermission) {
        self.state.lock().add_user(login, right);
    }

    pub fn set_quirks(&self, change: impl FnOnce(&mut ForgeQuirks)) {
        change(&mut self.state.lock().quirks);
    }

    /// The fault of the next requests whose `METHOD /path` contains this text.
    pub fn fail_next(&self, text: &str, times: usize, fault: ForgeFault) {
        self.state.lock().faults.add(text, times, fault);
    }

    /// A person pushes a commit to a branch; a new branch starts at `main`.
    pub fn push(&self, login: &str, branch: &str, subject: &str, changes: &[FileTextChange<'_>]) -> Revision {
        let changes: Vec<(String, Option<Vec<u8>>)> = changes
            .iter()
            .map(|(path, text)| ((*path).to_owned(), text.map(|text| text.as_bytes().to_vec())))
            .collect();
        Revision::from(self.state.lock().push(login, branch, subject, &changes).to_string().as_str())
    }

    /// A pull request to `main` from somebody's fork, which needs no right.
    pub fn pull_from_fork(&self, login: &str, title: &str, changes: &[FileTextChange<'_>]) -> u64 {
        let changes: Vec<(String, Option<Vec<u8>>)> = changes
            .iter()
            .map(|(path, text)| ((*path).to_owned(), text.map(|text| text.as_bytes().to_vec())))
            .collect();
        self.state.lock().pull_from_fork(login, title, &changes)
    }

    /// A review of the present head, in the words of Gitea (`APPROVED`, `REQUEST_CHANGES`, `COMMENT`); returns its number.
    pub fn review(&self, login: &str, number: u64, verdict: &str) -> i64 {
        self.state.lock().review(login, number, verdict, None).expect("a review")
    }

    pub fn dismiss(&self, review: i64) {
        self.state.lock().dismiss(review);
    }

    /// Moves the clock of commits to the near future.
    pub fn advance_clock(&self) {
        self.state.lock().clock = jiff::Timestamp::now().as_second() + 60;
    }

    /// An administrator renames the default branch; open pull requests follow.
    pub fn rename_default_branch(&self, to: &str) {
        let mut state = self.state.lock();
        let from = std::mem::replace(&mut state.default_branch, to.to_owned());
        state.git.rename_head(&from, to);
        state
            .pulls
            .iter_mut()
            .filter(|pull| pull.base == from)
            .for_each(|pull| to.clone_into(&mut pull.base));
    }

    pub fn tip(&self, branch: &str) -> Option<Revision> {
        let id = self.state.lock().git.tip(branch)?;
        Some(Revision::from(id.to_string().as_str()))
    }

    /// A file of a branch.
    pub fn file_text(&self, branch: &str, path: &str) -> Option<String> {
        let state = self.state.lock();
        let (_, content) = state.git.file(state.git.tip(branch)?, path)?;
        String::from_utf8(content).ok()
    }

    /// The blob id of a file.
    pub fn blob_id(&self, branch: &str, path: &str) -> Option<String> {
        let state = self.state.lock();
        Some(state.git.file(state.git.tip(branch)?, path)?.0.to_string())
    }

    pub fn parents(&self, commit: &Revision) -> Vec<String> {
        self.state.lock().git.parents(commit.as_str())
    }

    /// All requests so far, as `METHOD /path?query`, relative to the repository.
    pub fn requests(&self) -> Vec<String> {
        self.state.lock().requests.clone()
    }

    /// The total time of all answers.
    #[allow(dead_code, reason = "a benchmark asks")]
    pub fn answer_time(&self) -> Duration {
        self.state.lock().answer_time
    }

    /// All attempted webhook deliveries.
    pub fn deliveries(&self) -> Vec<DeliveryRecord> {
        self.state.lock().deliveries.clone()
    }
}

async fn serve(
    Shared(state): Shared<Arc<Mutex<ForgeState>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let token = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("token "));
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let line = format!("{method} {}", uri.path());
    let fault = state.lock().faults.take_fault(&line);
    match fault {
        Some(ForgeFault::NoAnswer) => {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            return StatusCode::GATEWAY_TIMEOUT.into_response();
        }
        Some(ForgeFault::Status(code)) => {
            return StatusCode::from_u16(code).expect("a code").into_response();
        }
        Some(ForgeFault::RateLimit(seconds)) => {
            let after = seconds.to_string();
            return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", after)]).into_response();
        }
        Some(ForgeFault::LostAnswer) | None => {}
    }
    let begun = Instant::now();
    let answer = match ForgeRequest::parse(&method, &uri, body) {
        Some(request) => state.lock().answer(token, &request),
        None => ForgeAnswer::not_found(),
    };
    state.lock().answer_time += begun.elapsed();
    if matches!(fault, Some(ForgeFault::LostAnswer)) {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    answer.into_response()
}

/// A minimal success status.
pub fn success(context: &str) -> CommitStatus {
    CommitStatus {
        context: context.to_owned(),
        state: tutti::forge::CommitStatusState::Success,
        description: String::new(),
        target_url: None,
    }
}
