//! A remote whose branch is reset: an outdated copy for a moment, or a deliberate reset.

use std::time::Duration;

use tutti::controller::ManifestOrigin;
use tutti::model::Revision;
use tutti::source::{ConfigRepository, SourceOptions};

use crate::support::fleet::{Fleet, Running};
use crate::support::live;
use crate::support::log::Log;
use crate::support::manifests::{config_map, objects};
use crate::support::wires::Wires;
use crate::waking::hint;

const WORDS: &str = "the branch no longer contains the last commit";

/// A controller that has read two commits of a remote; the second adds an object.
async fn two_commits() -> (Fleet, Running, tempfile::TempDir, [Revision; 2]) {
    let (app, one) = (objects("default", "settings"), config_map("default", "one", "first"));
    let fleet =
        Fleet::new(&["bj1"], &[("apps/settings/app.yaml", &app), ("apps/settings/objects/one.yaml", &one)]);
    let state = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", fleet.repository.path().display());
    let options = SourceOptions { url, state_folder: state.path().to_owned(), ..fleet.repository.options() };
    let origin = ManifestOrigin::Repository(ConfigRepository::open(options).await.expect("a remote"));
    let running = fleet.start_from(origin, &Wires::lasting(), |_| {});
    running.converged(&fleet.begin).await;
    let two = config_map("default", "two", "first");
    let second = fleet.push(&running, "Two", &[("apps/settings/objects/two.yaml", Some(&two))]).await;
    running.converged(&second).await;
    let begin = fleet.begin.clone();
    (fleet, running, state, [begin, second])
}

async fn names(fleet: &Fleet) -> Vec<String> {
    live::managed(fleet.cluster("bj1")).await.into_keys().collect()
}

#[tokio::test(start_paused = true)]
async fn short_non_fast_forward_changes_nothing() {
    let (fleet, running, _state, [first, second]) = two_commits().await;
    let (before, log) = (names(&fleet).await, Log::keep());
    fleet.forget_requests();
    fleet.repository.reset(&first);
    running.wake.send(()).await.expect("it runs");
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(running.overview.borrow().revision.as_ref(), Some(&second));
    fleet.repository.reset(&second);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(running.overview.borrow().revision.as_ref(), Some(&second));
    assert_eq!(log.count(WORDS), 1, "{}", log.text());
    assert!(fleet.requests().iter().all(|(_, request)| !request.is_write()), "nothing is written");
    assert_eq!(names(&fleet).await, before);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn minute_long_non_fast_forward_is_followed() {
    let (fleet, running, _state, [first, _]) = two_commits().await;
    fleet.repository.reset(&first);
    let begin = tokio::time::Instant::now();
    running.wake.send(()).await.expect("it runs");
    running.converged(&first).await;
    assert!(begin.elapsed() >= Duration::from_secs(60), "{:?}", begin.elapsed());
    assert!(begin.elapsed() < Duration::from_secs(90), "{:?}", begin.elapsed());
    assert!(!names(&fleet).await.iter().any(|name| name.contains("two")));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn webhook_commit_is_followed_immediately() {
    let (fleet, running, _state, [first, _]) = two_commits().await;
    fleet.repository.reset(&first);
    let begin = tokio::time::Instant::now();
    running.hint.send(hint(Some(&first))).await.expect("it runs");
    running.converged(&first).await;
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    running.stop().await;
}
