//! Triggers: one value of one file, as a pull request, as a commit, or only told.

use serde_json::json;
use tutti::api::Written;

use super::scene::{PAY, PIN, Scene, pay};

const PINNED: &str = "# The version of prod.\nversion: v1  # by tutti\n";

async fn scene(write: &str) -> Scene {
    let trigger = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Trigger\nmetadata: {{name: ci}}\nspec:\n  token: {{secretRef: {{env: TUTTI_SECRET_CI}}}}\n  \
         set: {{app: \"{{{{ app }}}}\", version: \"{{{{ version }}}}\", ring: prod}}\n  action: {{write: {write}}}\n"
    );
    let rings = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\n\
                 spec: {rings: [{name: prod, clusters: {names: [c1]}}]}\n";
    let files = [("triggers/ci.yaml", &*trigger), ("rings.yaml", rings), (PAY, &*pay("v1")), (PIN, PINNED)];
    Scene::begin(&["c1"], &files).await
}

#[tokio::test(start_paused = true)]
async fn a_call_opens_one_pull_request_with_one_changed_line() {
    let scene = scene("pull-request").await;
    let first = scene.call("ci", &json!({"app": "pay", "version": "v2"})).await.expect("written");
    let pulls = scene.simulator.pulls();
    assert_eq!(pulls.len(), 1);
    let branch = pulls[0].branch.clone();
    assert_eq!(branch, "tutti/trigger/ci/default.pay.prod");
    assert_eq!(scene.simulator.text(&branch, PIN).as_deref(), Some(&*PINNED.replace("v1", "v2")));
    assert_eq!(scene.simulator.text("main", PIN).as_deref(), Some(PINNED));
    assert!(first.link.as_ref().is_some_and(|link| link.ends_with("/pulls/1")), "{first:?}");
    // It is looked at as any other.
    scene.settled(&pulls[0].head).await;
    assert_eq!(scene.simulator.last(&pulls[0].head, "tutti/gate"), "success no promotion");

    let again = scene.call("ci", &json!({"app": "pay", "version": "v2"})).await;
    assert_eq!(again, Ok(first.clone()));
    assert_eq!(scene.simulator.pulls(), pulls);

    assert_eq!(scene.call("ci", &json!({"app": "pay", "version": "v3"})).await, Ok(first));
    let now = scene.simulator.pulls();
    assert_eq!((now.len(), now[0].number), (1, 1));
    assert!(now[0].title.contains("v3"), "{}", now[0].title);
    assert_eq!(scene.simulator.text(&branch, PIN).as_deref(), Some(&*PINNED.replace("v1", "v3")));
}

#[tokio::test(start_paused = true)]
async fn a_call_commits_where_it_may() {
    let scene = scene("commit").await;
    let before = scene.simulator.tip("main").expect("a tip");
    let written = scene.call("ci", &json!({"app": "pay", "version": "v2"})).await.expect("written");
    let tip = scene.simulator.tip("main").expect("a tip");
    assert_eq!(written, Written { link: None, commit: Some(tip.to_string()) });
    assert_eq!(scene.simulator.parents(&tip), [before.as_str()]);
    assert_eq!(scene.simulator.text("main", PIN).as_deref(), Some(&*PINNED.replace("v1", "v2")));
    assert_eq!(scene.simulator.pulls(), []);
    scene.running().converged(&tip).await;
    assert_eq!(scene.version("c1").await, "v2");
    // The same again changes nothing.
    assert_eq!(scene.call("ci", &json!({"app": "pay", "version": "v2"})).await, Ok(Written::default()));
    assert_eq!(scene.simulator.tip("main"), Some(tip));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_only_told_writes_nothing() {
    let scene = scene("none").await;
    scene.quiet(30).await;
    let requests = scene.simulator.requests().len();
    assert_eq!(scene.call("ci", &json!({"app": "pay", "version": "v2"})).await, Ok(Written::default()));
    scene.quiet(5).await;
    assert_eq!(scene.writes_since(requests), Vec::<String>::new());
}

// A forge that fails for a while; what was done without an answer is not done twice.
#[tokio::test(start_paused = true)]
async fn a_call_comes_through_a_forge_that_fails() {
    use crate::support::forge::simulator::Fault;
    for fault in [Fault::Status(502), Fault::LostAnswer, Fault::RateLimit(5)] {
        for request in
            ["POST /api/v1/repos/platform/config/contents", "POST /api/v1/repos/platform/config/pulls"]
        {
            let scene = scene("pull-request").await;
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
