//! One request fails, in each possible way: the result is the same state.

use std::collections::BTreeMap;
use std::time::Duration;

use sandbox::{Fault, RequestMatch};

use crate::support::fleet::TestFleet;
use crate::support::live_objects;
use crate::support::manifests::{component, config_map, deployment, namespace, objects_app};

const MAPS_FILE: &str = "apps/settings/objects/maps.yaml";

fn fleet() -> TestFleet {
    let maps: String = ["one", "two"].map(|name| config_map("infra", name, "first")).join("---\n");
    TestFleet::new(
        &["bj1"],
        &[
            ("apps/platform/app.yaml", &objects_app("infra", "platform")),
            ("apps/platform/objects/namespace.yaml", &namespace("infra")),
            ("apps/settings/app.yaml", &objects_app("infra", "settings")),
            (MAPS_FILE, &maps),
            ("apps/web/app.yaml", &component("web", "registry.example.com/web:1")),
        ],
    )
}

/// A first run and a change, with one fault. Returns the final state and the number of requests.
async fn run_with_fault(skip: usize, fault: Option<Fault>) -> (BTreeMap<String, String>, usize) {
    let fleet = fleet();
    let bj1 = fleet.cluster("bj1");
    if let Some(fault) = fault {
        bj1.fail_nth(RequestMatch::any(), skip, fault);
    }
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let maps: String = [("two", "second"), ("three", "first")]
        .map(|(name, value)| config_map("infra", name, value))
        .join("---\n");
    let web = component("web", "registry.example.com/web:2");
    let revision =
        fleet.push(&running, "Second", &[(MAPS_FILE, Some(&maps)), ("apps/web/app.yaml", Some(&web))]).await;
    running.until_converged(&revision).await;
    // Long enough to detect a lost watch.
    tokio::time::sleep(Duration::from_secs(60)).await;
    running.until_converged(&revision).await;
    let requests = bj1.requests().len();
    let state = live_objects::comparable_objects(bj1).await;
    let text = |value: serde_json::Value| fleet.repository.with_subjects(&value.to_string());
    (state.into_iter().map(|(id, value)| (id, text(value))).collect(), requests)
}

/// Every `step`-th request fails, one in each run.
async fn check_fault(fault: Fault, step: usize) {
    let (expected, requests) = run_with_fault(0, None).await;
    assert!(requests > 40, "{requests}");
    for skip in (0..requests).step_by(step) {
        let (found, _) = run_with_fault(skip, Some(fault.clone())).await;
        assert_eq!(found, expected, "request {skip} failed: {fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn connection_lost_before_request_converges() {
    check_fault(Fault::DropBefore, 2).await;
}

#[tokio::test(start_paused = true)]
async fn connection_lost_before_response_converges() {
    check_fault(Fault::DropAfter, 1).await;
}

#[tokio::test(start_paused = true)]
async fn server_error_converges() {
    check_fault(Fault::internal_error(), 3).await;
}

#[tokio::test(start_paused = true)]
async fn busy_server_converges() {
    check_fault(Fault::too_many_requests(2), 3).await;
}

#[tokio::test(start_paused = true)]
async fn slow_response_converges() {
    check_fault(Fault::Delay(Duration::from_secs(45)), 2).await;
}

/// A workload does not start with the old configuration.
#[tokio::test(start_paused = true)]
async fn later_phase_waits_for_the_failed_object() {
    let web =
        [config_map("default", "web", "first"), deployment("default", "web", "web", "web:1")].join("---\n");
    let files = [("apps/web/app.yaml", objects_app("default", "web")), ("apps/web/objects/web.yaml", web)];
    let fleet = TestFleet::new(&["bj1"], &files.each_ref().map(|(path, text)| (*path, text.as_str())));
    let bj1 = fleet.cluster("bj1");
    let writes = |resource: &str| bj1.count_requests(&RequestMatch::writes().resource(resource));
    bj1.fail_next(RequestMatch::writes().resource("configmaps"), 2, Fault::forbidden());
    let running = fleet.start().await;
    // The second try comes after 30 s, the third after another minute.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((writes("configmaps"), writes("deployments.apps")), (2, 0));
    running.until_converged(&fleet.first_commit).await;
    assert_eq!((writes("configmaps"), writes("deployments.apps")), (3, 1));
}
