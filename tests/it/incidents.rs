//! Incidents of other systems, each as its scenario: here nothing is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::api::DeleteParams;
use sandbox::{Fault, FaultEffect, FaultPlan, FaultRule, Release, RequestMatch, Sandbox, SandboxOptions};
use serde_json::Value;
use tutti::report::Overview;

use crate::cluster_registry::{RegistryFleet, kubeconfig_data};

use crate::support::fleet::{TestFleet, deletion_causes};
use crate::support::live_objects;
use crate::support::manifests::{self, component, config_map, objects_app};

const APP: &str = "apps/settings/app.yaml";
const MAPS_FILE: &str = "apps/settings/objects/maps.yaml";
const WEB_APP: &str = "apps/web/app.yaml";

fn maps(names: &[&str]) -> String {
    names.iter().map(|name| config_map("default", name, "first")).collect::<Vec<_>>().join("---\n")
}

/// Two clusters, each with two maps, a Deployment and a Service: few enough that no cap applies.
fn fleet_with(app: &str) -> TestFleet {
    TestFleet::new(
        &["bj1", "gz1"],
        &[
            (APP, app),
            (MAPS_FILE, &maps(&["one", "two"])),
            (WEB_APP, &component("web", "registry.example.com/web:1")),
        ],
    )
}

fn fleet() -> TestFleet {
    fleet_with(&objects_app("default", "settings"))
}

/// UIDs of all our objects on all clusters: equal UIDs mean that nothing was recreated.
async fn object_uids(fleet: &TestFleet) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for (name, sandbox) in &fleet.clusters {
        for (id, object) in live_objects::managed_objects(sandbox).await {
            all.insert(format!("{name} {id}"), object["metadata"]["uid"].clone());
        }
    }
    all
}

fn delete_count(fleet: &TestFleet) -> usize {
    let delete = RequestMatch::any().verb("delete");
    fleet.clusters.values().map(|sandbox| sandbox.count_requests(&delete)).sum()
}

/// Names of all objects with a delete request, also a failed one.
fn deleted_names(fleet: &TestFleet) -> BTreeSet<String> {
    let all = fleet.clusters.values().flat_map(Sandbox::requests);
    all.filter(|it| it.verb == "delete").map(|it| it.name).collect()
}

/// Asserts that exactly these objects are gone.
async fn assert_only_deleted(fleet: &TestFleet, gone: &[&str], before: &BTreeMap<String, Value>) {
    let mut expected = before.clone();
    expected.retain(|id, _| !gone.iter().any(|gone| id.ends_with(&format!("/{gone}"))));
    assert_ne!(expected.len(), before.len(), "something is to go");
    assert_eq!(object_uids(fleet).await, expected);
    assert_eq!(deleted_names(fleet), gone.iter().map(ToString::to_string).collect());
}

async fn wait_for_late_effects() {
    tokio::time::sleep(Duration::from_secs(180)).await;
}

/// The same fleet, one cluster with streaming lists and one without.
fn fleet_with_and_without_streams() -> TestFleet {
    let options: fn(&str) -> SandboxOptions = |name| {
        let minor = if name == "gz1" { 36 } else { 31 };
        SandboxOptions::instant(name).running(Release::new(minor).expect("a release"))
    };
    let app = objects_app("default", "settings");
    let web = component("web", "registry.example.com/web:1");
    TestFleet::with_options(
        &["bj1", "gz1"],
        &[(APP, &app), (MAPS_FILE, &maps(&["one", "two"])), (WEB_APP, &web)],
        options,
    )
}

/// argo-cd #18480: listing the clusters failed once, a generator took that for an empty list, and every application was
/// deleted with its objects.
#[tokio::test(start_paused = true)]
async fn argo_18480_failed_list_is_not_empty() {
    let failing = |verb: &str| FaultRule::failing(RequestMatch::any().verb(verb), Fault::internal_error());
    let (lists, watches) = (failing("list"), failing("watch"));
    // After a failed stream, pages are tried: both must fail.
    check_no_deletes_during_faults("gz1", &FaultPlan::new(1).rule(lists.clone()).rule(watches)).await;
    check_no_deletes_during_faults("bj1", &FaultPlan::new(1).rule(lists)).await;
}

