//! Cluster version and API resources are inputs of a render. Nothing is applied before they are known.

use std::sync::Arc;
use std::time::Duration;

use kube::api::DeleteParams;
use sandbox::{Fault, RequestMatch, SandboxOptions};
use serde_json::Value;
use tutti::controller::ConfigHead;
use tutti::model::Revision;
use tutti::report::{Overview, TargetPhase};

use crate::support::fleet::{TestFleet, WAIT_LIMIT, target};
use crate::support::live_objects;
use crate::support::manifests;

const APP: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Objects
metadata: {name: metrics, namespace: default}
spec: {files: [objects/*]}
";
const VERSION_MAP: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: version}
data: {version: {{ cluster.version.gitVersion }}}
";
const MONITOR_TEMPLATE: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: always}
---
{% if cluster.capabilities is has('monitoring.coreos.com/v1/ServiceMonitor') %}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: web, namespace: default}
spec: {selector: {}}
{% endif %}
";
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

fn service_monitor_definition() -> String {
    manifests::definition("monitoring.coreos.com", "v1", "ServiceMonitor")
}

async fn rendered_version(fleet: &TestFleet, cluster: &str) -> Value {
    let map =
        live_objects::get(fleet.cluster(cluster), "ConfigMap", "default", "version").await.expect("a map");
    map["data"]["version"].clone()
}

#[tokio::test(start_paused = true)]
async fn later_definition_adds_the_objects_that_need_it() {
    let files = [("apps/metrics/app.yaml", APP), ("apps/metrics/objects/monitor.yaml.j2", MONITOR_TEMPLATE)];
    let fleet = TestFleet::new(&["bj1", "gz1"], &files);
    let running = fleet.start().await;
    let before = running.until_converged(&fleet.first_commit).await;
    let bj1 = fleet.cluster("bj1");
    assert_eq!(
        live_objects::names(bj1, "ConfigMap").await.iter().filter(|name| *name == "always").count(),
        1
    );
    fleet.clear_requests();

    // Another tool installs the definition: no commit, no object of ours.
    live_objects::apply_as(bj1, "helm", &service_monitor_definition()).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let after = running.until_converged(&fleet.first_commit).await;
    assert_eq!(live_objects::names(bj1, "ServiceMonitor").await, ["web"]);
    let revision = |overview, cluster| target(overview, cluster, "default/metrics").revision.clone();
    assert_eq!(revision(&before, "bj1"), revision(&after, "bj1"), "it is no commit");
    let of_gz1 = fleet.requests().into_iter().filter(|(cluster, _)| cluster == "gz1").count();
    assert_eq!(of_gz1, 0, "the other cluster is left alone");
    let written = fleet.requests().into_iter().filter(|(_, it)| it.verb == "apply");
    let written: Vec<String> = written.map(|(_, it)| it.resource).collect();
    assert_eq!(written.len(), 2, "the definition and the object, not what is there already: {written:?}");
}

#[tokio::test(start_paused = true)]
async fn replaced_definition_deletes_nothing() {
    let files = [("apps/metrics/app.yaml", APP), ("apps/metrics/objects/guarded.yaml.j2", GUARDED_MAP)];
    let fleet = TestFleet::new(&["bj1"], &files);
    let bj1 = fleet.cluster("bj1");
    live_objects::apply_as(bj1, "helm", &service_monitor_definition()).await;
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let before = live_objects::get(bj1, "ConfigMap", "default", "guarded").await.expect("a map");
    fleet.clear_requests();

    let definitions = live_objects::api(bj1, "CustomResourceDefinition", None);
    let parameters = DeleteParams::default();
    let remove = || definitions.delete("servicemonitors.monitoring.coreos.com", &parameters);
    // Longer than the interval between two discoveries.
    remove().await.expect("deleted");
    tokio::time::sleep(Duration::from_millis(900)).await;
    live_objects::apply_as(bj1, "helm", &service_monitor_definition()).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let after = live_objects::get(bj1, "ConfigMap", "default", "guarded").await.expect("a map");
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
    let written: Vec<_> = fleet.requests().into_iter().filter(|(_, it)| it.verb == "delete").collect();
    assert_eq!(written.len(), 1, "the definition: {written:?}");

    // If the definition stays away, the objects that depend on it are deleted.
    remove().await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(live_objects::get(bj1, "ConfigMap", "default", "guarded").await.is_none());
}

const UNGUARDED_MONITOR: &str = "\
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: web, namespace: default}
spec: {selector: {}}
";

/// The definition is deleted. Before discovery sees that, an app adds such an object and the definition.
#[tokio::test(start_paused = true)]
async fn kind_deleted_before_its_list_blocks_no_app() {
    let map = manifests::config_map("default", "always", "first");
    let files = [("apps/metrics/app.yaml", APP), ("apps/metrics/objects/always.yaml", map.as_str())];
    let fleet = TestFleet::new(&["bj1"], &files);
    let bj1 = fleet.cluster("bj1");
    live_objects::apply_as(bj1, "helm", &service_monitor_definition()).await;
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;

    let definitions = live_objects::api(bj1, "CustomResourceDefinition", None);
    let name = "servicemonitors.monitoring.coreos.com";
    definitions.delete(name, &DeleteParams::default()).await.expect("deleted");
    let definition = service_monitor_definition();
    let both = [
        ("apps/metrics/objects/monitor.yaml", Some(UNGUARDED_MONITOR)),
        ("apps/metrics/objects/definition.yaml", Some(&*definition)),
    ];
    let revision = fleet.push(&running, "Bring it", &both).await;
    running.until_converged(&revision).await;
    assert_eq!(live_objects::names(bj1, "ServiceMonitor").await, ["web"]);
}

#[tokio::test(start_paused = true)]
async fn deleted_kind_is_not_requested_until_it_returns() {
    let files = [("apps/metrics/app.yaml", APP), ("apps/metrics/objects/monitor.yaml", UNGUARDED_MONITOR)];
    let fleet = TestFleet::new(&["bj1"], &files);
    let bj1 = fleet.cluster("bj1");
    live_objects::apply_as(bj1, "helm", &service_monitor_definition()).await;
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;

    let definitions = live_objects::api(bj1, "CustomResourceDefinition", None);
    let name = "servicemonitors.monitoring.coreos.com";
    definitions.delete(name, &DeleteParams::default()).await.expect("deleted");
    // Until discovery sees the deletion, lookups of its objects fail.
    let is_without = |now: &Overview| {
        let target = target(now, "bj1", "default/metrics");
        target.phase == TargetPhase::Refused
            && target.detail.contains("monitoring.coreos.com/v1/ServiceMonitor")
    };
    running.until("the app says what it lacks", is_without).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    fleet.clear_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(bj1.count_requests(&RequestMatch::any().resource("servicemonitors")), 0);

    live_objects::apply_as(bj1, "helm", &service_monitor_definition()).await;
    running.until_converged(&fleet.first_commit).await;
    // The kind is watched again: a manual delete is repaired.
    let monitors = live_objects::api(bj1, "ServiceMonitor", Some("default"));
    monitors.delete("web", &DeleteParams::default()).await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(live_objects::names(bj1, "ServiceMonitor").await, ["web"]);
}

#[tokio::test(start_paused = true)]
async fn cluster_gets_writes_after_its_version_is_known() {
    let files = [("apps/metrics/app.yaml", APP), ("apps/metrics/objects/version.yaml.j2", VERSION_MAP)];
    let declared = manifests::cluster("gz2").replace("spec: {", "spec: {version: v1.20.5, ");
    let files = [&files[..], &[("clusters/gz2.yaml", declared.as_str())]].concat();
    let fleet = TestFleet::with_options(&["bj1", "gz1", "gz2"], &files, |name| SandboxOptions {
        version: if name == "bj1" { "v1.31.4".to_owned() } else { "v1.33.7".to_owned() },
        ..SandboxOptions::instant(name)
    });
    fleet.cluster("gz1").set_down(true);
    let running = fleet.start().await;
    running.until("gz1 is given up", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(rendered_version(&fleet, "bj1").await, "v1.31.4");
    assert_eq!(rendered_version(&fleet, "gz2").await, "v1.20.5", "what is declared wins");

    fleet.cluster("gz1").set_down(false);
    running.until_converged(&fleet.first_commit).await;
    assert_eq!(rendered_version(&fleet, "gz1").await, "v1.33.7");
    let writes = |name: &str| fleet.cluster(name).requests().iter().filter(|it| it.verb == "apply").count();
    assert_eq!((writes("bj1"), writes("gz1"), writes("gz2")), (1, 1, 1), "never with what was guessed");
}

/// A process that starts at that moment has not seen our objects of the kind.
#[tokio::test(start_paused = true)]
async fn objects_of_kind_hidden_at_start_are_deleted() {
    let files = [("apps/metrics/app.yaml", APP), ("apps/metrics/objects/monitor.yaml.j2", MONITOR_TEMPLATE)];
    let fleet = TestFleet::with_options(&["bj1"], &files, |name| SandboxOptions {
        aggregated_discovery: false,
        ..SandboxOptions::instant(name)
    });
    let bj1 = fleet.cluster("bj1");
    live_objects::apply_as(bj1, "helm", &service_monitor_definition()).await;
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    assert_eq!(live_objects::names(bj1, "ServiceMonitor").await, ["web"]);
    running.stop().await;

    let always = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: always}\n";
    let gone =
        fleet.repository.commit("No monitor", &[("apps/metrics/objects/monitor.yaml.j2", Some(always))]);
    let of_monitors = RequestMatch::any().resource("/apis/monitoring.coreos.com/v1");
    bj1.fail_next(of_monitors.clone(), 4, Fault::unavailable());
    let running = fleet.start().await;
    running.until_converged(&gone).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(bj1.count_requests(&of_monitors) > 4, "it is there again");
    assert_eq!(live_objects::names(bj1, "ServiceMonitor").await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn lost_definition_on_offline_cluster_blocks_nothing() {
    let (app, map) =
        (manifests::objects_app("default", "metrics"), manifests::config_map("default", "one", "1"));
    let (other, own) =
        (manifests::objects_app("default", "other"), manifests::config_map("default", "own", "1"));
    let files = [
        ("apps/metrics/app.yaml", &*app),
        ("apps/metrics/objects/monitor.yaml", UNGUARDED_MONITOR),
        ("apps/metrics/objects/one.yaml", &*map),
        ("apps/other/app.yaml", &*other),
        ("apps/other/objects/own.yaml", &*own),
    ];
    let fleet = TestFleet::new(&["bj1"], &files);
    let bj1 = fleet.cluster("bj1");
    live_objects::apply_as(bj1, "helm", &service_monitor_definition()).await;
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;

    let definitions = live_objects::api(bj1, "CustomResourceDefinition", None);
    let name = "servicemonitors.monitoring.coreos.com";
    bj1.set_down(true);
    running.until("it is away", |now| now.clusters[0].state == "Offline").await;
    let gone = files[..3].iter().map(|(path, _)| (*path, None)).collect::<Vec<_>>();
    let revision = fleet.push(&running, "Without metrics", &gone).await;
    bj1.set_down(false);
    definitions.delete(name, &DeleteParams::default()).await.expect("deleted");
    let start = tokio::time::Instant::now();
    running.until_converged(&revision).await;
    assert!(start.elapsed() < Duration::from_secs(300), "{:?}", start.elapsed());
    assert!(live_objects::get(bj1, "ConfigMap", "default", "one").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn kinds_of_the_head_are_published_after_rendering() {
    let (app, kind) = (manifests::objects_app("default", "kinds"), service_monitor_definition());
    let files = [("apps/kinds/app.yaml", &*app), ("apps/kinds/objects/kind.yaml", &*kind)];
    let fleet = TestFleet::new(&["bj1"], &files);
    let running = fleet.start().await;
    let mut heads = running.head.clone();
    let mut of = async |revision: &Revision| {
        let of_revision = |head: &Option<Arc<ConfigHead>>| {
            head.as_ref().is_some_and(|head| head.snapshot.revision == *revision && head.defined.is_some())
        };
        let told = tokio::time::timeout(WAIT_LIMIT, heads.wait_for(of_revision)).await;
        let head = told.expect("in time").expect("it runs").clone().expect("a head");
        let defined = head.defined.clone().expect("known");
        defined.values().flat_map(|kinds| kinds.keys().cloned()).collect::<Vec<String>>()
    };
    assert_eq!(of(&fleet.first_commit).await, ["monitoring.coreos.com/v1/ServiceMonitor"]);
    let map = manifests::config_map("default", "one", "1");
    let changes = [("apps/kinds/objects/kind.yaml", None), ("apps/kinds/objects/one.yaml", Some(&*map))];
    let next = fleet.push(&running, "Without the kind", &changes).await;
    assert_eq!(of(&next).await, Vec::<String>::new());
}
