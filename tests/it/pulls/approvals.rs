//! Approval rules: who must have approved the pull request that added an Approval.

use serde_json::{Value, json};
use tutti::forge::MergeMethod;
use tutti::manifest::approval_to_yaml;
use tutti::model::Revision;

use super::fixture::{PAY, PullRequestFixture, pay};
use super::promotions::until_merged;
use crate::support::fleet::deletion_causes;
use crate::support::forge::simulator::{ForgeFault, ForgePermission, ForgeSimulator, PullRequestView};
use crate::support::manifests::{config_map, objects_app};

const RINGS: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\n\
    spec: {rings: [{name: test, clusters: {names: [c1]}}, {name: prod, clusters: {names: [c2]}}]}\n";
const MANAGERS: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Approvers\nmetadata: {name: managers}\nspec: {users: [Ann, bob, li]}\n";

fn rule(spec: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: ApprovalRule\nmetadata: {{name: production}}\nspec: {{approvers: [managers], {spec}}}\n"
    )
}

/// `test` on c1, then `prod` on c2; ann and bob may write.
async fn fixture_with_rules(spec: &str, files: &[(&str, &str)]) -> PullRequestFixture {
    let rule = rule(spec);
    let all = [("rings.yaml", RINGS), ("policies/rule.yaml", &rule), ("policies/managers.yaml", MANAGERS)];
    let mut scene =
        PullRequestFixture::new_without_process(".", &["c1", "c2"], &[&all, files].concat()).await;
    for login in ["ann", "bob", "eve"] {
        scene.simulator.add_user(login, ForgePermission::Write);
    }
    // No rollout ends before somebody approves.
    scene.start().await;
    scene
}

/// The pull request that asks to open `prod`, except earlier ones.
async fn approval_request(scene: &PullRequestFixture, before: &[u64]) -> PullRequestView {
    let is_it = |pull: &PullRequestView| {
        pull.is_open && pull.branch.starts_with("tutti/approve/") && !before.contains(&pull.number)
    };
    scene.until("a pull request that asks", |now| now.pulls().iter().any(is_it)).await;
    let pull = scene.simulator.pulls().into_iter().find(is_it).expect("it is open");
    scene.until_planned(&pull.head).await;
    pull
}

async fn until_gate(scene: &PullRequestFixture, pull: &PullRequestView, expected: &str) {
    let says = |now: &ForgeSimulator| now.last_status(&pull.head, "tutti/gate/approvals") == expected;
    scene.until(expected, says).await;
    let state = expected.split(' ').next().unwrap_or_default();
    assert!(scene.simulator.last_status(&pull.head, "tutti/gate").starts_with(state), "{}", scene.describe());
}

async fn merge(scene: &PullRequestFixture, pull: &PullRequestView) -> Revision {
    let ann = scene.simulator.client("ann");
    ann.merge_pull(pull.number, MergeMethod::Merge, &pull.head).await.expect("merged");
    until_merged(scene, pull.number).await
}

fn prod_status(scene: &PullRequestFixture, commit: &Revision) -> String {
    scene.simulator.last_status(commit, "tutti/deploy/prod")
}

#[tokio::test(start_paused = true)]
async fn two_managers_who_did_not_write_it_open_production() {
    let mut scene =
        fixture_with_rules("actions: [rollout], select: {rings: [prod]}, count: 2", &[(PAY, &pay("v0"))])
            .await;
    // The first version waits too: there is no earlier one to keep.
    assert_eq!(scene.version("c2").await, "");
    let first = approval_request(&scene, &[]).await;
    until_gate(&scene, &first, "pending 0 of 2 approvals of managers, rule production").await;
    ["ann", "bob"].iter().for_each(|login| _ = scene.simulator.review(login, first.number, "APPROVED"));
    until_gate(&scene, &first, "success 2 of 2 approvals of managers, rule production").await;
    let merged = merge(&scene, &first).await;
    scene.running().until("v0 on prod", |now| now.revision.as_ref() == Some(&merged)).await;
    scene.running().until_converged(&merged).await;
    assert_eq!(scene.version("c2").await, "v0");

    let pushed = scene.push("main", &[(PAY, Some(&pay("v1")))]);
    let second = approval_request(&scene, &[first.number]).await;
    assert_eq!([scene.version("c1").await, scene.version("c2").await], ["v1", "v0"]);
    // A user who is no manager, and the author, who does not count.
    ["ann", "eve", "li"]
        .iter()
        .for_each(|login| _ = scene.simulator.review(login, second.number, "APPROVED"));
    until_gate(&scene, &second, "success 2 of 2 approvals of managers, rule production").await;
    merge(&scene, &second).await;
    let only_one = |now: &ForgeSimulator| {
        let text = now.last_status(&pushed, "tutti/deploy/prod");
        text.starts_with("pending ")
            && text.contains(
                "rule production requires 2 approvals of managers: ann approved it, li wrote the change",
            )
    };
    scene.until("that the author does not count", only_one).await;
    assert_eq!(scene.version("c2").await, "v0");

    // tutti asked once: a person asks again, and another process knows the request.
    let file = "approvals/default.pay.prod.yaml";
    let text = scene.simulator.file_text("main", file).expect("the Approval");
    scene.push("again", &[(file, Some(&format!("# Once more.\n{text}")))]);
    let number = scene.open("again").await;
    ["ann", "bob"].iter().for_each(|login| _ = scene.simulator.review(login, number, "APPROVED"));
    let third = scene.open_of("again").expect("it is open");
    scene.restart().await;
    let merged = merge(&scene, &third).await;
    scene.running().until_converged(&merged).await;
    assert_eq!(scene.version("c2").await, "v1");
    scene
        .until("the end of it", |now| now.last_status(&pushed, "tutti/deploy/prod").starts_with("success "))
        .await;
}

