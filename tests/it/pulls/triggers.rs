//! Triggers: one value of one file, as a pull request, as a commit, or as a hint only.

use axum::http::StatusCode;
use serde_json::json;
use tutti::api::WrittenChange;

use super::fixture::{PAY, PIN, PullRequestFixture, pay};
use crate::support::ci::CiBuild;
use crate::support::forge::simulator::ForgeFault;

const PINNED: &str = "# The version of prod.\nversion: v1  # by tutti\n";

/// Accepts Drone's builds of tags, and writes as configured.
const DRONE_TRIGGER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Trigger\nmetadata: {name: drone}\nspec:\n  receiver: drone\n  \
     match: {build.status: success, build.event: tag, repo.slug: shop/pay}\n  \
     set: {app: \"{{ repo.name }}\", version: \"{{ build.ref | strip_ref }}\", ring: prod}\n  action: {write: WRITE}\n";

async fn trigger_fixture(write: &str) -> PullRequestFixture {
    let of_drone = DRONE_TRIGGER.replace("WRITE", write);
    let trigger = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Trigger\nmetadata: {{name: ci}}\nspec:\n  token: {{secretRef: {{env: TUTTI_SECRET_CI}}}}\n  \
         set: {{app: \"{{{{ app }}}}\", version: \"{{{{ version }}}}\", ring: prod}}\n  action: {{write: {write}}}\n"
    );
    let rings = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\n\
                 spec: {rings: [{name: prod, clusters: {names: [c1]}}]}\n";
    let files = [
        ("triggers/ci.yaml", &*trigger),
        ("triggers/drone.yaml", &*of_drone),
        ("rings.yaml", rings),
        (PAY, &*pay("v1")),
        (PIN, PINNED),
    ];
    PullRequestFixture::new_started(&["c1"], &files).await
}

#[tokio::test(start_paused = true)]
async fn a_call_opens_one_pull_request() {
    let scene = trigger_fixture("pull-request").await;
    let first = scene.call("ci", &json!({"app": "pay", "version": "v2"})).await.expect("written");
    let pulls = scene.simulator.pulls();
    assert_eq!(pulls.len(), 1);
    let branch = pulls[0].branch.clone();
    assert_eq!(branch, "tutti/trigger/ci/default.pay.prod");
    assert_eq!(scene.simulator.file_text(&branch, PIN).as_deref(), Some(&*PINNED.replace("v1", "v2")));
    assert_eq!(scene.simulator.file_text("main", PIN).as_deref(), Some(PINNED));
    assert!(first.link.as_ref().is_some_and(|link| link.ends_with("/pulls/1")), "{first:?}");
    // It is planned like any other.
    scene.until_settled(&pulls[0].head).await;
    assert_eq!(scene.simulator.last_status(&pulls[0].head, "tutti/gate"), "success no promotion");

    let again = scene.call("ci", &json!({"app": "pay", "version": "v2"})).await;
    assert_eq!(again, Ok(first.clone()));
    assert_eq!(scene.simulator.pulls(), pulls);

    assert_eq!(scene.call("ci", &json!({"app": "pay", "version": "v3"})).await, Ok(first));
    let now = scene.simulator.pulls();
    assert_eq!((now.len(), now[0].number), (1, 1));
    assert!(now[0].title.contains("v3"), "{}", now[0].title);
    assert_eq!(scene.simulator.file_text(&branch, PIN).as_deref(), Some(&*PINNED.replace("v1", "v3")));
}

#[tokio::test(start_paused = true)]
async fn a_call_commits_where_it_may() {
    let scene = trigger_fixture("commit").await;
    let before = scene.simulator.tip("main").expect("a tip");
    let written = scene.call("ci", &json!({"app": "pay", "version": "v2"})).await.expect("written");
    let tip = scene.simulator.tip("main").expect("a tip");
    assert_eq!(written, WrittenChange { link: None, commit: Some(tip.to_string()) });
    assert_eq!(scene.simulator.parents(&tip), [before.as_str()]);
    assert_eq!(scene.simulator.file_text("main", PIN).as_deref(), Some(&*PINNED.replace("v1", "v2")));
    assert_eq!(scene.simulator.pulls(), []);
    scene.running().until_converged(&tip).await;
    assert_eq!(scene.version("c1").await, "v2");
    // A repeated call changes nothing.
    assert_eq!(scene.call("ci", &json!({"app": "pay", "version": "v2"})).await, Ok(WrittenChange::default()));
    assert_eq!(scene.simulator.tip("main"), Some(tip));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_only_told_writes_nothing() {
    let scene = trigger_fixture("none").await;
    scene.assert_no_requests(30).await;
    let requests = scene.simulator.requests().len();
    assert_eq!(scene.call("ci", &json!({"app": "pay", "version": "v2"})).await, Ok(WrittenChange::default()));
    scene.assert_no_requests(5).await;
    assert_eq!(scene.writes_since(requests), Vec::<String>::new());
}

// The forge fails for a while; a write with a lost answer is not repeated.
#[tokio::test(start_paused = true)]
async fn a_call_comes_through_a_forge_that_fails() {
    for fault in [ForgeFault::Status(502), ForgeFault::LostAnswer, ForgeFault::RateLimit(5)] {
        for request in
            ["POST /api/v1/repos/platform/config/contents", "POST /api/v1/repos/platform/config/pulls"]
        {
            let scene = trigger_fixture("pull-request").await;
            scene.simulator.fail_next(request, 1, fault);
            let written = scene.call("ci", &json!({"app": "pay", "version": "v2"})).await.expect("written");
            assert!(written.link.is_some(), "{fault:?} {request}");
            let pulls = scene.simulator.pulls();
            assert_eq!(
                pulls.iter().filter(|pull| pull.is_open).count(),
                1,
                "{fault:?} {request}: {pulls:#?}"
            );
        }
    }
}

const BRANCH: &str = "tutti/trigger/drone/default.pay.prod";

fn tag(version: &str) -> CiBuild {
    CiBuild::of_tag("shop/pay", 12, version)
}

/// Accepted deliveries that are not done.
fn pending_deliveries(scene: &PullRequestFixture) -> usize {
    std::fs::read_dir(scene.deliveries()).map_or(0, Iterator::count)
}

fn proposed_version(scene: &PullRequestFixture) -> Option<String> {
    scene.open_of(BRANCH)?;
    scene.simulator.file_text(BRANCH, PIN)
}

// After each request of a delivery: its sender got success and does not send it again.
#[tokio::test(start_paused = true)]
async fn accepted_delivery_is_written_by_the_next_process() {
    for requests in 0.. {
        let mut scene = trigger_fixture("pull-request").await;
        scene.assert_no_requests(5).await;
        scene.simulator.stop_after_writes(requests);
        assert_eq!(scene.deliver_drone_build(&tag("v2")).await, StatusCode::ACCEPTED);
        let is_done =
            |scene: &PullRequestFixture| pending_deliveries(scene) == 0 && proposed_version(scene).is_some();
        scene
            .until("the end of the process, or of its work", |now| now.is_unresponsive() || is_done(&scene))
            .await;
        let was_done = is_done(&scene);
        assert!(was_done || pending_deliveries(&scene) == 1, "after {requests}: nothing waits");
        scene.kill().await;
        scene.simulator.clear_faults();
        scene.start().await;
        scene.until("a pull request", |_| is_done(&scene)).await;
        assert_eq!(proposed_version(&scene), Some(PINNED.replace("v1", "v2")), "after {requests}");
        assert_eq!(scene.simulator.pulls().len(), 1, "after {requests}: {}", scene.describe());
        if was_done {
            assert!(requests >= 4, "only {requests} requests");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_deliveries_for_a_trigger_are_stored() {
    let mut scene = trigger_fixture("pull-request").await;
    for other in [
        CiBuild { status: "failure".to_owned(), ..tag("v2") },
        CiBuild { repository: "shop/cart".to_owned(), ..tag("v2") },
    ] {
        assert_eq!(scene.deliver_drone_build(&other).await, StatusCode::ACCEPTED);
    }
    assert!(!scene.deliveries().exists(), "nothing was written");
    // The disk is full, for example.
    std::fs::create_dir_all(scene.deliveries().parent().expect("a parent")).expect("made");
    std::fs::write(scene.deliveries(), "").expect("written");
    assert_eq!(scene.deliver_drone_build(&tag("v2")).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(scene.deliver_drone_build(&CiBuild::of_tag("shop/cart", 1, "v2")).await, StatusCode::ACCEPTED);
    std::fs::remove_file(scene.deliveries()).expect("removed");
    // A delivery before the first read of the repository may be needed.
    scene.restart().await;
    assert!(scene.running().head.borrow().is_none());
    assert_eq!(scene.deliver_drone_build(&tag("v2")).await, StatusCode::ACCEPTED);
    assert_eq!(scene.deliver_drone_build(&CiBuild::of_tag("shop/cart", 1, "v2")).await, StatusCode::ACCEPTED);
    scene
        .until("a pull request", |_| proposed_version(&scene).is_some() && pending_deliveries(&scene) == 0)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_delivery_waits_unless_a_later_one_arrives() {
    let scene = trigger_fixture("pull-request").await;
    scene.simulator.fail_next("POST /api/v1/repos/platform/config/contents", 20, ForgeFault::Status(502));
    assert_eq!(scene.deliver_drone_build(&tag("v2")).await, StatusCode::ACCEPTED);
    scene.assert_no_requests(600).await;
    assert_eq!((proposed_version(&scene), pending_deliveries(&scene)), (None, 1));
    scene.simulator.clear_faults();
    assert_eq!(scene.deliver_drone_build(&tag("v3")).await, StatusCode::ACCEPTED);
    scene
        .until("a pull request", |_| proposed_version(&scene).is_some() && pending_deliveries(&scene) == 0)
        .await;
    scene.assert_no_requests(900).await;
    assert_eq!(
        proposed_version(&scene),
        Some(PINNED.replace("v1", "v3")),
        "the earlier one does not come later"
    );
    assert_eq!(scene.simulator.pulls().len(), 1);
}

const WRITES: &str = "POST /api/v1/repos/platform/config/contents";

#[tokio::test(start_paused = true)]
async fn delivery_does_not_overwrite_what_is_newer() {
    let mut scene = trigger_fixture("commit").await;
    let pinned = |version: &str| PINNED.replace("v1", version);
    // A person pushes while the forge accepts nothing.
    scene.simulator.fail_next(WRITES, 20, ForgeFault::Status(502));
    assert_eq!(scene.deliver_drone_build(&tag("v2")).await, StatusCode::ACCEPTED);
    scene.assert_no_requests(200).await;
    assert_eq!(pending_deliveries(&scene), 1);
    scene.push("main", &[(PIN, Some(&pinned("v9")))]);
    scene.simulator.clear_faults();
    scene.until("an end", |_| pending_deliveries(&scene) == 0).await;
    assert_eq!(scene.simulator.file_text("main", PIN), Some(pinned("v9")));
    // A process returns to stored deliveries, and another one has written since.
    scene.simulator.fail_next(WRITES, 20, ForgeFault::Status(502));
    assert_eq!(scene.deliver_drone_build(&tag("v3")).await, StatusCode::ACCEPTED);
    scene.assert_no_requests(5).await;
    scene.kill().await;
    scene.simulator.clear_faults();
    scene.simulator.advance_clock();
    let tip = scene.push("main", &[(PIN, Some(&pinned("v10")))]);
    scene.start().await;
    scene.until("an end", |_| pending_deliveries(&scene) == 0).await;
    assert_eq!(scene.simulator.tip("main"), Some(tip));
}

#[tokio::test(start_paused = true)]
async fn a_later_delivery_follows_a_late_write() {
    let scene = trigger_fixture("commit").await;
    scene.simulator.advance_clock();
    scene.simulator.fail_next(WRITES, 1, ForgeFault::LostAnswer);
    for version in ["v2", "v3"] {
        assert_eq!(scene.deliver_drone_build(&tag(version)).await, StatusCode::ACCEPTED);
        let expected = Some(PINNED.replace("v1", version));
        scene.until(version, |now| now.file_text("main", PIN) == expected).await;
    }
    scene.until("an end", |_| pending_deliveries(&scene) == 0).await;
}

#[tokio::test(start_paused = true)]
async fn delivery_waits_for_a_token_that_is_taken() {
    for refusal in [401, 403] {
        let scene = trigger_fixture("pull-request").await;
        scene.assert_no_requests(5).await;
        let asked = |scene: &PullRequestFixture| {
            scene.simulator.requests().iter().filter(|line| line.starts_with("GET /api/v1/user")).count()
        };
        let before = asked(&scene);
        scene.simulator.fail_next(WRITES, 1, ForgeFault::Status(refusal));
        assert_eq!(scene.deliver_drone_build(&tag("v2")).await, StatusCode::ACCEPTED);
        scene.assert_no_requests(30).await;
        assert_eq!((proposed_version(&scene), pending_deliveries(&scene)), (None, 1), "{refusal}");
        assert_eq!(asked(&scene), before + 1, "{refusal}: the connection is opened anew");
        scene
            .until("a pull request", |_| {
                proposed_version(&scene).is_some() && pending_deliveries(&scene) == 0
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn deliveries_wait_for_a_mistake_in_the_instance() {
    let mut scene = trigger_fixture("pull-request").await;
    scene.simulator.fail_next(WRITES, 20, ForgeFault::Status(502));
    assert_eq!(scene.deliver_drone_build(&tag("v2")).await, StatusCode::ACCEPTED);
    scene.assert_no_requests(5).await;
    scene.kill().await;
    scene.simulator.clear_faults();
    let instance = scene.simulator.file_text("main", "tutti.yaml").expect("a file");
    scene.push("main", &[("tutti.yaml", Some(&instance.replace("type: gitea", "type: none")))]);
    scene.start().await;
    scene.until("a head", |_| scene.running().head.borrow().is_some()).await;
    scene.assert_no_requests(200).await;
    assert_eq!(scene.deliver_drone_build(&tag("v3")).await, StatusCode::ACCEPTED);
    scene.assert_no_requests(200).await;
    assert_eq!((proposed_version(&scene), pending_deliveries(&scene)), (None, 2));
    scene.push("main", &[("tutti.yaml", Some(&instance))]);
    scene.tell_of_push();
    scene
        .until("a pull request", |_| proposed_version(&scene).is_some() && pending_deliveries(&scene) == 0)
        .await;
    assert_eq!(proposed_version(&scene), Some(PINNED.replace("v1", "v3")));
}

#[tokio::test(start_paused = true)]
async fn a_delivery_ends_only_after_its_write() {
    for is_refused in [true, false] {
        let scene = trigger_fixture("pull-request").await;
        scene.simulator.fail_next(WRITES, 20, ForgeFault::Status(502));
        assert_eq!(scene.deliver_drone_build(&tag("v2")).await, StatusCode::ACCEPTED);
        scene.assert_no_requests(150).await;
        assert_eq!((proposed_version(&scene), pending_deliveries(&scene)), (None, 1));
        scene.simulator.clear_faults();
        if is_refused {
            scene.simulator.fail_next(WRITES, 1, ForgeFault::Status(400));
        }
        let called = scene.call("ci", &json!({"app": "pay", "version": "v3"})).await;
        assert_eq!(called.is_err(), is_refused, "{called:?}");
        scene.until("an end", |_| pending_deliveries(&scene) == 0).await;
        scene.assert_no_requests(600).await;
        let expected = is_refused.then(|| PINNED.replace("v1", "v2"));
        assert_eq!(proposed_version(&scene), expected, "of the delivery");
        assert_eq!(scene.open_of("tutti/trigger/ci/default.pay.prod").is_some(), !is_refused);
    }
}
