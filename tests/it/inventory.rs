//! Each connection finds all our objects of a cluster again, also of kinds that are no longer rendered.

use sandbox::{Fault, FaultEffect, FaultPlan, FaultRule, RequestMatch};

use crate::support::fleet::TestFleet;
use crate::support::live_objects;
use crate::support::manifests::{self, component, objects_app};

const EXTERNAL_FILE: &str = "apps/external/objects/all.yaml";
const KEPT_FILE: &str = "apps/external/objects/kept.yaml";

/// Kinds of which controllers create many objects. The Service has no selector: we own its endpoints.
const ALL_OBJECTS: &str = "\
apiVersion: v1
kind: Endpoints
metadata: {name: database, namespace: default}
subsets: [{addresses: [{ip: 192.0.2.7}], ports: [{port: 5432}]}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: mail, namespace: default}
addressType: IPv4
endpoints: [{addresses: [192.0.2.8]}]
ports: [{port: 25}]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: turns, namespace: default}
spec: {leaseDurationSeconds: 60}
---
apiVersion: v1
kind: Pod
metadata: {name: once, namespace: default}
spec: {containers: [{name: main, image: registry.example.com/once:1}]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: bare, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: bare}}
  template:
    metadata: {labels: {app: bare}}
    spec: {containers: [{name: main, image: registry.example.com/bare:1}]}
";
const OBJECT_NAMES: [(&str, &str); 5] = [
    ("Endpoints", "database"),
    ("EndpointSlice", "mail"),
    ("Lease", "turns"),
    ("Pod", "once"),
    ("ReplicaSet", "bare"),
];

/// Attempts of a connection to list a kind.
const LIST_ATTEMPTS: usize = 3;

const SERVICES: &str = "\
apiVersion: v1
kind: Service
metadata: {name: database, namespace: default}
spec: {ports: [{port: 5432}]}
";

fn fleet() -> TestFleet {
    let instance = manifests::INSTANCE.replace("{}", "{caps: {deletes: 100, deletePercent: 100}}");
    TestFleet::new(
        &["bj1"],
        &[
            ("tutti.yaml", &instance),
            ("apps/external/app.yaml", &objects_app("default", "external")),
            (EXTERNAL_FILE, ALL_OBJECTS),
            (KEPT_FILE, SERVICES),
            // Controllers create its Endpoints and slices, with the labels of its Service.
            ("apps/web/app.yaml", &component("web", "registry.example.com/web:1")),
        ],
    )
}

async fn remaining_kinds(fleet: &TestFleet) -> Vec<&'static str> {
    let mut found = Vec::new();
    for (kind, name) in OBJECT_NAMES {
        if live_objects::get(fleet.cluster("bj1"), kind, "default", name).await.is_some() {
            found.push(kind);
        }
    }
    found
}

async fn assert_controller_copies_stay(fleet: &TestFleet) {
    let copy = live_objects::get(fleet.cluster("bj1"), "Endpoints", "default", "web").await.expect("a copy");
    assert_eq!(copy["metadata"]["labels"]["tutti.dev/managed-by"], "main");
    let deletes = RequestMatch::any().verb("delete");
    assert_eq!(
        fleet.cluster("bj1").count_requests(&deletes),
        OBJECT_NAMES.len(),
        "{:?}",
        fleet.request_counts()
    );
}

#[tokio::test(start_paused = true)]
async fn offline_removals_are_deleted_for_every_kind() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    assert_eq!(remaining_kinds(&fleet).await.len(), OBJECT_NAMES.len());
    fleet.cluster("bj1").set_down(true);
    running.until("bj1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;
    let revision = fleet.push(&running, "None of them", &[(EXTERNAL_FILE, None)]).await;
    running.until("the commit", |now| now.revision.as_ref() == Some(&revision)).await;
    fleet.cluster("bj1").set_down(false);
    running.until_converged(&revision).await;
    assert_eq!(remaining_kinds(&fleet).await, [""; 0]);
    assert_controller_copies_stay(&fleet).await;
}