/// As above with lists that break off: a partial list taken for a complete one would delete the rest.
#[tokio::test(start_paused = true)]
async fn argo_18480_truncated_list_is_not_complete() {
    let watches = || RequestMatch::any().verb("watch");
    let torn = FaultRule::new(watches(), FaultEffect::WatchTorn { most: 2 });
    // By then it is known which kinds have objects on the cluster.
    let later = Duration::from_secs(1)..Duration::from_secs(3600);
    let pages = FaultRule::failing(RequestMatch::any().verb("list"), Fault::internal_error()).within(later);
    check_no_deletes_during_faults("gz1", &FaultPlan::new(1).rule(torn).rule(pages.clone())).await;
    let (shortest, longest) = (Duration::ZERO, Duration::ZERO);
    let silent = FaultRule::new(watches(), FaultEffect::WatchSilent { shortest, longest });
    check_no_deletes_during_faults("gz1", &FaultPlan::new(1).rule(silent).rule(pages)).await;
}

/// A commit deletes an object; a new process applies it while one cluster has these faults.
async fn check_no_deletes_during_faults(cluster: &str, plan: &FaultPlan) {
    let fleet = fleet_with_and_without_streams();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    running.stop().await;
    let before = object_uids(&fleet).await;

    let fewer = fleet.repository.commit("One map less", &[(MAPS_FILE, Some(&maps(&["one"])))]);
    fleet.cluster(cluster).set_faults(plan);
    let running = fleet.start().await;
    wait_for_late_effects().await;
    assert_eq!(delete_count(&fleet), 0, "nothing goes anywhere before every cluster was read");
    fleet.cluster(cluster).set_faults(&FaultPlan::new(1));
    running.until_converged(&fewer).await;
    assert_eq!((delete_count(&fleet), object_uids(&fleet).await.len()), (2, before.len() - 2));
}

/// argo-cd #18480 with existing clusters and a selector that matches none of them.
#[tokio::test(start_paused = true)]
async fn argo_18480_selector_without_clusters_deletes_nothing() {
    let placed = "spec: {placement: {clusters: {matchLabels: {environment: prod}}}, ";
    let fleet = fleet_with(&objects_app("default", "settings").replace("spec: {", placed));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let before = object_uids(&fleet).await;
    let clusters = ["bj1", "gz1"].map(|name| {
        (
            format!("clusters/{name}.yaml"),
            manifests::cluster(name).replace("environment: prod", "environment: production"),
        )
    });
    let changes: Vec<_> = clusters.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    fleet.push(&running, "Another word for it", &changes).await;
    let now = running.until("deletes that wait", |now| now.deletions.len() == 4).await;
    assert!(deletion_causes(&now).iter().all(|cause| cause["code"] == "placedNowhere"), "{now:?}");
    wait_for_late_effects().await;
    assert_eq!((delete_count(&fleet), object_uids(&fleet).await), (0, before));
}

/// argo-cd #18480 as it happened: the clusters come from a registry, and the process runs. A commit deletes an object
/// meanwhile: it is deleted everywhere, and no cluster counts as removed.
#[tokio::test(start_paused = true)]
async fn argo_18480_failing_registry_keeps_its_clusters() {
    let failing = || FaultRule::failing(RequestMatch::any().verb("list"), Fault::internal_error());
    let watches = || RequestMatch::any().verb("watch");
    let cut = FaultEffect::WatchCut { shortest: Duration::from_secs(1), longest: Duration::from_secs(5) };
    let expired =
        FaultEffect::WatchExpired { shortest: Duration::from_secs(1), longest: Duration::from_secs(5) };
    let streams = FaultRule::failing(watches(), Fault::unavailable());
    let troubles = [
        // The watch is lost and the list fails.
        FaultPlan::new(1).rule(failing()).rule(streams).rule(FaultRule::new(watches(), expired.clone())),
        // Each list breaks off.
        FaultPlan::new(2)
            .rule(failing())
            .rule(FaultRule::new(watches(), expired))
            .rule(FaultRule::new(watches(), FaultEffect::WatchTorn { most: 1 })),
        FaultPlan::new(3).rule(failing()).rule(FaultRule::new(watches(), cut)),
    ];
    for (number, trouble) in troubles.into_iter().enumerate() {
        let (scene, before) = registered_fleet().await;
        let fleet = &scene.fleet;
        let running = scene.start().await;
        running.until_converged(&fleet.first_commit).await;
        scene.home.set_faults(&trouble);
        scene.home.compact();
        scene.home.cut_watches();
        wait_for_late_effects().await;
        fleet.push(&running, "One map less", &[("apps/settings/objects/two.yaml", None)]).await;
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(30)).await;
            let now = running.overview.borrow().clone();
            assert_eq!(cluster_states(&now), ["bj1 Ready", "bj2 Ready", "gz1 Ready"], "trouble {number}");
        }
        assert_only_deleted(fleet, &["two"], &before).await;
        running.stop().await;
    }
}

