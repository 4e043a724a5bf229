//! The client against a small server with Gitea's answers.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State as Shared};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use http::HeaderMap;
use parking_lot::Mutex;
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::forge::{
    CommitStatus, CommitStatusState, Error, ForgeClient, ForgeErrorKind, ForgeHostRules, ForgeObserver,
    ForgeOperation,
};
use crate::model::{Hosts, Revision};

const COMMIT: &str = "3f9c2d1a0000000000000000000000000000beef";

/// The requests that the server got, and its settings.
#[derive(Clone, Default)]
struct Gitea {
    posted: Arc<Mutex<Vec<(String, Value)>>>,
    /// The answer to every status request instead of the usual one.
    broken: Option<(u16, &'static str)>,
    /// Without statuses: an empty body, as in older versions.
    silent: bool,
}

async fn serve(gitea: Gitea) -> String {
    async fn write(
        Shared(gitea): Shared<Gitea>,
        Path((owner, name, commit)): Path<(String, String, String)>,
        headers: HeaderMap,
        Json(body): Json<Value>,
    ) -> axum::response::Response {
        if let Some((status, body)) = gitea.broken {
            let status = StatusCode::from_u16(status).expect("status");
            return (status, [("retry-after", "7")], body).into_response();
        }
        if headers.get("authorization").is_none_or(|value| value != "token t0ken") {
            return (StatusCode::UNAUTHORIZED, Json(json!({"message": "invalid token"}))).into_response();
        }
        if (owner.as_str(), name.as_str()) != ("platform", "config") {
            return (StatusCode::NOT_FOUND, Json(json!({"message": "The target couldn't be found."})))
                .into_response();
        }
        if commit != COMMIT {
            let message = format!("GetCommit[{commit}]: object does not exist [id: {commit}, rel_path: ]");
            return (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({"message": message}))).into_response();
        }
        let answer = json!({"id": 1, "status": body["state"], "context": body["context"]});
        gitea.posted.lock().push((commit, body));
        (StatusCode::CREATED, Json(answer)).into_response()
    }

    async fn read(
        Shared(gitea): Shared<Gitea>,
        Path((_, _, commit)): Path<(String, String, String)>,
        RawQuery(query): RawQuery,
    ) -> axum::response::Response {
        if commit != COMMIT {
            return (StatusCode::NOT_FOUND, Json(json!({"message": "not found"}))).into_response();
        }
        if gitea.silent {
            return StatusCode::OK.into_response();
        }
        let query = query.unwrap_or_default();
        let page = query.split('&').find_map(|pair| pair.strip_prefix("page="));
        let statuses = match page {
            Some("1") => json!([
                {"id": 5, "status": "success", "context": "tutti/deploy/prod", "description": "6/6", "target_url": ""},
                {"id": 4, "state": "pending", "context": "tutti/deploy/test", "target_url": "https://t/1"}]),
            Some("2") => json!([
                {"id": 2, "status": "pending", "context": "tutti/deploy/prod"},
                {"id": 3, "status": "warning", "context": "other"}]),
            _ => json!([]),
        };
        Json(json!({"state": "pending", "sha": commit, "total_count": 4, "statuses": statuses}))
            .into_response()
    }

    let router = Router::new()
        .route("/git/api/v1/version", get(|| async { Json(json!({"version": "1.26.4"})) }))
        .route("/git/api/v1/repos/platform/config", get(|| async { Json(json!({"id": 1})) }))
        .route("/git/api/v1/repos/{owner}/{name}/statuses/{commit}", post(write))
        .route("/git/api/v1/repos/{owner}/{name}/commits/{commit}/status", get(read))
        .with_state(gitea);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = listener.local_addr().expect("address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/git/")
}

fn client(url: &str, repository: &str, token: &str) -> ForgeClient {
    let rules = ForgeHostRules::new(url, Hosts::default(), Hosts::default());
    ForgeClient::gitea(url, repository, Some(SecretString::from(token)), &rules).expect("client")
}

fn status(description: &str) -> CommitStatus {
    CommitStatus {
        context: "tutti/deploy/prod".to_owned(),
        state: CommitStatusState::Pending,
        description: description.to_owned(),
        target_url: Some("https://tutti.example.com/".to_owned()),
    }
}

#[tokio::test]
async fn status_is_written() {
    let gitea = Gitea::default();
    let client = client(&serve(gitea.clone()).await, "platform/config", "t0ken");
    client.post_status(&Revision::from(COMMIT), &status(&"x".repeat(200))).await.expect("posted");
    let expected = json!({"state": "pending", "context": "tutti/deploy/prod",
        "description": format!("{}…", "x".repeat(139)), "target_url": "https://tutti.example.com/"});
    assert_eq!(*gitea.posted.lock(), [(COMMIT.to_owned(), expected)]);
    assert_eq!(client.version().await, Ok("1.26.4".to_owned()));
}

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl ForgeObserver for Heard {
    fn request_finished(&self, operation: ForgeOperation, code: Option<StatusCode>) {
        let code = code.map_or("none".to_owned(), |code| code.as_u16().to_string());
        self.0.lock().push(format!("{} {code}", operation.as_str()));
    }

    fn status_posted(&self, result: Result<(), &Error>) {
        self.0.lock().push(format!("posted {}", result.is_ok()));
    }
}

