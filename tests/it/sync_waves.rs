//! Objects of an app are applied wave by wave, as annotated, and deleted in reverse.

use std::time::Duration;

use sandbox::{Fault, RequestMatch, SandboxOptions};
use serde_json::json;
use tutti::report::TargetPhase;

use crate::support::fleet::{RunningController, TestFleet, target};
use crate::support::live_objects;
use crate::support::manifests::{self, config_map, deployment, objects_app};

const APP: &str = "apps/shop/app.yaml";
const MANIFESTS: &str = "apps/shop/objects/all.yaml";

/// With the annotation of Argo CD, or with ours.
fn in_wave(manifest: &str, annotation: &str, wave: i16) -> String {
    let place = format!("namespace: default, annotations: {{{annotation}: \"{wave}\"}}}}\n");
    let made = manifest.replacen("namespace: default}\n", &place, 1);
    assert_ne!(made, manifest);
    made
}

fn shop_manifests(store: &str, settings: &str) -> String {
    let image = |name: &str| format!("registry.example.com/{name}");
    let web = deployment("default", "web", "web", &image("web:1"));
    [
        in_wave(&web, "tutti.dev/sync-wave", 2),
        in_wave(&config_map("default", "settings", settings), "argocd.argoproj.io/sync-wave", 1),
        in_wave(&deployment("default", "store", "store", &image(store)), "tutti.dev/sync-wave", -1),
    ]
    .join("---\n")
}

fn fleet_of(shop: &str) -> TestFleet {
    fleet_with(&["bj1"], shop, &[], |name| SandboxOptions::instant(name))
}

fn fleet_with(
    clusters: &[&str],
    shop: &str,
    more: &[(&str, &str)],
    options: fn(&str) -> SandboxOptions,
) -> TestFleet {
    let instance = manifests::INSTANCE.replace("{}", "{caps: {deletes: 100, deletePercent: 100}}");
    let (app, other) = (objects_app("default", "shop"), objects_app("default", "other"));
    let own = config_map("default", "own", "first");
    let files = [
        ("tutti.yaml", &*instance),
        (APP, &*app),
        (MANIFESTS, shop),
        ("apps/other/app.yaml", &*other),
        ("apps/other/objects/own.yaml", &*own),
    ];
    TestFleet::with_options(clusters, &[&files[..], more].concat(), options)
}

/// Applies and deletes of the shop's objects, in order.
fn shop_writes(fleet: &TestFleet) -> Vec<String> {
    let requests = fleet.requests().into_iter();
    let writes = requests.filter(|(_, it)| matches!(it.verb.as_str(), "apply" | "delete"));
    let shop = writes.filter(|(_, it)| it.name != "own");
    shop.map(|(_, it)| format!("{} {}", it.verb, it.name)).collect()
}

async fn check_lasting_detail(
    fleet: &TestFleet,
    running: &RunningController,
    phase: TargetPhase,
    words: &str,
) {
    let is_said = |now: &tutti::report::Overview| {
        let shop = target(now, "bj1", "default/shop");
        shop.phase == phase && shop.detail.contains(words)
    };
    running.until(words, |now| !now.targets.is_empty() && is_said(now)).await;
    // The state lasts: no later wave is written.
    tokio::time::sleep(Duration::from_secs(1_200)).await;
    assert!(is_said(&running.overview.borrow()), "{:?}", shop_writes(fleet));
}

#[tokio::test(start_paused = true)]
async fn unhealthy_wave_holds_the_later_waves() {
    let fleet = fleet_of(&shop_manifests("store:broken", "first"));
    let running = fleet.start().await;
    check_lasting_detail(&fleet, &running, TargetPhase::Degraded, "store").await;
    assert_eq!(shop_writes(&fleet), ["apply store"]);

    let revision =
        fleet.push(&running, "Mended", &[(MANIFESTS, Some(&shop_manifests("store:2", "first")))]).await;
    running.until_converged(&revision).await;
    assert_eq!(shop_writes(&fleet), ["apply store", "apply store", "apply settings", "apply web"]);

    fleet.clear_requests();
    let changed = shop_manifests("store:broken", "second");
    fleet.push(&running, "Both change", &[(MANIFESTS, Some(&changed))]).await;
    check_lasting_detail(&fleet, &running, TargetPhase::Degraded, "store").await;
    assert_eq!(shop_writes(&fleet), ["apply store"]);
    // An object that exists as rendered waits for nothing.
    let bj1 = fleet.cluster("bj1");
    live_objects::scale_as(bj1, "kubectl", "web", 5).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(shop_writes(&fleet), ["apply store", "apply web"]);
    let revision =
        fleet.push(&running, "Mended", &[(MANIFESTS, Some(&shop_manifests("store:3", "second")))]).await;
    running.until_converged(&revision).await;
    assert_eq!(shop_writes(&fleet)[2..], ["apply store", "apply settings"]);
}