/// As above with a registry that is emptied, on purpose or not: no objects are deleted.
#[tokio::test(start_paused = true)]
async fn argo_18480_empty_registry_deletes_nothing() {
    let (scene, before) = registered_fleet().await;
    let fleet = &scene.fleet;
    let running = scene.start().await;
    running.until_converged(&fleet.first_commit).await;
    let registry = live_objects::api(&scene.home, "ConfigMap", Some("default"));
    for name in ["bj2", "gz1"] {
        registry.delete(name, &DeleteParams::default()).await.expect("deleted");
    }
    let revision = fleet.push(&running, "One map less", &[("apps/settings/objects/two.yaml", None)]).await;
    let dropped = |now: &Overview| cluster_states(now) == ["bj1 Ready", "bj2 Dropped", "gz1 Dropped"];
    running.until("dropped", dropped).await;
    wait_for_late_effects().await;
    assert_eq!((delete_count(fleet), object_uids(fleet).await), (0, before.clone()));
    // The registry is restored.
    for name in ["bj2", "gz1"] {
        scene.register(name, &[("zone", "bj")], kubeconfig_data("one")).await;
    }
    running.until("all again", |now| cluster_states(now) == ["bj1 Ready", "bj2 Ready", "gz1 Ready"]).await;
    running.until_converged(&revision).await;
    assert_only_deleted(fleet, &["two"], &before).await;
}

/// Two registered clusters with two maps each, and the UIDs of the maps.
async fn registered_fleet() -> (RegistryFleet, BTreeMap<String, Value>) {
    let mut scene = RegistryFleet::new();
    for name in ["bj2", "gz1"] {
        scene.register(name, &[("zone", "bj")], kubeconfig_data("one")).await;
    }
    let two = config_map("default", "two", "first");
    scene.fleet.first_commit =
        scene.fleet.repository.commit("Two", &[("apps/settings/objects/two.yaml", Some(&two))]);
    let running = scene.start().await;
    running.until_converged(&scene.fleet.first_commit).await;
    running.stop().await;
    let before = object_uids(&scene.fleet).await;
    assert_eq!(before.len(), 4);
    (scene, before)
}

fn cluster_states(now: &Overview) -> Vec<String> {
    now.clusters.iter().map(|it| format!("{} {}", it.name, it.state)).collect()
}