#[tokio::test]
async fn observer_gets_each_request() {
    let url = serve(Gitea::default()).await;
    let check = async |url: &str, repository: &str, expected: &[&str]| {
        let heard = Arc::new(Heard::default());
        let client = client(url, repository, "t0ken").observed_by(heard.clone());
        // The observer records the result.
        let _ = client.post_status(&Revision::from(COMMIT), &status("x")).await;
        let _ = client.statuses(&Revision::from(COMMIT)).await;
        assert_eq!(*heard.0.lock(), expected);
    };
    check(
        &url,
        "platform/config",
        &["post_status 201", "posted true", "read_statuses 200", "read_statuses 200"],
    )
    .await;
    let closed = "http://127.0.0.1:1/";
    check(closed, "platform/config", &["post_status none", "posted false", "read_statuses none"]).await;
}

#[tokio::test]
async fn newest_status_of_each_context_is_read() {
    let client = client(&serve(Gitea::default()).await, "platform/config", "t0ken");
    let statuses = client.statuses(&Revision::from(COMMIT)).await.expect("statuses");
    let found: Vec<_> = statuses.iter().map(|status| (status.context.as_str(), status.state)).collect();
    assert_eq!(
        found,
        [
            ("tutti/deploy/prod", CommitStatusState::Success),
            ("tutti/deploy/test", CommitStatusState::Pending)
        ]
    );
    assert_eq!(
        (statuses[0].target_url.as_deref(), statuses[1].target_url.as_deref()),
        (None, Some("https://t/1"))
    );
}

#[tokio::test]
async fn empty_body_means_no_statuses() {
    let url = serve(Gitea { silent: true, ..Gitea::default() }).await;
    let statuses = client(&url, "platform/config", "t0ken").statuses(&Revision::from(COMMIT)).await;
    assert_eq!(statuses, Ok(Vec::new()));
}

#[tokio::test]
async fn version_is_one_short_clean_line() {
    let version = format!("1.26\u{1b}[2J\n\u{202e}x{}", "y".repeat(5000));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let url = format!("http://{}", listener.local_addr().expect("address"));
    let router = Router::new().fallback(move || async move { Json(json!({"version": version})) });
    tokio::spawn(async move { axum::serve(listener, router).await });
    let version = client(&url, "platform/config", "t0ken").version().await;
    assert_eq!(version, Ok(format!("1.26 x{}…", "y".repeat(64 - 6))));
}

#[tokio::test]
async fn errors_have_their_kind() {
    let url = serve(Gitea::default()).await;
    let commit = Revision::from(COMMIT);
    let check = |result: Result<(), Error>, kind: ForgeErrorKind, words: &str| {
        let error = result.expect_err(words);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(!format!("{error} {error:?}").contains("t0ken"), "{error}");
    };
    let result = client(&url, "platform/config", "t0kenx").post_status(&commit, &status("")).await;
    check(result, ForgeErrorKind::Authentication, "invalid token");
    let result = client(&url, "nobody/nothing", "t0ken").post_status(&commit, &status("")).await;
    check(result, ForgeErrorKind::RepositoryNotFound, "no repository nobody/nothing");
    let other = Revision::from("0123456789012345678901234567890123456789");
    let result = client(&url, "platform/config", "t0ken").post_status(&other, &status("")).await;
    check(result, ForgeErrorKind::UnknownCommit, "has no commit 0123456");
    let result = client(&url, "platform/config", "t0ken").statuses(&other).await.map(drop);
    check(result, ForgeErrorKind::UnknownCommit, "has no commit 0123456");
    for (answer, kind, words) in [
        ((429, ""), ForgeErrorKind::RateLimited, "rate limit"),
        ((503, "down for maintenance"), ForgeErrorKind::Server, "down for maintenance"),
        ((302, ""), ForgeErrorKind::Server, "status 302"),
        (
            (503, "{\"message\": \"\\u001b[2Jdown\\r\\n\\u0007 for \\u202elong\"}"),
            ForgeErrorKind::Server,
            "down for long",
        ),
        ((503, "\u{1b}[2J\n"), ForgeErrorKind::Server, "without a reason"),
    ] {
        let url = serve(Gitea { broken: Some(answer), ..Gitea::default() }).await;
        let result = client(&url, "platform/config", "t0ken").post_status(&commit, &status("")).await;
        check(result, kind, words);
    }
    let closed =
        tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind").local_addr().expect("address");
    let result = client(&format!("http://{closed}"), "platform/config", "t0ken")
        .post_status(&commit, &status(""))
        .await;
    check(result, ForgeErrorKind::Unreachable, "cannot be reached");
}

#[test]
fn addresses_are_checked() {
    let check = |url: &str, repository: &str, words: &str| {
        let rules = ForgeHostRules::new("https://gitea.example.com/a/b", Hosts::default(), Hosts::default());
        let error = ForgeClient::gitea(url, repository, None, &rules).expect_err("refused");
        assert!(error.to_string().contains(words) && !error.to_string().contains("s3cr3t"), "{error}");
        assert_eq!(error.kind(), ForgeErrorKind::Configuration);
    };
    check("gitea.example.com", "a/b", "address `gitea.example.com`");
    check("ftp://gitea.example.com", "a/b", "neither http nor https");
    check("https://li:s3cr3t@gitea.example.com", "a/b", "credentials");
    check("https://other.example.com", "a/b", "--forge-host other.example.com");
    check("https://gitea.example.com", "config", "not `owner/name`");
    check("https://gitea.example.com", "a/b/c", "not `owner/name`");
}
