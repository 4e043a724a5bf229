//! Changes by people and controllers to applied objects on a real server.

mod in_place;
mod mutating_webhook;
mod rows;
mod streams;
mod table;
mod versions;

use serde_json::{Value, json};

pub(super) use self::table::{AuditedCluster, request_names};
use super::support::{LiveFixture, configmap, deployment};

const KINDS: [&str; 4] = ["deployments", "configmaps", "secrets", "services"];

/// The part of an object that Git sets.
fn spec_and_metadata(object: &Value) -> Value {
    let container = object.pointer("/spec/template/spec/containers/0").cloned().unwrap_or_default();
    json!([
        object["data"],
        object["spec"]["replicas"],
        object["spec"]["selector"],
        container["image"],
        object["metadata"]["labels"],
    ])
}

/// The fields that our applies own.
fn owned_fields(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let ours =
        entries.filter(|entry| entry["manager"].as_str().is_some_and(|name| name.starts_with("tutti-")));
    ours.map(|entry| entry["fieldsV1"].clone()).collect()
}

/// Waits until an object has its former content, and our applies own their former fields.
async fn until_restored(
    scene: &LiveFixture,
    what: &str,
    before: &Value,
    said: fn(&Value) -> Value,
    get: impl AsyncFn() -> Result<Value, String>,
) {
    scene
        .eventually(what, async || {
            let now = get().await?;
            if (said(&now), owned_fields(&now)) == (said(before), owned_fields(before)) {
                Ok(())
            } else {
                Err(format!("{now}\nand was\n{before}"))
            }
        })
        .await;
}

#[tokio::test]
async fn every_kind_of_drift_is_put_back() {
    let Some(scene) = LiveFixture::new("drift", 1).await else { return };
    let cluster = scene.cluster(0);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, "stringData": {"password": "one"}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    scene.write_app(
        "web",
        &[deployment("web", "shop/web:1.0", 2), configmap("web", "level", "info"), secret, service],
    );
    let commit = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&commit).await;
    let mut before = Vec::new();
    for kind in KINDS {
        before.push(scene.object(cluster, kind, "web").await.expect("an object"));
    }
    let image = r#"{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"shop/web:9"}]}}}}"#;
    let off = r#"{"metadata":{"labels":{"tutti.dev/managed-by":null}}}"#;
    let patch = |kind, what| vec!["patch", kind, "web", "--patch", what];
    let merge = |kind, what| vec!["patch", kind, "web", "--type=merge", "--patch", what];
    let edits = [
        patch("deployments", image),
        vec!["scale", "deployments", "web", "--replicas=5"],
        merge("configmaps", r#"{"data":{"level":"debug"}}"#),
        merge("configmaps", r#"{"data":{"level":null}}"#),
        merge("configmaps", r#"{"metadata":{"managedFields":[{}]}}"#),
        merge("configmaps", off),
        merge("deployments", off),
        merge("secrets", r#"{"data":{"password":"dHdv"}}"#),
        merge("services", r#"{"spec":{"selector":{"app":"other"}}}"#),
        vec!["delete", "configmaps", "web"],
        vec!["delete", "deployments", "web"],
    ];
    for edit in edits {
        let mut arguments = edit.clone();
        arguments.extend(["-n", scene.name()]);
        cluster.kubectl(&arguments).await.unwrap_or_else(|error| panic!("{edit:?}: {error}"));
        scene
            .eventually(&format!("{edit:?} is put back"), async || {
                for (kind, before) in KINDS.iter().zip(&before) {
                    let now = scene.object(cluster, kind, "web").await?;
                    if (spec_and_metadata(&now), owned_fields(&now))
                        != (spec_and_metadata(before), owned_fields(before))
                    {
                        return Err(format!("{kind}: {now}"));
                    }
                }
                Ok(())
            })
            .await;
    }

    let scaled = r#"{"spec":{"replicas":4}}"#;
    let namespace = scene.name();
    let by_autoscaler =
        ["patch", "deployments", "web", "--subresource=scale", "--type=merge", "--patch", scaled];
    let by_autoscaler = [&by_autoscaler[..], &["--field-manager=keda-operator", "-n", namespace]].concat();
    cluster.kubectl(&by_autoscaler).await.expect("scaled");
    scene.write_objects("web", &[deployment("web", "shop/web:1.1", 2)]);
    let commit = scene.worktree.publish("a new version");
    scene.until_succeeded(&commit).await;
    scene.until_ready(cluster, "web", "shop/web:1.1", 4).await;
}
