//! Approval rules on the real Gitea: who approved the pull request of an Approval, and who wrote the change.

use serde_json::json;

use super::support::{People, Scene};
use super::waves::{APP, come_to, component, scene};

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
fn push_version(scene: &Scene, version: &str, by: &str) -> String {
    scene.worktree.write(APP, &component(scene.name(), version, ""));
    scene.worktree.commit(&format!("web {version}"));
    let author = format!("{by} <{by}@example.com>");
    scene.worktree.git(&["commit", "--quiet", "--amend", "--no-edit", &format!("--author={author}")]);
    scene.worktree.push();
    scene.worktree.head()
}

async fn approve(people: &People<'_>, number: u64, head: &str, by: &str) {
    let approval = json!({"event": "APPROVED", "commit_id": head, "body": "good"});
    people.ask("POST", &format!("/pulls/{number}/reviews?sudo={by}"), Some(&approval)).await;
}

/// The pull request that asks to open production for a commit.
async fn asked(scene: &Scene, people: &People<'_>, commit: &str) -> (u64, String) {
    let (number, head) = people.opened(&format!("tutti/approve/{}/prod", &commit[..7])).await;
    scene.told(&head, "gate", "pending", &["0 of 1 approval of managers, rule production"]).await;
    (number, head)
}

async fn merged(scene: &Scene, people: &People<'_>, number: u64, head: &str) {
    people.merge(number, head).await;
    people.merged(number).await;
    scene.worktree.git(&["pull", "-q", "--rebase", &scene.gitea().remote(scene.name()), "main"]);
}

#[tokio::test]
async fn manager_who_did_not_write_it_opens_production() {
    let Some(scene) = scene("approvals", "").await else { return };
    let people = People::of(&scene);
    for name in ["approvals-ann", "approvals-bob", "approvals-dev"] {
        people.reviewer(name).await;
    }
    scene.worktree.write("policies/rules.yaml", RULES);
    let first = push_version(&scene, "1.0", "approvals-dev");
    scene.start(&[]).await;
    let (number, head) = asked(&scene, &people, &first).await;
    come_to(&scene, "web", &["1.0 x2", "1.0 x2", "-", "-"]).await;
    approve(&people, number, &head, "approvals-dev").await;
    approve(&people, number, &head, "approvals-ann").await;
    scene.told(&head, "gate", "success", &[]).await;
    merged(&scene, &people, number, &head).await;
    scene.succeeded(&first).await;
    come_to(&scene, "web", &["1.0 x2"; 4]).await;

    // The author's own approval does not count, also in another process.
    let second = push_version(&scene, "1.1", "approvals-ann");
    let (number, head) = asked(&scene, &people, &second).await;
    approve(&people, number, &head, "approvals-ann").await;
    merged(&scene, &people, number, &head).await;
    let lacks = "rule production requires 1 approval of managers: approvals-ann wrote the change";
    scene.told(&second, "deploy/prod", "pending", &[lacks]).await;
    scene.kill();
    scene.forget_state();
    scene.start(&[]).await;
    scene.told(&second, "deploy/prod", "pending", &[lacks]).await;
    come_to(&scene, "web", &["1.1 x2", "1.1 x2", "1.0 x2", "1.0 x2"]).await;

    // A revert needs nobody.
    scene.worktree.git(&["revert", "--no-edit", &second]);
    scene.worktree.push();
    come_to(&scene, "web", &["1.0 x2"; 4]).await;

    // Its role overrides a window, which is a commit.
    scene.worktree.write("policies/freeze.yaml", FREEZE);
    scene.worktree.publish("freeze");
    let third = push_version(&scene, "1.2", "approvals-dev");
    scene.told(&third, "deploy/test", "pending", &["window freeze is shut"]).await;
    scene.worktree.git(&["checkout", "-q", "-b", "override"]);
    let command = ["approve", "rollout", "approvals/web", "--override", "freeze", "--commit"];
    let ended = scene.run(&scene.local_arguments(&command, &[])).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    scene.worktree.push_branch("override");
    let head = scene.worktree.head();
    scene.worktree.git(&["checkout", "-q", "main"]);
    let number = people.open("override").await;
    scene.told(&head, "validate", "success", &[]).await;
    approve(&people, number, &head, "approvals-bob").await;
    come_to(&scene, "web", &["1.0 x2"; 4]).await;
    merged(&scene, &people, number, &head).await;
    come_to(&scene, "web", &["1.2 x2", "1.2 x2", "1.0 x2", "1.0 x2"]).await;
}
