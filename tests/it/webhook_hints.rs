//! Webhooks are hints: the commit is fetched, and fetched again until the repository has it.

use std::time::Duration;

use tokio::time::Instant;
use tutti::forge::WebhookHint;
use tutti::model::Revision;

use crate::support::fleet::TestFleet;
use crate::support::manifests::{component, config_map, objects_app};
use crate::support::repository::FileTextChange;

fn fleet() -> TestFleet {
    TestFleet::new(
        &["bj1"],
        &[
            ("apps/settings/app.yaml", &objects_app("default", "settings")),
            ("apps/settings/objects/one.yaml", &config_map("default", "one", "first")),
        ],
    )
}

/// A push as reported by a webhook.
pub fn push_hint(after: Option<&Revision>) -> WebhookHint {
    WebhookHint {
        receiver: "gitea".to_owned(),
        repository: Some("platform/config".to_owned()),
        reference: Some("refs/heads/main".to_owned()),
        after: after.map(ToString::to_string),
        ..WebhookHint::default()
    }
}

#[tokio::test(start_paused = true)]
async fn webhook_hint_triggers_a_fetch() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let text = component("web", "registry.example.com/web:1");
    let revision = fleet.repository.commit("An app", &[("apps/web/app.yaml", Some(&text))]);
    running.hint.send(push_hint(Some(&revision))).await.expect("it runs");
    running.until_converged(&revision).await;
}

#[tokio::test(start_paused = true)]
async fn early_hint_is_followed_until_the_commit_appears() {
    let text = component("web", "registry.example.com/web:1");
    let change: [FileTextChange<'_>; 1] = [("apps/web/app.yaml", Some(&text))];
    // Equal repositories have equal commits: the webhook names it before the repository has it.
    let ahead = fleet().repository.commit("An app", &change);
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    running.hint.send(push_hint(Some(&ahead))).await.expect("it runs");
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(fleet.repository.commit("An app", &change), ahead);
    let there = Instant::now();
    running.until("the commit", |now| now.revision.as_ref() == Some(&ahead)).await;
    assert!(there.elapsed() < Duration::from_secs(5), "{:?}", there.elapsed());
    running.until_converged(&ahead).await;
}

#[tokio::test(start_paused = true)]
async fn hint_about_unknown_commit_is_given_up() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let nowhere = Revision::from("0123456789012345678901234567890123456789");
    running.hint.send(push_hint(Some(&nowhere))).await.expect("it runs");
    tokio::time::sleep(Duration::from_secs(60)).await;
    // No further fetch: a commit without a hint waits for the poll.
    let text = component("web", "registry.example.com/web:1");
    fleet.repository.commit("An app", &[("apps/web/app.yaml", Some(&text))]);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(running.overview.borrow().revision.as_ref(), Some(&fleet.first_commit));
}