/// argo-cd #16284: the database of an API server was full. Requests failed, desired state came back incomplete, and
/// applications of many clusters were deleted. Here an app renders an object only where a kind is served, and discovery fails,
/// in a running process and in new ones. A commit meanwhile removes a map.
#[tokio::test(start_paused = true)]
async fn argo_16284_failing_server_loses_nothing() {
    let (app, web) = (objects_app("default", "settings"), component("web", "registry.example.com/web:1"));
    let metrics = objects_app("default", "metrics").replace("*.yaml", "*");
    let files = [
        (APP, &*app),
        (MAPS_FILE, &maps(&["one", "two"])),
        (WEB_APP, &*web),
        ("apps/metrics/app.yaml", &metrics),
        ("apps/metrics/objects/guarded.yaml.j2", GUARDED_MAP),
    ];
    // One of the clusters has legacy discovery, group by group.
    let options: fn(&str) -> SandboxOptions = |name| match name {
        "gz1" => SandboxOptions::instant(name),
        _ => SandboxOptions { aggregated_discovery: false, ..SandboxOptions::instant(name) }
            .running(Release::new(31).expect("a release")),
    };
    let fleet = TestFleet::with_options(&["bj1", "gz1"], &files, options);
    for sandbox in fleet.clusters.values() {
        let definition = manifests::definition("monitoring.coreos.com", "v1", "ServiceMonitor");
        live_objects::apply_as(sandbox, "helm", &definition).await;
    }
    let mut running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let before = object_uids(&fleet).await;
    assert!(before.contains_key("bj1 ConfigMap default/guarded"), "{before:?}");
    // Deletes fail too, except in the first seconds, when a mistake would be made.
    let full = "etcdserver: mvcc: database space exceeded";
    let refusal = Fault::Refusal { code: 500, reason: "InternalError", message: full.to_owned() };
    let any = RequestMatch::any;
    let failing = |what: RequestMatch| FaultRule::failing(what, refusal.clone());
    let cut =
        FaultEffect::WatchExpired { shortest: Duration::from_secs(1), longest: Duration::from_secs(20) };
    for sandbox in fleet.clusters.values() {
        let plan = FaultPlan::new(7)
            .rule(failing(RequestMatch::writes()).per_mille(700))
            .rule(failing(any().resource("/apis/monitoring.coreos.com/v1")))
            .rule(failing(any().resource("/apis")).per_mille(500))
            .rule(failing(any().verb("list")).per_mille(200))
            .rule(failing(any().verb("watch")).per_mille(200))
            .rule(FaultRule::new(any().verb("watch"), cut.clone()));
        sandbox.set_faults(&plan);
    }
    let (newer, fewer) = (component("web", "registry.example.com/web:2"), maps(&["one"]));
    let changes = [(WEB_APP, Some(&*newer)), (MAPS_FILE, Some(&*fewer))];
    let revision = fleet.push(&running, "Release 2, one map less", &changes).await;
    wait_for_late_effects().await;
    for _ in 0..4 {
        running.stop().await;
        running = fleet.start().await;
        wait_for_late_effects().await;
        assert!(deleted_names(&fleet).iter().all(|name| name == "two"), "{:?}", deleted_names(&fleet));
    }
    fleet.clusters.values().for_each(|sandbox| sandbox.set_faults(&FaultPlan::new(7)));
    running.until_converged(&revision).await;
    assert_only_deleted(&fleet, &["two"], &before).await;
}

/// Rendered where a foreign kind is served.
const GUARDED_MAP: &str = "\
{% if cluster.capabilities is has('monitoring.coreos.com/v1/ServiceMonitor') %}
apiVersion: v1
kind: ConfigMap
metadata: {name: guarded}
{% endif %}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: always}
";

