//! Git over http: a small server around `git upload-pack`, which every machine with this source has.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use secrecy::SecretString;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::fixture::{Fixture, options};
use crate::source::{ConfigRepository, Error, GitCredentials};

/// `x-access-token:t0ken`.
const AUTHORIZATION: &str = "Basic eC1hY2Nlc3MtdG9rZW46dDBrZW4=";

#[derive(Clone)]
struct Server {
    folder: PathBuf,
    /// Also an old server is one.
    speaks_version_2: bool,
    requests: Arc<AtomicUsize>,
}

impl Server {
    async fn start(fixture: &Fixture, speaks_version_2: bool) -> (Self, String) {
        let folder = fixture.path().to_owned();
        let server = Self { folder, speaks_version_2, requests: Arc::default() };
        let router = Router::new()
            .route("/li/config.git/info/refs", get(greet))
            .route("/li/config.git/git-upload-pack", post(talk))
            .with_state(server.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let url = format!("http://{}/li/config.git", listener.local_addr().expect("address"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        (server, url)
    }

    async fn run(&self, headers: &HeaderMap, arguments: &[&str], input: &[u8], kind: &str) -> Response {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if headers.get("authorization").is_none_or(|value| value != AUTHORIZATION) {
            let challenge = [("www-authenticate", "Basic realm=\"forge\"")];
            return (StatusCode::UNAUTHORIZED, challenge, "").into_response();
        }
        let mut command = Command::new("git");
        command.arg("upload-pack").arg("--stateless-rpc").args(arguments).arg(&self.folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).env_remove("GIT_PROTOCOL");
        if self.speaks_version_2 && headers.contains_key("git-protocol") {
            command.env("GIT_PROTOCOL", "version=2");
        }
        let mut child = command.spawn().expect("git");
        let mut stdin = child.stdin.take().expect("stdin");
        stdin.write_all(input).await.expect("write");
        drop(stdin);
        let output = child.wait_with_output().await.expect("output");
        let media = format!("application/x-git-upload-pack-{kind}");
        ([("content-type", media)], output.stdout).into_response()
    }

    fn requests(&self) -> usize {
        self.requests.swap(0, Ordering::Relaxed)
    }
}

async fn greet(State(server): State<Server>, headers: HeaderMap) -> Response {
    let start = b"001e# service=git-upload-pack\n0000";
    let response = server.run(&headers, &["--http-backend-info-refs"], b"", "advertisement").await;
    if response.status() != StatusCode::OK {
        return response;
    }
    let (parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.expect("body");
    Response::from_parts(parts, [start.as_slice(), &body].concat().into())
}

async fn talk(State(server): State<Server>, headers: HeaderMap, body: Bytes) -> Response {
    server.run(&headers, &[], &body, "result").await
}

async fn open(url: &str, state: &std::path::Path, token: &str) -> ConfigRepository {
    let mut options = options(url, state);
    options.credentials = GitCredentials::Token(SecretString::from(token));
    ConfigRepository::open(options).await.expect("open")
}

#[tokio::test]
async fn push_costs_two_requests_no_push_one() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let (server, url) = Server::start(&fixture, true).await;
    let one = fixture.commit("one", &[("a.yaml", Some("1")), ("b.yaml", Some("same"))]);
    let base = fixture.tip("main");
    let repository = open(&url, state.path(), "t0ken").await;
    assert_eq!(repository.fetch().await, Ok(one));
    assert_eq!(server.requests(), 3, "greeting, list, fetch");
    for number in 0..40 {
        let tip = fixture.commit("more", &[("a.yaml", Some(&number.to_string()))]);
        assert_eq!(repository.fetch().await, Ok(tip.clone()));
        assert_eq!(server.requests(), 2);
        let snapshot = repository.snapshot(&tip).await.expect("snapshot");
        assert_eq!(
            (snapshot.text("a.yaml"), snapshot.text("b.yaml")),
            (Some(&*number.to_string()), Some("same"))
        );
    }
    repository.fetch().await.expect("fetch");
    assert_eq!(server.requests(), 1);
    let forced = fixture.commit_on("refs/heads/main", &base, "forced", &[("c.yaml", Some("3"))]);
    assert_eq!(repository.fetch().await, Ok(forced.clone()));
    assert_eq!(repository.snapshot(&forced).await.expect("snapshot").text("c.yaml"), Some("3"));
    // A start later.
    let again = open(&url, state.path(), "t0ken").await;
    server.requests();
    assert_eq!(again.fetch().await, Ok(forced));
    assert_eq!(server.requests(), 2, "greeting, list");
}

#[tokio::test]
async fn old_server_uses_protocol_version_0() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let (_, url) = Server::start(&fixture, false).await;
    let repository = open(&url, state.path(), "t0ken").await;
    for number in 0..3 {
        let tip = fixture.commit("more", &[("a.yaml", Some(&number.to_string()))]);
        assert_eq!(repository.fetch().await, Ok(tip.clone()));
        assert_eq!(
            repository.snapshot(&tip).await.expect("snapshot").text("a.yaml"),
            Some(&*number.to_string())
        );
    }
}

#[tokio::test]
async fn branches_over_http() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let (_, url) = Server::start(&fixture, true).await;
    let error = open(&url, state.path(), "t0ken").await.fetch().await.expect_err("empty");
    assert_eq!(error, Error::Empty { url: url.clone() });
    let main = fixture.commit("one", &[("a.yaml", Some("1"))]);
    let release = fixture.commit_on("refs/heads/release", &[], "release", &[("a.yaml", Some("2"))]);
    assert_eq!(open(&url, state.path(), "t0ken").await.fetch().await, Ok(main.clone()));
    let with_branch = async |branch: &str| {
        let mut options = options(&url, state.path());
        options.credentials = GitCredentials::Token(SecretString::from("t0ken"));
        options.branch = Some(branch.to_owned());
        ConfigRepository::open(options).await.expect("open").fetch().await
    };
    assert_eq!(with_branch("release").await, Ok(release));
    let branches = vec!["release".to_owned(), "main".to_owned()];
    let missing = Error::MissingBranch { url: url.clone(), branch: "releas".to_owned(), branches };
    assert_eq!(with_branch("releas").await, Err(missing));
    // A detached HEAD has no name; its commit does.
    fixture.repository.set_head_detached(fixture.tip("main")[0]).expect("detach");
    assert_eq!(open(&url, state.path(), "t0ken").await.fetch().await, Ok(main));
}

#[tokio::test]
async fn a_wrong_token_and_a_damaged_copy() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let (_, url) = Server::start(&fixture, true).await;
    fixture.commit("one", &[("b.yaml", Some("1"))]);
    let error = open(&url, state.path(), "wr0ng").await.fetch().await.expect_err("refused");
    assert!(
        matches!(&error, Error::Authentication { message, .. } if message.contains("refused")),
        "{error}"
    );
    let repository = open(&url, state.path(), "t0ken").await;
    let tip = repository.fetch().await.expect("fetch");
    let copy = std::fs::read_dir(state.path().join("repository")).expect("copies").next().expect("one");
    for entry in std::fs::read_dir(copy.expect("entry").path().join("objects/pack")).expect("packs") {
        std::fs::remove_file(entry.expect("entry").path()).expect("damage");
    }
    let repository = open(&url, state.path(), "t0ken").await;
    assert_eq!(repository.fetch().await, Ok(tip.clone()));
    assert_eq!(repository.snapshot(&tip).await.expect("snapshot").text("b.yaml"), Some("1"));
}

