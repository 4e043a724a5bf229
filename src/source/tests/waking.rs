//! The watch, by a paused clock and by real references.

use std::time::Duration;

use tokio::time::Instant;

use super::fixture::{Fixture, open};
use crate::source::{RepositoryWatch, WakeReason};

const MINUTE: Duration = Duration::from_secs(60);

/// Within the jitter of what is expected.
#[track_caller]
fn check(since: Instant, expected: Duration) {
    let waited = since.elapsed();
    assert!(
        waited >= expected.mul_f64(0.9) && waited <= expected.mul_f64(1.1),
        "{waited:?} for {expected:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn polls_at_the_interval_with_jitter() {
    let mut watch = RepositoryWatch::polling(MINUTE, 7);
    let mut waits = Vec::new();
    for _ in 0..20 {
        let since = Instant::now();
        assert_eq!(watch.next().await, WakeReason::Poll);
        check(since, MINUTE);
        waits.push(since.elapsed());
    }
    waits.dedup();
    assert!(waits.len() > 10, "no jitter: {waits:?}");
}

#[tokio::test(start_paused = true)]
async fn hooks_slow_polling_until_silence() {
    let mut watch = RepositoryWatch::polling(MINUTE, 7);
    let waker = watch.control();
    let start = Instant::now();
    waker.record_hook();
    assert_eq!(watch.next().await, WakeReason::Poll);
    check(start, 5 * MINUTE);
    assert_eq!(watch.next().await, WakeReason::Poll);
    check(start, 10 * MINUTE);
    // Ten minutes after the last hook.
    let since = Instant::now();
    assert_eq!(watch.next().await, WakeReason::Poll);
    assert!(since.elapsed() <= MINUTE.mul_f64(2.2), "{:?}", since.elapsed());
    let since = Instant::now();
    assert_eq!(watch.next().await, WakeReason::Poll);
    check(since, MINUTE);
}

#[tokio::test(start_paused = true)]
async fn a_new_interval_holds_at_once() {
    let mut watch = RepositoryWatch::polling(60 * MINUTE, 7);
    let waker = watch.control();
    let since = Instant::now();
    tokio::spawn(async move {
        tokio::time::sleep(MINUTE).await;
        waker.set_interval(MINUTE * 2);
    });
    assert_eq!(watch.next().await, WakeReason::Poll);
    check(since, MINUTE * 2);
}

/// Real time: the operating system tells.
async fn moves(watch: &mut RepositoryWatch) -> Option<WakeReason> {
    tokio::time::timeout(Duration::from_secs(5), watch.next()).await.ok()
}

async fn stays_quiet(watch: &mut RepositoryWatch) -> bool {
    tokio::time::timeout(Duration::from_millis(300), watch.next()).await.is_err()
}

#[tokio::test]
async fn a_commit_in_a_local_repository_wakes_once() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    fixture.commit("one", &[("a.yaml", Some("1"))]);
    let repository = open(&fixture.path().display().to_string(), state.path()).await;
    let mut watch = repository.watch(60 * MINUTE, 7);
    assert!(stays_quiet(&mut watch).await);
    let two = fixture.commit("two", &[("a.yaml", Some("2"))]);
    assert_eq!(moves(&mut watch).await, Some(WakeReason::Changed));
    // Reading it does not wake again.
    assert_eq!(repository.fetch().await, Ok(two.clone()));
    repository.snapshot(&two).await.expect("snapshot");
    assert!(stays_quiet(&mut watch).await);
    fixture.commit_on("refs/heads/side/deep", &[], "side", &[("a.yaml", Some("2"))]);
    assert_eq!(moves(&mut watch).await, Some(WakeReason::Changed));
    fixture.repository.set_head("refs/heads/side/deep").expect("head");
    assert_eq!(moves(&mut watch).await, Some(WakeReason::Changed));
    std::fs::write(fixture.path().join("a.yaml"), "edited").expect("write");
    std::fs::write(fixture.path().join(".git/index"), "x").expect("write");
    assert!(stays_quiet(&mut watch).await, "the worktree does not matter");
}

#[tokio::test]
async fn a_linked_worktree_wakes_too() {
    let fixture = Fixture::new();
    let state = tempfile::tempdir().expect("state");
    fixture.commit("one", &[("a.yaml", Some("1"))]);
    let folder = state.path().join("linked");
    fixture.repository.worktree("linked", &folder, None).expect("worktree");
    let repository = open(&folder.display().to_string(), state.path()).await;
    let base = fixture.tip("main");
    assert_eq!(repository.fetch().await.expect("fetch").as_str(), base[0].to_string());
    let mut watch = repository.watch(60 * MINUTE, 7);
    let next = fixture.commit_on("refs/heads/linked", &base, "two", &[("a.yaml", Some("2"))]);
    assert_eq!(moves(&mut watch).await, Some(WakeReason::Changed));
    assert_eq!(repository.fetch().await, Ok(next));
}