#[tokio::test(start_paused = true)]
async fn approval_that_nobody_reviewed_opens_nothing() {
    let scene =
        fixture_with_rules("actions: [rollout], select: {rings: [prod]}, count: 1", &[(PAY, &pay("v0"))])
            .await;
    let begin = scene.simulator.tip("main").expect("a tip");
    let pull = approval_request(&scene, &[]).await;
    // Pushed past the forge's reviews.
    let file = format!("approvals/{}.yaml", "default.pay.prod");
    let text = scene.simulator.file_text(&pull.branch, &file).expect("the Approval");
    let pushed = scene.push("main", &[(&file, Some(&text))]);
    scene.running().until("the push", |now| now.revision.as_ref() == Some(&pushed)).await;
    let lacks = |now: &ForgeSimulator| {
        now.last_status(&begin, "tutti/deploy/prod").contains("none of its approvers has approved it")
    };
    scene.until("that nobody approved it", lacks).await;
    scene.assert_no_requests(120).await;
    assert_eq!(scene.version("c2").await, "", "{}", prod_status(&scene, &begin));
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_forge_holds_and_is_retried() {
    let scene =
        fixture_with_rules("actions: [rollout], select: {rings: [prod]}, count: 1", &[(PAY, &pay("v0"))])
            .await;
    let begin = scene.simulator.tip("main").expect("a tip");
    let pull = approval_request(&scene, &[]).await;
    scene.simulator.review("ann", pull.number, "APPROVED");
    until_gate(&scene, &pull, "success 1 of 1 approval of managers, rule production").await;
    scene.simulator.fail_next("/reviews", usize::MAX, ForgeFault::Status(503));
    let merged = merge(&scene, &pull).await;
    scene.running().until("the merge", |now| now.revision.as_ref() == Some(&merged)).await;
    let is_held = |now: &ForgeSimulator| {
        let text = now.last_status(&begin, "tutti/deploy/prod");
        text.starts_with("pending ") && text.contains("its reviews are not read yet: ")
    };
    scene.until("that it is held", is_held).await;
    scene.assert_no_requests(180).await;
    assert!(is_held(&scene.simulator), "{}", prod_status(&scene, &begin));
    assert_eq!(scene.version("c2").await, "");
    // A command waits for an answer, and reports why there is none.
    let now = scene.read_only_overview().await;
    let held = now.rollouts[0].units.iter().filter_map(|unit| unit.hold.as_ref()).map(ToString::to_string);
    let held: Vec<String> = held.collect();
    assert!(
        held.iter().any(|it| it.contains("its reviews are not read yet: ") && it.contains("503")),
        "{held:?}"
    );
    // Reviewers are requested only once.
    let asks = scene.simulator.pulls().iter().filter(|it| it.branch.starts_with("tutti/approve/")).count();
    assert_eq!(asks, 1, "{:#?}", scene.simulator.pulls());
    scene.simulator.clear_faults();
    scene.running().until_converged(&merged).await;
    assert_eq!(scene.version("c2").await, "v0");
}

/// The merged content counts: Git may have merged two changes.
#[tokio::test(start_paused = true)]
async fn review_of_another_content_does_not_count() {
    let scene =
        fixture_with_rules("actions: [rollout], select: {rings: [prod]}, count: 1", &[(PAY, &pay("v0"))])
            .await;
    let begin = scene.simulator.tip("main").expect("a tip");
    let asks = approval_request(&scene, &[]).await;
    let file = "approvals/default.pay.prod.yaml";
    let approval = scene.simulator.file_text(&asks.branch, file).expect("the Approval");
    let text = |first: &str, last: &str| format!("# {first}\n{approval}# {last}\n");
    scene.push("main", &[(file, Some(&text("one", "two")))]);
    let again = async |branch: &str, first: &str| {
        scene.push(branch, &[(file, Some(&text(first, "two")))]);
        let number = scene.open(branch).await;
        scene.simulator.review("ann", number, "APPROVED");
        scene.open_of(branch).expect("it is open")
    };
    let pull = again("again", "once more").await;
    scene.push("main", &[(file, Some(&text("one", "three")))]);
    let merged = merge(&scene, &pull).await;
    assert_eq!(scene.simulator.file_text("main", file), Some(text("once more", "three")));
    scene.running().until("the merge", |now| now.revision.as_ref() == Some(&merged)).await;
    let lacks = |now: &ForgeSimulator| {
        now.last_status(&begin, "tutti/deploy/prod").contains("none of its approvers has approved it")
    };
    scene.until("that nobody approved it", lacks).await;
    scene.assert_no_requests(120).await;
    assert_eq!(scene.version("c2").await, "", "{}", prod_status(&scene, &begin));
    // A read-only command knows it too.
    let now = scene.read_only_overview().await;
    let held = now.rollouts[0].units.iter().filter_map(|unit| unit.hold.as_ref()).map(ToString::to_string);
    let held: Vec<String> = held.collect();
    assert!(held.iter().any(|it| it.contains("none of its approvers has approved it")), "{held:?}");
    // The missing approval may be added: reviewers are requested once for each head.
    let before = scene.simulator.requests().len();
    for version in ["a", "b"] {
        let pushed = scene.push("main", &[("README.md", Some(version))]);
        scene.running().until("the push", |now| now.revision.as_ref() == Some(&pushed)).await;
        scene.assert_no_requests(30).await;
        assert!(lacks(&scene.simulator), "{}", prod_status(&scene, &begin));
    }
    let reads = format!("/pulls/{}/reviews", pull.number);
    let read: Vec<String> =
        scene.simulator.requests()[before..].iter().filter(|line| line.contains(&reads)).cloned().collect();
    assert_eq!(read.len(), 2, "{read:?}");
}

const MAPS: &str = "apps/maps/objects/maps.yaml";

#[tokio::test(start_paused = true)]
async fn deletes_of_a_kind_wait_for_their_approval() {
    let two = format!("{}---\n{}", config_map("default", "one", "a"), config_map("default", "two", "a"));
    let one = config_map("default", "one", "a");
    let files = [("apps/maps/app.yaml", &*objects_app("default", "maps")), (MAPS, &*two)];
    let scene = fixture_with_rules("actions: [delete], kinds: [ConfigMap]", &files).await;
    scene.running().until_converged(&scene.simulator.tip("main").expect("a tip")).await;
    scene.push("main", &[(MAPS, Some(&one))]);
    let now = scene.running().until("a wish", |now| !now.approvals_wanted.is_empty()).await;
    let [wanted] = now.approvals_wanted.as_slice() else { panic!("{:?}", now.approvals_wanted) };
    assert!(now.deletions.iter().all(|it| it.waits), "{:?}", now.deletions);
    let is_asked = |cause: &Value| {
        let asks = json!({"rule": cause["rule"], "count": cause["count"], "approvers": cause["approvers"]});
        cause["code"] == "ruleAsks"
            && asks == json!({"rule": "production", "count": 1, "approvers": ["managers"]})
    };
    assert!(deletion_causes(&now).iter().all(is_asked), "{:?}", now.deletions);
    let text = approval_to_yaml(wanted);
    let branch = "approve";
    scene.push(branch, &[("approvals/two.yaml", Some(&text))]);
    let number = scene.open(branch).await;
    let pull = scene.open_of(branch).expect("it is open");
    scene.simulator.review("eve", number, "APPROVED");
    let merged = merge(&scene, &pull).await;
    let lacks = |now: &tutti::report::Overview| {
        now.revision.as_ref() == Some(&merged)
            && now.deletions.iter().any(|it| it.reason.contains("none of its approvers has approved it"))
    };
    scene.running().until("that it lacks one", lacks).await;
    scene.assert_no_requests(120).await;
    let exists = async |name: &str| {
        crate::support::live_objects::get(scene.fleet.cluster("c1"), "ConfigMap", "default", name)
            .await
            .is_some()
    };
    assert!(exists("two").await && exists("one").await);
    scene.push("main", &[("approvals/two.yaml", None)]);
    let branch = "again";
    scene.push(branch, &[("approvals/two.yaml", Some(&text))]);
    let number = scene.open(branch).await;
    scene.simulator.review("bob", number, "APPROVED");
    let merged = merge(&scene, &scene.open_of(branch).expect("it is open")).await;
    scene.running().until_converged(&merged).await;
    assert!(!exists("two").await && exists("one").await);
    // The file still exists; a later object of that name is another one.
    let back = scene.push("main", &[(MAPS, Some(&two))]);
    scene.running().until_converged(&back).await;
    let gone = scene.push("main", &[(MAPS, Some(&one))]);
    let waits = |now: &tutti::report::Overview| {
        let is_of_it = now.revision.as_ref() == Some(&gone) && !now.deletions.is_empty();
        is_of_it && now.deletions.iter().all(|it| it.waits)
    };
    scene.running().until("that it waits", waits).await;
    scene.assert_no_requests(60).await;
    assert!(exists("two").await);
}