/// argo-cd #3484: manifests were deleted by mistake, by a person or automation, and automatic pruning followed immediately.
#[tokio::test(start_paused = true)]
async fn argo_3484_mass_manifest_deletion_waits() {
    let many: Vec<String> = (0..12).map(|number| format!("map-{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let fleet = fleet();
    let running = fleet.start().await;
    let begin = fleet.push(&running, "Many maps", &[(MAPS_FILE, Some(&maps(&many)))]).await;
    running.until_converged(&begin).await;
    wait_for_late_effects().await;
    let (before, deleted) = (object_uids(&fleet).await, delete_count(&fleet));

    // All apps at once: far over the cap.
    let text: Vec<(&str, String)> = vec![
        (APP, objects_app("default", "settings")),
        (MAPS_FILE, maps(&many)),
        (WEB_APP, component("web", "registry.example.com/web:1")),
    ];
    let gone: Vec<_> = text.iter().map(|(path, _)| (*path, None)).collect();
    fleet.push(&running, "Clean up", &gone).await;
    let now = running.until("wishes for approvals", |now| now.approvals_wanted.len() == 2).await;
    assert_eq!(now.deletions.iter().filter(|deletion| deletion.waits).count(), before.len());
    // A file of one app becomes empty.
    let files: Vec<_> = text.iter().map(|(path, text)| (*path, Some(text.as_str()))).collect();
    fleet.push(&running, "Revert", &files).await;
    fleet.push(&running, "An empty file", &[(MAPS_FILE, Some("# nothing\n"))]).await;
    running.until("an error", |now| now.has_errors()).await;
    wait_for_late_effects().await;
    let revision = fleet.push(&running, "Revert", &[(MAPS_FILE, Some(&maps(&many)))]).await;
    running.until_converged(&revision).await;
    assert_eq!((delete_count(&fleet), object_uids(&fleet).await), (deleted, before));
}

/// argo-cd #18780: applications of many clusters were deleted within seconds without a change in Git, because Git was read
/// incompletely. Here the stored repository lacks another file at each start, while the clusters have faults; and the last
/// commit does remove an object.
#[tokio::test(start_paused = true)]
async fn argo_18780_incomplete_repository_deletes_nothing() {
    let fleet = fleet_with_and_without_streams();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let before = object_uids(&fleet).await;
    let mut running = running;
    running.stop().await;
    let fewer = fleet.repository.commit("One map less", &[(MAPS_FILE, Some(&maps(&["one"])))]);
    for (seed, lost) in [MAPS_FILE, WEB_APP, APP, "clusters/gz1.yaml", "tutti.yaml"].into_iter().enumerate() {
        fleet.repository.remove_blob(lost);
        for sandbox in fleet.clusters.values() {
            sandbox.set_faults(&faulty_clusters(seed as u64));
        }
        running = fleet.start().await;
        wait_for_late_effects().await;
        assert_eq!(delete_count(&fleet), 0, "{lost}: {:?}", deleted_names(&fleet));
        let now = running.overview.borrow().clone();
        assert!(now.revision.is_none() && now.source_error.is_some(), "{lost}: {:?}", now.source_error);
        running.stop().await;
        fleet.repository.restore_blob(lost);
    }
    for sandbox in fleet.clusters.values() {
        sandbox.set_faults(&FaultPlan::new(0));
    }
    running = fleet.start().await;
    running.until_converged(&fewer).await;
    assert_only_deleted(&fleet, &["two"], &before).await;
}

/// As above when everything is read and one app cannot be rendered: its objects stay desired, and deletes of other apps
/// wait.
#[tokio::test(start_paused = true)]
async fn argo_18780_failed_render_deletes_nothing() {
    // No health check and no cap holds the deletes.
    let instance = manifests::INSTANCE.replace("{}", "{caps: {deletes: 100, deletePercent: 100}}");
    let always = |name: &str| objects_app("default", name).replace("spec: {", "spec: {prune: always, ");
    let (settings, extras) = (always("settings"), always("extras"));
    let path = "apps/extras/objects/extra.yaml";
    let extra = config_map("default", "extra", "first");
    let fleet = TestFleet::new(
        &["bj1", "gz1"],
        &[
            ("tutti.yaml", &instance),
            (APP, &settings),
            (MAPS_FILE, &maps(&["one", "two"])),
            ("apps/extras/app.yaml", &extras),
            (path, &extra),
        ],
    );
    let mut running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let before = object_uids(&fleet).await;
    // An undefined value replaces the existing one.
    let (template, undefined) =
        ("apps/extras/objects/extra.yaml.j2", extra.replace("\"first\"", "{{ nobody.sets.this }}"));
    let (templates, fewer) = (extras.replace("*.yaml", "*"), maps(&["one"]));
    let changes = [
        ("apps/extras/app.yaml", Some(&*templates)),
        (path, None),
        (template, Some(&*undefined)),
        (MAPS_FILE, Some(&*fewer)),
    ];
    fleet.push(&running, "One map less, and an error", &changes).await;
    running.until("an error", |now| now.has_errors()).await;
    wait_for_late_effects().await;
    for seed in 0..4 {
        running.stop().await;
        for sandbox in fleet.clusters.values() {
            sandbox.set_faults(&faulty_clusters(seed));
        }
        running = fleet.start().await;
        wait_for_late_effects().await;
        assert_eq!(delete_count(&fleet), 0, "seed {seed}");
    }
    for sandbox in fleet.clusters.values() {
        sandbox.set_faults(&FaultPlan::new(0));
    }
    let mended = fleet.push(&running, "Without the error", &[(template, Some(&extra))]).await;
    running.until_converged(&mended).await;
    assert_only_deleted(&fleet, &["two"], &before).await;
}

/// The clusters respond late, with old state, rarely, or not at all.
fn faulty_clusters(seed: u64) -> FaultPlan {
    let (any, second) = (RequestMatch::any, Duration::from_secs(1));
    FaultPlan::new(seed)
        .rule(FaultRule::new(any(), FaultEffect::Latency { shortest: Duration::ZERO, longest: second * 3 }))
        .rule(FaultRule::new(any().verb("list"), FaultEffect::StaleList { lag: 40 }).per_mille(400))
        .rule(FaultRule::failing(any(), Fault::unavailable()).per_mille(100))
        .rule(FaultRule::new(any(), FaultEffect::Request(Fault::forbidden())).per_mille(20))
        .rule(FaultRule::new(any(), FaultEffect::WatchCut { shortest: second, longest: second * 30 }))
        .rule(FaultRule::new(any(), FaultEffect::WatchTorn { most: 5 }).per_mille(300))
        .down(second * 40..second * 70)
}

/// flux2 #3316: the resource that deploys a set of objects was renamed, and all objects were deleted and recreated.
#[tokio::test(start_paused = true)]
async fn flux2_3316_renamed_app_keeps_everything() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let before = object_uids(&fleet).await;
    let renamed = objects_app("default", "configuration");
    // Its objects move to other files.
    let (one, two) = (maps(&["one"]), maps(&["two"]));
    let changes = [
        (APP, None),
        (MAPS_FILE, None),
        ("apps/configuration/app.yaml", Some(renamed.as_str())),
        ("apps/configuration/objects/first.yaml", Some(one.as_str())),
        ("apps/configuration/objects/second.yaml", Some(two.as_str())),
    ];
    let revision = fleet.push(&running, "Another name", &changes).await;
    running.until_converged(&revision).await;
    wait_for_late_effects().await;
    assert_eq!((delete_count(&fleet), object_uids(&fleet).await), (0, before));
    let one =
        live_objects::get(fleet.cluster("gz1"), "ConfigMap", "default", "one").await.expect("it is there");
    assert_eq!(one["metadata"]["annotations"]["tutti.dev/app"], "default/configuration");
}

/// flux2 #3316 with a restart between: the new process has never seen the old name.
#[tokio::test(start_paused = true)]
async fn flux2_3316_app_renamed_while_stopped_keeps_everything() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    running.stop().await;
    let before = object_uids(&fleet).await;
    let renamed = objects_app("default", "configuration");
    let revision = fleet.repository.commit("Another name", &[(APP, Some(&renamed))]);
    // One cluster becomes reachable later, so the app is renamed on one cluster first.
    fleet.cluster("gz1").set_down(true);
    let running = fleet.start().await;
    wait_for_late_effects().await;
    fleet.cluster("gz1").set_down(false);
    running.until_converged(&revision).await;
    wait_for_late_effects().await;
    assert_eq!((delete_count(&fleet), object_uids(&fleet).await), (0, before));
}

