//! Approval rules on the real Gitea: who approved the pull request of an Approval, and who wrote the change.

use serde_json::json;

use super::support::{ForgeUsers, LiveFixture};
use super::waves::{APP, component, fixture_with_rings, until_running};

/// Two managers, of whom one writes.
const RULES: &str = "apiVersion: tutti.dev/v1alpha1
kind: ApprovalRule
metadata: {name: production}
spec: {select: {rings: [prod]}, actions: [rollout], approvers: [managers]}
---
apiVersion: tutti.dev/v1alpha1
kind: Approvers
metadata: {name: managers}
spec: {users: [approvals-ann, approvals-bob]}
";
const FREEZE: &str = "apiVersion: tutti.dev/v1alpha1
kind: Window
metadata: {name: freeze}
spec: {action: deny, select: {rings: [test]}, schedule: 0 0 * * *, duration: 24h, timeZone: UTC, override: [managers]}
";

/// A version by this author.
fn push_version(scene: &LiveFixture, version: &str, by: &str) -> String {
    scene.worktree.write(APP, &component(scene.name(), version, ""));
    scene.worktree.commit(&format!("web {version}"));
    let author = format!("{by} <{by}@example.com>");
    scene.worktree.git(&["commit", "--quiet", "--amend", "--no-edit", &format!("--author={author}")]);
    scene.worktree.push();
    scene.worktree.head()
}

async fn approve(people: &ForgeUsers<'_>, number: u64, head: &str, by: &str) {
    let approval = json!({"event": "APPROVED", "commit_id": head, "body": "good"});
    people.request("POST", &format!("/pulls/{number}/reviews?sudo={by}"), Some(&approval)).await;
}

/// The pull request that asks to open production for a commit.
async fn approval_request(scene: &LiveFixture, people: &ForgeUsers<'_>, commit: &str) -> (u64, String) {
    let (number, head) = people.until_opened(&format!("tutti/approve/{}/prod", &commit[..7])).await;
    scene.until_status(&head, "gate", "pending", &["0 of 1 approval of managers, rule production"]).await;
    (number, head)
}

async fn merge_when_approved(scene: &LiveFixture, people: &ForgeUsers<'_>, number: u64, head: &str) {
    people.merge(number, head).await;
    people.until_merged(number).await;
    scene.worktree.git(&["pull", "-q", "--rebase", &scene.gitea().remote(scene.name()), "main"]);
}

#[tokio::test]
async fn manager_who_did_not_write_it_opens_production() {
    let Some(scene) = fixture_with_rings("approvals", "").await else { return };
    let people = ForgeUsers::of(&scene);
    for name in ["approvals-ann", "approvals-bob", "approvals-dev"] {
        people.reviewer(name).await;
    }
    scene.worktree.write("policies/rules.yaml", RULES);
    let first = push_version(&scene, "1.0", "approvals-dev");
    scene.start(&[]).await;
    let (number, head) = approval_request(&scene, &people, &first).await;
    until_running(&scene, "web", &["1.0 x2", "1.0 x2", "-", "-"]).await;
    approve(&people, number, &head, "approvals-dev").await;
    approve(&people, number, &head, "approvals-ann").await;
    scene.until_status(&head, "gate", "success", &[]).await;
    merge_when_approved(&scene, &people, number, &head).await;
    scene.until_succeeded(&first).await;
    until_running(&scene, "web", &["1.0 x2"; 4]).await;

    // The author's own approval does not count, also in another process.
    let second = push_version(&scene, "1.1", "approvals-ann");
    let (number, head) = approval_request(&scene, &people, &second).await;
    approve(&people, number, &head, "approvals-ann").await;
    merge_when_approved(&scene, &people, number, &head).await;
    let lacks = "rule production requires 1 approval of managers: approvals-ann wrote the change";
    scene.until_status(&second, "deploy/prod", "pending", &[lacks]).await;
    scene.kill();
    scene.delete_state();
    scene.start(&[]).await;
    scene.until_status(&second, "deploy/prod", "pending", &[lacks]).await;
    until_running(&scene, "web", &["1.1 x2", "1.1 x2", "1.0 x2", "1.0 x2"]).await;

    // A revert needs nobody.
    scene.worktree.git(&["revert", "--no-edit", &second]);
    scene.worktree.push();
    until_running(&scene, "web", &["1.0 x2"; 4]).await;

    // Its role overrides a window, which is a commit.
    scene.worktree.write("policies/freeze.yaml", FREEZE);
    scene.worktree.publish("freeze");
    let third = push_version(&scene, "1.2", "approvals-dev");
    scene.until_status(&third, "deploy/test", "pending", &["window freeze is shut"]).await;
    scene.worktree.git(&["checkout", "-q", "-b", "override"]);
    let command = ["approve", "rollout", "approvals/web", "--override", "freeze", "--commit"];
    let ended = scene.run(&scene.local_arguments(&command, &[])).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    scene.worktree.push_branch("override");
    let head = scene.worktree.head();
    scene.worktree.git(&["checkout", "-q", "main"]);
    let number = people.open("override").await;
    scene.until_status(&head, "validate", "success", &[]).await;
    approve(&people, number, &head, "approvals-bob").await;
    until_running(&scene, "web", &["1.0 x2"; 4]).await;
    merge_when_approved(&scene, &people, number, &head).await;
    until_running(&scene, "web", &["1.2 x2", "1.2 x2", "1.0 x2", "1.0 x2"]).await;
}
