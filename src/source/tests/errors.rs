//! Each way to be wrong, in words.

use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use secrecy::SecretString;

use super::fixture::{Fixture, open, options};
use crate::model::Revision;
use crate::source::{ConfigRepository, Error, ErrorKind, GitCredentials, read_folder};

async fn failure(url: &str, credentials: GitCredentials) -> Error {
    let state = tempfile::tempdir().expect("state");
    let mut options = options(url, state.path());
    options.credentials = credentials;
    match ConfigRepository::open(options).await {
        Ok(repository) => repository.fetch().await.expect_err("must fail"),
        Err(error) => error,
    }
}

#[track_caller]
fn check(error: &Error, kind: ErrorKind, words: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text} ({error:?})");
    for word in words {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert!(!text.contains("s3cr3t") && !format!("{error:?}").contains("s3cr3t"), "{text}");
}

/// A server that answers everything with one status.
async fn server(status: StatusCode) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = listener.local_addr().expect("address");
    let router = Router::new()
        .fallback(move || async move { (status, [("WWW-Authenticate", "Basic realm=\"forge\"")], "") });
    tokio::spawn(async move { axum::serve(listener, router).await });
    address.to_string()
}

async fn closed_port() -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    listener.local_addr().expect("address").port()
}

#[tokio::test]
async fn not_a_repository() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().display().to_string();
    let missing = failure(&format!("{path}/nowhere"), GitCredentials::None).await;
    check(&missing, ErrorKind::Configuration, &["no such file or directory", "nowhere"]);
    for url in [path.clone(), format!("file://{path}"), format!("file://{path}/nowhere")] {
        let error = failure(&url, GitCredentials::None).await;
        check(&error, ErrorKind::Configuration, &["not a Git repository", &url]);
        assert!(error.help().is_some());
    }
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path().join("inner")).expect("folder");
    let error = failure(&fixture.path().join("inner").display().to_string(), GitCredentials::None).await;
    check(&error, ErrorKind::Configuration, &["but a folder of", &fixture.path().display().to_string()]);
}

#[tokio::test]
async fn an_empty_repository() {
    let fixture = Fixture::new();
    for url in [fixture.file_url(), fixture.path().display().to_string()] {
        check(&failure(&url, GitCredentials::None).await, ErrorKind::Configuration, &["has no commit", &url]);
    }
}

#[tokio::test]
async fn unknown_revisions_and_folders() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    let tip = fixture.commit("one", &[("a.yaml", Some("1"))]);
    let url = fixture.path().display().to_string();
    let repository = open(&url, state.path()).await;
    for revision in ["0123456789012345678901234567890123456789", "nonsense", Revision::WORKTREE] {
        let error = repository.snapshot(&Revision::from(revision)).await.expect_err("unknown");
        check(&error, ErrorKind::Configuration, &["failed to find revision", revision]);
    }
    let mut options = options(&url, state.path());
    options.path = "deploy".to_owned();
    let repository = ConfigRepository::open(options).await.expect("open");
    let error = repository.snapshot(&tip).await.expect_err("no folder");
    check(&error, ErrorKind::Configuration, &["failed to find folder `deploy`", tip.short()]);
}

#[tokio::test]
async fn closed_port_is_unreachable() {
    let port = closed_port().await;
    for url in [
        format!("http://127.0.0.1:{port}/a/b.git"),
        format!("https://li:s3cr3t@127.0.0.1:{port}/a/b.git"),
        format!("ssh://git@127.0.0.1:{port}/a/b.git"),
    ] {
        let error = failure(&url, GitCredentials::Token(SecretString::from("s3cr3t"))).await;
        check(&error, ErrorKind::Unreachable, &["failed to reach", &format!("127.0.0.1:{port}")]);
    }
    let error = failure("http://no-such-host.invalid/a.git", GitCredentials::None).await;
    check(
        &error,
        ErrorKind::Unreachable,
        &["failed to resolve the host of http://no-such-host.invalid/a.git"],
    );
}

#[tokio::test]
async fn credentials_are_refused() {
    let address = server(StatusCode::UNAUTHORIZED).await;
    let url = format!("http://{address}/a/b.git");
    let error = failure(&url, GitCredentials::None).await;
    check(&error, ErrorKind::Authentication, &["none are configured"]);
    let token = || GitCredentials::Token(SecretString::from("s3cr3t"));
    check(&failure(&url, token()).await, ErrorKind::Authentication, &["refused"]);
    let with_password = format!("http://li:s3cr3t@{address}/a/b.git");
    check(&failure(&with_password, GitCredentials::None).await, ErrorKind::Authentication, &[&url]);
    let ssh_key = GitCredentials::SshKey { key: "/nowhere".into(), known_hosts: None };
    check(&failure(&url, ssh_key).await, ErrorKind::Authentication, &["needs a token"]);
    let forbidden = server(StatusCode::FORBIDDEN).await;
    check(&failure(&format!("http://{forbidden}/a.git"), token()).await, ErrorKind::Authentication, &["403"]);
}

#[tokio::test]
async fn the_server_has_another_answer() {
    let missing = server(StatusCode::NOT_FOUND).await;
    let error = failure(&format!("http://{missing}/a.git"), GitCredentials::None).await;
    check(&error, ErrorKind::Configuration, &["failed to find a repository at"]);
    let busy = server(StatusCode::SERVICE_UNAVAILABLE).await;
    check(
        &failure(&format!("http://{busy}/a.git"), GitCredentials::None).await,
        ErrorKind::Transient,
        &["503"],
    );
    // Plain http where TLS is expected.
    let error = failure(&format!("https://{missing}/a.git"), GitCredentials::None).await;
    check(&error, ErrorKind::Authentication, &["certificate"]);
}

#[tokio::test]
async fn silent_server_times_out() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let url = format!("http://{}/a.git", listener.local_addr().expect("address"));
    let state = tempfile::tempdir().expect("state");
    let opened = ConfigRepository::open_with(options(&url, state.path()), Duration::from_millis(100)).await;
    let error = opened.expect("open").fetch().await.expect_err("silent");
    check(&error, ErrorKind::Unreachable, &["no answer", &url]);
}

#[tokio::test]
async fn address_with_a_slip_is_shown_without_credentials() {
    let error = failure("https:/li:s3cr3t@git.example.invalid/a.git", GitCredentials::None).await;
    assert!(error.to_string().contains("https:/git.example.invalid/a.git"), "{error}");
    assert!(!error.to_string().contains("s3cr3t"), "{error}");
    for url in ["https://li:s3cr3t@git.example.invalid/a", "https:/li:s3cr3t@git.example.invalid/a"] {
        let error = read_folder(url.as_ref(), |_, _| Vec::new()).expect_err("no folder");
        assert!(error.to_string().contains("git.example.invalid/a: "), "{error}");
        assert!(!error.to_string().contains("s3cr3t"), "{error}");
    }
}