/// kubernetes #99003: client-side applied objects move to server-side apply. A field that the manifest drops later stays,
/// because the client's manager still owns it. The same happens with any other manager.
#[tokio::test(start_paused = true)]
async fn kubernetes_99003_field_dropped_after_adoption_is_removed() {
    let both = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: default}\ndata: {key: value, legacy: unused}\n";
    let adopting = objects_app("default", "settings").replace("spec: {", "spec: {adopt: true, ");
    for manager in ["kubectl-client-side-apply", "OpenAPI-Generator"] {
        let fleet = TestFleet::new(&["bj1"], &[(APP, &adopting), (MAPS_FILE, both)]);
        let made = live_objects::create_as(fleet.cluster("bj1"), manager, both).await;
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        let get = async || {
            live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "one").await.expect("it is there")
        };
        assert_eq!(get().await["data"], serde_json::json!({"key": "value", "legacy": "unused"}));

        let without = both.replace(", legacy: unused", "");
        let revision = fleet.push(&running, "Without the legacy", &[(MAPS_FILE, Some(&without))]).await;
        running.until_converged(&revision).await;
        let after = get().await;
        assert_eq!(after["data"], serde_json::json!({"key": "value"}), "{manager}");
        assert_eq!(after["metadata"]["uid"], made["metadata"]["uid"]);
    }
}
