//! A forge that the operator named, and that an attacker controls.

use std::time::Duration;

use super::super::fixture::HostileFixture;
use super::server::{HostilePeer, PeerAnswer, answer_head, endless_answer, whole_answer};

/// The healthy cluster gets its commits while the forge answers so; the log names it.
async fn check_forge_answer(
    answer: impl Fn(&str, &[u8]) -> PeerAnswer + Send + Sync + 'static,
    says: &[&str],
) -> HostilePeer {
    let forge = HostilePeer::start(answer).await;
    let mut arena = HostileFixture::new().await;
    let text = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\nspec:\n  \
         forge: {{type: gitea, url: \"{}\", repository: a/b, credentials: {{token: {{env: TUTTI_SECRET_TOKEN}}}}}}\n",
        forge.url()
    );
    arena.repository.commit("Report", &[("tutti.yaml", Some(&text))]);
    arena.start_process(&["--forge-host", "127.0.0.1"], |command| {
        command.env("TUTTI_SECRET_TOKEN", "t0ken");
    });
    forge.until_asked().await;
    arena.check_healthy_app().await;
    // Some more answers arrive meanwhile.
    tokio::time::sleep(Duration::from_secs(3)).await;
    arena.check_healthy_app().await;
    for words in says {
        arena.until_logged(words).await;
    }
    forge
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_without_end_is_cut() {
    check_forge_answer(|_, _| endless_answer("200 OK"), &["more than 4194304 bytes"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusal_without_end_is_cut() {
    check_forge_answer(|_, _| endless_answer("500 Internal Server Error"), &["more than 4194304 bytes"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_without_end_are_cut() {
    let first = b"HTTP/1.1 200 OK\r\n".to_vec();
    check_forge_answer(
        move |_, _| PeerAnswer::Endless(first.clone(), b"x-more: and more\r\n".to_vec()),
        &["cannot be reached"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dripping_answer_is_given_up() {
    check_forge_answer(|_, _| PeerAnswer::Drip(answer_head("200 OK"), b" ".to_vec()), &["cannot be reached"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dripping_headers_are_given_up() {
    let first = b"HTTP/1.1 200 OK\r\nx-more: ".to_vec();
    check_forge_answer(move |_, _| PeerAnswer::Drip(first.clone(), b"a".to_vec()), &["cannot be reached"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_follows_no_redirect() {
    let thief = HostilePeer::start(|_, _| whole_answer("200 OK", "", b"{}")).await;
    let location = format!("location: {}/elsewhere\r\n", thief.url());
    check_forge_answer(move |_, _| whole_answer("307 Temporary Redirect", &location, b""), &["status 307"])
        .await;
    assert_eq!(thief.request_heads(), Vec::<String>::new());
}
