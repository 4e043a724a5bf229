//! A remote whose branch is reset: an outdated copy for a moment, or a deliberate reset.

use std::time::Duration;

use tutti::controller::ManifestOrigin;
use tutti::model::Revision;
use tutti::source::{ConfigRepository, SourceOptions};

use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet};
use crate::support::live_objects::managed_names;
use crate::support::log::CapturedLog;
use crate::support::manifests::{config_map, objects_app};
use crate::webhook_hints::push_hint;

const NON_FAST_FORWARD_WARNING: &str = "the branch no longer contains the last commit";

/// A controller that has read two commits of a remote; the second adds an object.
async fn start_with_two_commits() -> (TestFleet, RunningController, tempfile::TempDir, [Revision; 2]) {
    let (app, one) = (objects_app("default", "settings"), config_map("default", "one", "first"));
    let fleet = TestFleet::new(
        &["bj1"],
        &[("apps/settings/app.yaml", &app), ("apps/settings/objects/one.yaml", &one)],
    );
    let state = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", fleet.repository.path().display());
    let options = SourceOptions { url, state_folder: state.path().to_owned(), ..fleet.repository.options() };
    let origin = ManifestOrigin::Repository(ConfigRepository::open(options).await.expect("a remote"));
    let running = fleet.start_from_origin(origin, &ProcessConnections::unlimited(), |_| {});
    running.until_converged(&fleet.first_commit).await;
    let two = config_map("default", "two", "first");
    let second = fleet.push(&running, "Two", &[("apps/settings/objects/two.yaml", Some(&two))]).await;
    running.until_converged(&second).await;
    let begin = fleet.first_commit.clone();
    (fleet, running, state, [begin, second])
}

#[tokio::test(start_paused = true)]
async fn short_non_fast_forward_changes_nothing() {
    let (fleet, running, _state, [first, second]) = start_with_two_commits().await;
    let (before, log) = (managed_names(fleet.cluster("bj1")).await, CapturedLog::capture());
    fleet.clear_requests();
    fleet.repository.reset(&first);
    running.wake.send(()).await.expect("it runs");
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(running.overview.borrow().revision.as_ref(), Some(&second));
    fleet.repository.reset(&second);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(running.overview.borrow().revision.as_ref(), Some(&second));
    assert_eq!(log.count(NON_FAST_FORWARD_WARNING), 1, "{}", log.text());
    assert!(fleet.requests().iter().all(|(_, request)| !request.is_write()), "nothing is written");
    assert_eq!(managed_names(fleet.cluster("bj1")).await, before);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn minute_long_non_fast_forward_is_followed() {
    let (fleet, running, _state, [first, _]) = start_with_two_commits().await;
    fleet.repository.reset(&first);
    let begin = tokio::time::Instant::now();
    running.wake.send(()).await.expect("it runs");
    running.until_converged(&first).await;
    assert!(begin.elapsed() >= Duration::from_secs(60), "{:?}", begin.elapsed());
    assert!(begin.elapsed() < Duration::from_secs(90), "{:?}", begin.elapsed());
    assert!(!managed_names(fleet.cluster("bj1")).await.iter().any(|name| name.contains("two")));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn webhook_commit_is_followed_immediately() {
    let (fleet, running, _state, [first, _]) = start_with_two_commits().await;
    fleet.repository.reset(&first);
    let begin = tokio::time::Instant::now();
    running.hint.send(push_hint(Some(&first))).await.expect("it runs");
    running.until_converged(&first).await;
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    running.stop().await;
}