#[tokio::test(start_paused = true)]
async fn removals_while_stopped_are_deleted_for_every_kind() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    running.stop().await;
    let revision = fleet.repository.commit("None of them", &[(EXTERNAL_FILE, None)]);
    let running = fleet.start().await;
    running.until_converged(&revision).await;
    assert_eq!(remaining_kinds(&fleet).await, [""; 0]);
    assert_controller_copies_stay(&fleet).await;

    // Kinds with copies only are not watched.
    running.stop().await;
    fleet.clear_requests();
    let running = fleet.start().await;
    running.until_converged(&revision).await;
    let watched = |resource: &str| {
        fleet.cluster("bj1").count_requests(&RequestMatch::any().verb("watch").resource(resource))
    };
    assert_eq!((watched("endpoints"), watched("endpointslices.discovery.k8s.io")), (0, 0));
    assert_eq!(watched("services"), 1);
}

/// The cluster's current resource version.
async fn current_revision(fleet: &TestFleet, name: &str) -> u64 {
    let mark = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: default}}}}");
    let mark = live_objects::create_as(fleet.cluster("bj1"), "somebody", &mark).await;
    mark["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).expect("a number")
}

/// A restored server may answer from an outdated cache: objects that it lacks are remembered by tutti.
#[tokio::test(start_paused = true)]
async fn stale_empty_list_does_not_hide_known_objects() {
    let fleet = fleet();
    let before = current_revision(&fleet, "before").await;
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let lag = current_revision(&fleet, "after").await - before;
    let bj1 = fleet.cluster("bj1");
    bj1.set_down(true);
    running.until("bj1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;
    let revision = fleet.push(&running, "None of them", &[(EXTERNAL_FILE, None)]).await;
    running.until("the commit", |now| now.revision.as_ref() == Some(&revision)).await;
    // Lists of leases first fail, then return old state without any; lists of replica sets do the latter at once.
    let lists = |resource: &str| RequestMatch::any().verb("list").resource(resource);
    let (leases, sets) = (lists("leases.coordination.k8s.io"), lists("replicasets.apps"));
    bj1.fail_next(leases.clone(), LIST_ATTEMPTS, Fault::internal_error());
    let behind = |lists: RequestMatch| FaultRule::new(lists, FaultEffect::StaleList { lag });
    bj1.set_faults(&FaultPlan::new(0).rule(behind(leases)).rule(behind(sets)));
    bj1.set_down(false);
    running.until_converged(&revision).await;
    assert_eq!(remaining_kinds(&fleet).await, [""; 0]);
    assert!(
        bj1.fault_counts().get("stale-list").is_some_and(|count| *count >= 2),
        "{:?}",
        bj1.fault_counts()
    );
    assert_controller_copies_stay(&fleet).await;
}

/// Known objects of a kind that may no longer be listed are forgotten: the watch would retry forever and block all
/// deletes.
#[tokio::test(start_paused = true)]
async fn forbidden_kind_blocks_no_deletes_of_others() {
    let kept = SERVICES.replace("name: database,", "name: database, annotations: {tutti.dev/prune: keep},");
    let fleet = fleet();
    let begin = fleet.repository.commit("The Service is kept", &[(KEPT_FILE, Some(&kept))]);
    let running = fleet.start().await;
    running.until_converged(&begin).await;
    let map = manifests::config_map("default", "instead", "a");
    let changes = [(KEPT_FILE, Some(map.as_str())), ("apps/web/app.yaml", None)];
    let revision = fleet.push(&running, "Without services", &changes).await;
    running.until_converged(&revision).await;
    let bj1 = fleet.cluster("bj1");
    bj1.set_down(true);
    running.until("bj1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;
    let services = RequestMatch::any().resource("services");
    bj1.set_faults(&FaultPlan::new(0).rule(FaultRule::failing(services, Fault::forbidden())));
    bj1.set_down(false);
    running.until("bj1 back", |now| now.clusters.iter().all(|it| it.state == "Ready")).await;
    let revision = fleet.push(&running, "None of them", &[(EXTERNAL_FILE, None)]).await;
    running.until_converged(&revision).await;
    assert_eq!(remaining_kinds(&fleet).await, [""; 0]);
    bj1.set_faults(&FaultPlan::new(0));
    assert!(live_objects::get(bj1, "Service", "default", "database").await.is_some(), "it is kept");
}
