//! A freeze on real servers: the second wave waits while the first finishes, a revert passes, and an override is a commit.

use jiff::{SignedDuration, Timestamp};

use super::support::LiveFixture;
use super::waves::{APP, component, fixture_with_rings, until_running};

const FREEZE: &str = "policies/freeze.yaml";
/// The time that pods must be ready before they count.
const VALUES: &str = "apps/web/layer/values.yaml";

/// From yesterday to tomorrow.
fn freeze() -> String {
    let day = SignedDuration::from_hours(24);
    let at = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M").to_string();
    let (from, to) = (at(Timestamp::now() - day), at(Timestamp::now() + day));
    format!(
        "apiVersion: tutti.dev/v1alpha1
kind: Window
metadata: {{name: freeze}}
spec: {{action: deny, from: {from}, to: {to}, timeZone: UTC, reason: year end, override: [release-managers]}}
"
    )
}

fn push_version(scene: &LiveFixture, version: &str) -> String {
    scene.worktree.write(APP, &component(scene.name(), version, ""));
    scene.worktree.publish(&format!("web {version}"))
}

/// Held units do not start; a start could not be undone.
async fn assert_unchanged(scene: &LiveFixture, name: &str, expected: &[&str]) {
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    until_running(scene, name, expected).await;
}

const SHUT_MESSAGES: [&str; 2] = ["window freeze is shut until ", "release-managers may override"];

#[tokio::test]
async fn a_freeze_holds_the_second_wave_until_overridden() {
    let Some(scene) = fixture_with_rings("windows", "").await else { return };
    scene.worktree.write(VALUES, "minReadySeconds: 15\n");
    let first = push_version(&scene, "1.0");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    let second = push_version(&scene, "1.1");
    let held = ["1.1 x2", "1.1 x2", "1.0 x2", "1.0 x2"];
    until_running(&scene, "web", &held).await;
    scene.worktree.write(FREEZE, &freeze());
    scene.worktree.publish("freeze");
    // It begins while the first wave changes.
    scene.until_status(&second, "deploy/test", "pending", &[]).await;
    // The first wave finishes, and the second waits, also in another process.
    scene.until_status(&second, "deploy/test", "success", &[]).await;
    scene.until_status(&second, "deploy/prod", "pending", &SHUT_MESSAGES).await;
    assert_unchanged(&scene, "web", &held).await;
    scene.kill();
    scene.delete_state();
    scene.start(&[]).await;
    scene.until_status(&second, "deploy/prod", "pending", &SHUT_MESSAGES).await;
    assert_unchanged(&scene, "web", &held).await;

    // A revert passes at once.
    scene.worktree.git(&["revert", "--no-edit", &second]);
    scene.worktree.push();
    let back = ["1.0 x2", "1.0 x2", "1.0 x2", "1.0 x2"];
    until_running(&scene, "web", &back).await;

    // The next version starts nowhere until it is overridden.
    let third = push_version(&scene, "1.2");
    scene.until_status(&third, "deploy/test", "pending", &SHUT_MESSAGES).await;
    assert_unchanged(&scene, "web", &back).await;
    let command =
        ["approve", "rollout", &format!("{}/web", scene.name()), "--override", "freeze", "--commit"];
    let ended = scene.run(&scene.local_arguments(&command, &[])).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let written = scene.worktree.git(&["show", "--stat", "--format=%s", "HEAD"]);
    assert!(written.contains("in spite of window freeze") && written.contains("approvals/"), "{written}");
    assert_unchanged(&scene, "web", &back).await;
    scene.worktree.push();
    scene.until_succeeded(&third).await;
    until_running(&scene, "web", &["1.2 x2", "1.2 x2", "1.2 x2", "1.2 x2"]).await;
}