/// Each way in which it is said: by version 2, and before.
#[tokio::test]
async fn refusal_of_a_server_is_one_clean_line() {
    let state = tempfile::tempdir().expect("state");
    let said = format!("ERR \u{1b}[2J\u{1b}]0;x\u{7}no\r\n  \u{202e}entry{}\n", "!".repeat(60_000));
    let packet = format!("{:04x}{said}0000", said.len() + 4);
    let router = Router::new().fallback(move || async move { packet });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let url = format!("http://{}/a.git", listener.local_addr().expect("address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let error = open(&url, state.path(), "t0ken").await.fetch().await.expect_err("refused");
    let Error::Remote { message, .. } = &error else { panic!("{error}") };
    assert_eq!(*message, format!("no entry{}…", "!".repeat(2048 - 8)));
}

#[tokio::test]
async fn pull_request_is_fetched_by_its_reference() {
    for speaks_version_2 in [true, false] {
        let fixture = Fixture::new();
        let state = tempfile::tempdir().expect("state");
        let (server, url) = Server::start(&fixture, speaks_version_2).await;
        let one = fixture.commit("one", &[("a.yaml", Some("1"))]);
        let base = fixture.tip("main");
        let head = fixture.commit_on("refs/pull/7/head", &base, "head", &[("b.yaml", Some("1"))]);
        let repository = open(&url, state.path(), "t0ken").await;
        assert_eq!(repository.fetch().await, Ok(one.clone()));
        assert_eq!(repository.fetch_reference("refs/pull/7/head").await, Ok(head.clone()));
        server.requests();
        assert_eq!(repository.fetch_reference("refs/pull/7/head").await, Ok(head.clone()));
        assert_eq!(server.requests(), 1, "the list alone");
        let merged = repository.preview_merge(&one, &head).await.expect("merged");
        assert_eq!(merged.changed, ["b.yaml"]);
        let error = repository.fetch_reference("refs/pull/8/head").await.expect_err("missing");
        assert!(matches!(error, Error::MissingReference { .. }), "{error}");
    }
}