#[tokio::test(start_paused = true)]
async fn last_wave_is_deleted_first() {
    let fleet = fleet_of(&shop_manifests("store:1", "first"));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let revision = fleet.push(&running, "Without the shop", &[(APP, None), (MANIFESTS, None)]).await;
    running.until_converged(&revision).await;
    assert_eq!(shop_writes(&fleet), ["delete web", "delete settings", "delete store"]);
    let left = live_objects::managed_objects(fleet.cluster("bj1")).await;
    assert_eq!(left.into_keys().collect::<Vec<_>>(), ["ConfigMap default/own"]);
}

/// An operator that starts in a minute, and an object of its kind: Git has no definition of it.
fn operator_and_account() -> String {
    let operator = deployment("default", "operator", "operator", "registry.example.com/operator:1");
    let account = "\
apiVersion: example.com/v1
kind: Account
metadata: {name: seven, namespace: default}
spec: {plan: small}
";
    format!("{operator}---\n{}", in_wave(account, "tutti.dev/sync-wave", 1))
}

fn slow_pod_options(name: &str) -> SandboxOptions {
    let minute = Duration::from_secs(60);
    SandboxOptions { pod_start: (minute, minute), ..SandboxOptions::instant(name) }
}

#[tokio::test(start_paused = true)]
async fn wave_may_define_kinds_of_the_next() {
    let fleet = fleet_with(&["bj1"], &operator_and_account(), &[], slow_pod_options);
    let running = fleet.start().await;
    let mut overview = running.overview.clone();
    let seen = tokio::spawn(async move {
        let mut seen = Vec::new();
        while overview.changed().await.is_ok() {
            let now = overview.borrow_and_update().clone();
            seen.extend(now.targets.iter().map(|it| (it.app.to_string(), it.phase, it.detail.clone())));
        }
        seen
    });
    running.until("it starts", |now| shop_phase(now) == Some(TargetPhase::Progressing)).await;
    running.until("it runs", |now| shop_phase(now) == Some(TargetPhase::Waiting)).await;
    let words = target(&running.overview.borrow(), "bj1", "default/shop").detail.clone();
    assert_eq!(
        words,
        "Account default/seven: example.com/v1/Account is not served yet, an earlier sync wave may define it"
    );
    let definition = manifests::definition("example.com", "v1", "Account");
    live_objects::create_as(fleet.cluster("bj1"), "operator", &definition).await;
    running.until_converged(&fleet.first_commit).await;
    assert!(live_objects::get(fleet.cluster("bj1"), "Account", "default", "seven").await.is_some());
    running.stop().await;
    let refused: Vec<_> = seen
        .await
        .expect("it ends")
        .into_iter()
        .filter(|(_, phase, _)| *phase == TargetPhase::Refused)
        .collect();
    assert_eq!(refused, [], "nobody has to do anything");
}

fn shop_phase(overview: &tutti::report::Overview) -> Option<TargetPhase> {
    overview.targets.iter().find(|it| it.app.to_string() == "default/shop").map(|it| it.phase)
}

#[tokio::test(start_paused = true)]
async fn kind_that_no_wave_defines_is_refused() {
    let fleet = fleet_with(&["bj1"], &operator_and_account(), &[], slow_pod_options);
    let running = fleet.start().await;
    check_lasting_detail(
        &fleet,
        &running,
        TargetPhase::Refused,
        "the cluster does not serve example.com/v1/Account",
    )
    .await;
    assert_eq!(shop_writes(&fleet), ["apply operator"]);
}

