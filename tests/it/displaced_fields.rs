//! An edit that renames a list key or switches to another variant of a union: it is reverted, and the next commit applies.

use std::time::Duration;

use serde_json::{Value, json};
use tutti::report::TargetPhase;

use crate::drift::{APP, MANIFESTS, app_with_fields, wait_for_repairs};
use crate::support::fleet::{TestFleet, target};
use crate::support::live_objects::{self, edit_as};

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {selector: {app: web}, \
                       ports: [{name: web, port: 80}]}\n";
const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes: [{name: data, emptyDir: {}}]
      containers:
        - name: main
          image: web:1
          ports: [{name: http, containerPort: 80}]
          env: [{name: MODE, value: fast}]
          volumeMounts: [{name: data, mountPath: /data}]
          livenessProbe: {httpGet: {path: /, port: 80}}
          lifecycle: {preStop: {exec: {command: [stop]}}}
";

/// The fields of the object that Git sets.
fn git_spec(object: &Value) -> Value {
    let mut spec = object["spec"].clone();
    // The cluster allocates these.
    for field in ["clusterIP", "clusterIPs"] {
        spec.as_object_mut().expect("a map").remove(field);
    }
    spec
}

/// The edited pod spec as a merge patch of the whole Deployment.
fn pod_spec_edit(live: &Value, change: impl Fn(&mut Value)) -> Value {
    let mut spec = live.pointer("/spec/template/spec").expect("a spec").clone();
    change(&mut spec);
    json!({"spec": {"template": {"spec": {"containers": spec["containers"], "volumes": spec["volumes"]}}}})
}

async fn check_edit_reverted(name: &str, kind: &str, edit: impl Fn(&Value) -> Value) {
    let manifests = [DEPLOYMENT, SERVICE].join("---\n");
    let fleet =
        TestFleet::new(&["bj1"], &[(APP, &app_with_fields("drift: repair")), (MANIFESTS, &manifests)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    wait_for_repairs().await;
    let get =
        async || live_objects::get(fleet.cluster("bj1"), kind, "default", "web").await.expect("it is there");
    let before = get().await;
    fleet.clear_requests();
    edit_as(fleet.cluster("bj1"), "kubectl-edit", (kind, "web"), &edit(&before)).await;
    wait_for_repairs().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(git_spec(&get().await), git_spec(&before), "{name}");
    let resource = if kind == "Service" { "services" } else { "deployments.apps" };
    let counted = fleet.request_counts();
    let of_resource = counted.iter().filter(|it| it.ends_with(resource));
    let asked: u32 = of_resource.filter_map(|it| it.split(' ').next()?.parse::<u32>().ok()).sum();
    // The edit and the read of this test, the takeover read, and an apply. Controllers write the Deployment's status
    // meanwhile, so one round may conflict: a refused write and a read more.
    let most = if kind == "Service" { 4 } else { 6 };
    assert!((4..=most).contains(&asked), "{name}: {counted:?}");
    let next = manifests
        .replace("image: web:1", "image: web:2")
        .replace("name: web, port: 80", "name: web, port: 81");
    let revision = fleet.push(&running, "Next", &[(MANIFESTS, Some(&next))]).await;
    running.until_converged(&revision).await;
    let now = running.overview.borrow().clone();
    assert_eq!(target(&now, "bj1", "default/web").phase, TargetPhase::Running, "{name}");
}

#[tokio::test(start_paused = true)]
async fn renamed_list_key_is_reverted() {
    check_edit_reverted(
        "port of a Service",
        "Service",
        |_| json!({"spec": {"ports": [{"name": "web", "port": 83, "targetPort": 83}]}}),
    )
    .await;
    check_edit_reverted("port of a container", "Deployment", |live| {
        pod_spec_edit(live, |spec| spec["containers"][0]["ports"][0]["containerPort"] = json!(81))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn switched_union_variant_is_reverted() {
    check_edit_reverted("probe", "Deployment", |live| {
        pod_spec_edit(live, |spec| {
            spec["containers"][0]["livenessProbe"] = json!({"tcpSocket": {"port": 80}});
        })
    })
    .await;
    check_edit_reverted("handler", "Deployment", |live| {
        pod_spec_edit(live, |spec| {
            spec["containers"][0]["lifecycle"] = json!({"preStop": {"httpGet": {"path": "/", "port": 80}}});
        })
    })
    .await;
    check_edit_reverted("volume", "Deployment", |live| {
        pod_spec_edit(live, |spec| spec["volumes"] = json!([{"name": "data", "hostPath": {"path": "/tmp"}}]))
    })
    .await;
    check_edit_reverted("variable", "Deployment", |live| {
        pod_spec_edit(live, |spec| {
            let source = json!({"fieldRef": {"fieldPath": "metadata.name"}});
            spec["containers"][0]["env"] = json!([{"name": "MODE", "valueFrom": source}]);
        })
    })
    .await;
    check_edit_reverted(
        "strategy",
        "Deployment",
        |_| json!({"spec": {"strategy": {"type": "RollingUpdate"}}}),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn remaining_refusal_names_manager_and_force_takes_it() {
    let without = DEPLOYMENT.replace("          livenessProbe: {httpGet: {path: /, port: 80}}\n", "");
    let fleet = TestFleet::new(&["bj1"], &[(APP, &app_with_fields("drift: repair")), (MANIFESTS, &without)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    wait_for_repairs().await;
    let before =
        live_objects::get(fleet.cluster("bj1"), "Deployment", "default", "web").await.expect("it is there");
    let theirs = pod_spec_edit(&before, |spec| {
        spec["containers"][0]["livenessProbe"] = json!({"tcpSocket": {"port": 80}});
    });
    edit_as(fleet.cluster("bj1"), "kubectl-edit", ("Deployment", "web"), &theirs).await;
    wait_for_repairs().await;
    fleet.clear_requests();
    fleet.push(&running, "A probe", &[(MANIFESTS, Some(DEPLOYMENT))]).await;
    let now = running
        .until("a refusal", |now| target(now, "bj1", "default/web").phase == TargetPhase::Refused)
        .await;
    // One read for all lookups.
    let counted = fleet.request_counts();
    let of_deployments: Vec<_> = counted.iter().filter(|it| it.ends_with("deployments.apps")).collect();
    assert_eq!(of_deployments, ["1 apply deployments.apps", "1 get deployments.apps"]);
    let detail = &target(&now, "bj1", "default/web").detail;
    let told = "kubectl-edit set spec.template.spec.containers.livenessProbe.tcpSocket";
    assert!(detail.contains(told) && detail.contains("`force: true`"), "{detail}");
    let forced = app_with_fields("drift: repair, force: true");
    let revision = fleet.push(&running, "By force", &[(APP, Some(&forced))]).await;
    running.until_converged(&revision).await;
    let after =
        live_objects::get(fleet.cluster("bj1"), "Deployment", "default", "web").await.expect("it is there");
    let probe = &after["spec"]["template"]["spec"]["containers"][0]["livenessProbe"];
    assert!(probe.get("httpGet").is_some() && probe.get("tcpSocket").is_none(), "{probe}");
}
