//! Small charts with podSets on a real server equal, field by field, `helm template` with the intended values,
//! applied by `kubectl apply --server-side` on another server of the same version.

use std::collections::BTreeMap;

use live::LiveCluster;
use serde_json::{Value, json};

use super::support::{LiveFixture, without_identity};
use crate::charts::written_values::{
    NAMESPACE, files, helm_template, object_id, releases, without_tutti_metadata,
};

/// Fields that the server or a controller sets for each object.
const SERVER_FIELDS: [&str; 6] = [
    "/spec/clusterIP",
    "/spec/clusterIPs",
    "/spec/selector/matchLabels/batch.kubernetes.io~1controller-uid",
    "/spec/volumeName",
    "/metadata/annotations/deployment.kubernetes.io~1revision",
    "/metadata/annotations/deprecated.daemonset.template.generation",
];

/// Labels of a Job and of its pods that name it.
const JOB_LABELS: [&str; 4] =
    ["batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"];

pub(super) fn remove_pointer(object: &mut Value, pointer: &str) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    if let Some(Value::Object(parent)) = object.pointer_mut(parent) {
        parent.remove(&key.replace("~1", "/"));
    }
}

/// An object without what differs between servers.
pub(super) fn without_server_fields(object: &Value) -> Value {
    let mut object = without_identity(&without_tutti_metadata(object.clone()));
    SERVER_FIELDS.iter().for_each(|pointer| remove_pointer(&mut object, pointer));
    if object["kind"] == "Job" {
        for labels in ["/metadata/labels", "/spec/template/metadata/labels"] {
            if let Some(Value::Object(labels)) = object.pointer_mut(labels) {
                labels.retain(|key, _| !JOB_LABELS.contains(&key.as_str()));
            }
        }
    }
    for field in ["annotations", "labels"] {
        if object["metadata"].get(field) == Some(&json!({})) {
            remove_pointer(&mut object, &format!("/metadata/{field}"));
        }
    }
    object
}

/// The objects that `kubectl` prints, by kind, namespace and name.
fn objects_by_id(text: &str) -> BTreeMap<String, Value> {
    let list: Value = serde_json::from_str(text).unwrap_or_default();
    let items = match &list["items"] {
        Value::Array(items) => items.clone(),
        _ => vec![list],
    };
    items
        .iter()
        .filter(|it| it.is_object())
        .map(without_server_fields)
        .map(|object| (object_id(&object), object))
        .collect()
}

/// A kubeconfig with the namespace of the releases: with `-n` kubectl refuses objects of other namespaces.
fn kubeconfig_in_namespace(scene: &LiveFixture, cluster: &LiveCluster) -> String {
    let text = std::fs::read_to_string(cluster.kubeconfig()).expect("a kubeconfig");
    let with = text.replacen("  context:\n", &format!("  context:\n    namespace: {NAMESPACE}\n"), 1);
    assert_ne!(text, with);
    let path = scene.folder().join(format!("{}.kubeconfig", cluster.name()));
    std::fs::write(&path, with).expect("a file");
    path.display().to_string()
}

/// The objects of a text, as a cluster has them.
async fn live_objects(cluster: &LiveCluster, kubeconfig: &str, text: &str) -> BTreeMap<String, Value> {
    let get = ["get", "--kubeconfig", kubeconfig, "--ignore-not-found", "-o", "json", "-f", "-"];
    objects_by_id(&cluster.kubectl_with_input(&get, text).await.expect("objects"))
}

#[tokio::test]
async fn charts_match_helm_and_kubectl() {
    let Some(scene) = LiveFixture::new(NAMESPACE, 2).await else { return };
    let helm = live::HelmPrograms::from_env().expect("the programs").expect("Helm is there");
    let (ours, theirs) = (scene.cluster(0), scene.cluster(1));
    assert_eq!(ours.version(), theirs.version());
    for (path, content) in files() {
        scene.worktree.write_bytes(&path, &content);
    }
    scene.worktree.publish("all of them");
    let ended = scene.run(&scene.arguments(&["run", "--once"], &["--timeout", "180"])).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let jobs = ["get", "jobs", "-n", NAMESPACE, "-l", "tutti.dev/managed-by", "-o", "json"];
    let runs = objects_by_id(&ours.kubectl(&jobs).await.expect("a list"));

    let (kubeconfig, of_ours) =
        (kubeconfig_in_namespace(&scene, theirs), kubeconfig_in_namespace(&scene, ours));
    let (mut compared, mut differences) = (0, Vec::new());
    let releases = releases();
    for release in &releases {
        // The chart sees the capabilities of the cluster, but no results of `lookup`.
        let of_cluster = ["--dry-run=server", "--kubeconfig", &kubeconfig];
        let more: &[&str] = if release.chart == "capabilities" { &of_cluster } else { &[] };
        let text = helm_template(&helm.helm, release, more);
        let apply = ["apply", "--server-side", "--kubeconfig", &kubeconfig, "-f", "-"];
        let mut applied = theirs.kubectl_with_input(&apply, &text).await;
        if applied.is_err() {
            // The kinds and namespaces of the text exist only now.
            let wait = ["wait", "--for", "condition=established", "crd", "--all"];
            theirs.kubectl(&wait).await.expect("established");
            applied = theirs.kubectl_with_input(&apply, &text).await;
        }
        applied.unwrap_or_else(|error| panic!("{release:?}: {error}"));
        let mine = live_objects(ours, &of_ours, &text).await;
        for (id, object) in live_objects(theirs, &kubeconfig, &text).await {
            let mine = mine.get(&id).or_else(|| runs.get(&id)).cloned().unwrap_or_default();
            compared += 1;
            if mine != object {
                differences.push(format!("{release:?} {id}\n  helm {object}\n  ours {mine}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    println!("{} podSets of charts, {compared} objects compared on {}", releases.len(), ours.version());
    let ended = scene.run(&scene.arguments(&["plan"], &[])).await;
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!["configure", "create", "refuse"].iter().any(|word| shown.contains(word)), "{shown}");
    for cluster in [ours, theirs] {
        let other = format!("{NAMESPACE}-other");
        cluster.kubectl(&["delete", "namespace", &other, "--wait=false"]).await.expect("deleted");
        let kinds = ["widgets", "realms", "gadgets"].map(|name| format!("{name}.charts.example.com"));
        let delete = [&["delete", "crd", "--wait=false"], &kinds.each_ref().map(String::as_str)[..]].concat();
        cluster.kubectl(&delete).await.expect("deleted");
    }
}