/// Each wave waits for its own missing kinds, however long earlier waves took.
#[tokio::test(start_paused = true)]
async fn each_wave_waits_for_its_own_kinds() {
    let widget = "\
apiVersion: example.org/v1
kind: Widget
metadata: {name: eight, namespace: default}
spec: {size: 1}
";
    let all = format!("{}---\n{}", operator_and_account(), in_wave(widget, "tutti.dev/sync-wave", 2));
    let fleet = fleet_with(&["bj1"], &all, &[], slow_pod_options);
    let running = fleet.start().await;
    running.until("the operator runs", |now| shop_phase(now) == Some(TargetPhase::Waiting)).await;
    for (group, kind, name) in [("example.com", "Account", "seven"), ("example.org", "Widget", "eight")] {
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(shop_phase(&running.overview.borrow()), Some(TargetPhase::Waiting), "for {kind}");
        let definition = manifests::definition(group, "v1", kind);
        live_objects::create_as(fleet.cluster("bj1"), "operator", &definition).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(shop_writes(&fleet).contains(&format!("apply {name}")), "{kind}");
    }
    running.until_converged(&fleet.first_commit).await;
}

/// An object that was missing before its wave may have been created by others meanwhile.
#[tokio::test(start_paused = true)]
async fn waiting_object_is_looked_up_before_its_write() {
    let fleet = fleet_of(&config_map("default", "zero", "first"));
    let bj1 = fleet.cluster("bj1");
    let at = Duration::from_secs(30);
    live_objects::silence_watches(bj1, "configmaps", at);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    tokio::time::sleep(at).await;
    // The first attempt does not reach the cluster and the second response is lost: only a lookup finds the object.
    let applies = || RequestMatch::any().verb("apply").name("first");
    bj1.fail_nth(applies(), 0, Fault::DropBefore);
    bj1.fail_nth(applies(), 1, Fault::DropAfter);
    let second = in_wave(&config_map("default", "second", "ours"), "tutti.dev/sync-wave", 1);
    let both = format!("{}---\n{second}", config_map("default", "first", "ours"));
    fleet.push(&running, "Two waves", &[(MANIFESTS, Some(&both))]).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    live_objects::create_as(bj1, "kubectl", &config_map("default", "second", "ours")).await;
    check_lasting_detail(&fleet, &running, TargetPhase::Refused, "ConfigMap default/second").await;
    let second = live_objects::get(bj1, "ConfigMap", "default", "second").await.expect("it is theirs");
    assert_eq!(second["metadata"]["labels"], serde_json::Value::Null);
}

/// Waves order only objects of their own app: an operator in a late wave is deleted after the objects it cleans up.
#[tokio::test(start_paused = true)]
async fn removed_cluster_is_emptied_by_phases() {
    let operator = deployment("default", "operator", "operator", "registry.example.com/operator:1");
    let account = "\
apiVersion: example.com/v1
kind: Account
metadata: {name: seven, namespace: default, finalizers: [example.com/clean-up]}
spec: {plan: small}
";
    let definition = manifests::definition("example.com", "v1", "Account");
    let platform = objects_app("default", "platform");
    let fleet = fleet_with(
        &["bj1", "gz1"],
        &in_wave(&operator, "tutti.dev/sync-wave", 5),
        &[
            ("apps/platform/app.yaml", &platform),
            ("apps/platform/objects/account.yaml", &format!("{definition}---\n{account}")),
        ],
        |name| SandboxOptions::instant(name),
    );
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let cluster = manifests::cluster("bj1").replace("spec: {", "spec: {state: Removed, ");
    fleet.push(&running, "Without the cluster", &[("clusters/bj1.yaml", Some(&cluster))]).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(shop_writes(&fleet), ["delete seven"]);
    let bj1 = fleet.cluster("bj1");
    let finalizers = json!({"metadata": {"finalizers": null}});
    live_objects::edit_as(bj1, "operator", ("Account", "seven"), &finalizers).await;
    running.until("it goes", |_| shop_writes(&fleet).len() > 1).await;
    assert_eq!(shop_writes(&fleet), ["delete seven", "delete operator"]);
}
