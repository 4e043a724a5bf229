//! A change that the cluster never accepts fails and names the field; its revert heals.

use live::LiveCluster;
use serde_json::{Value, json};

use super::support::{LiveFixture, deployment};

#[tokio::test]
async fn an_immutable_field_fails_until_the_revert() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("immutable").await else { return };
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1)]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;

    let mut changed = deployment("web", "shop/web:1.0", 1);
    changed["spec"]["selector"]["matchLabels"]["app"] = "other".into();
    changed["spec"]["template"]["metadata"]["labels"]["app"] = "other".into();
    scene.write_objects("web", &[changed]);
    let bad = scene.worktree.publish("another selector");
    scene.until_status(&bad, "deploy", "failure", &["cluster-1", "web", "spec.selector"]).await;
    scene.until_logged_for_each(&["immutable/web", "Refused", "spec.selector"]).await;
    for cluster in scene.clusters() {
        scene.until_ready(cluster, "web", "shop/web:1.0", 1).await;
    }

    let back = scene.worktree.revert();
    scene.worktree.push();
    scene.until_succeeded(&back).await;
    for cluster in scene.clusters() {
        scene.until_ready(cluster, "web", "shop/web:1.0", 1).await;
    }
}

/// The server names `spec` and the mutable fields.
#[tokio::test]
async fn a_refused_stateful_set_names_its_fields() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("set-fields").await else { return };
    let set = |service: &str, size: &str| {
        let container = json!({"name": "app", "image": "shop/web:1.0"});
        let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}});
        let claim = json!({"metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}});
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"},
            "spec": {"replicas": 0, "serviceName": service, "selector": {"matchLabels": {"app": "web"}},
                "template": template, "volumeClaimTemplates": [claim]}})
    };
    scene.write_app("web", &[set("a", "1024Mi")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;

    scene.write_objects("web", &[set("b", "1024Mi")]);
    scene.worktree.publish("another service");
    scene
        .until_logged_for_each(&["Refused", "set-fields/web: spec.serviceName: updates to statefulset spec"])
        .await;
    scene.write_objects("web", &[set("a", "2Gi")]);
    scene.worktree.publish("more storage");
    let storage = "spec.volumeClaimTemplates[0].spec.resources.requests.storage: updates to statefulset spec";
    scene.until_logged_for_each(&["Refused", storage, "`replace: true`"]).await;
}

/// One object of each kind with an immutable field; `two` sets another value there.
fn objects_with_immutable_fields(two: bool) -> Vec<(&'static str, &'static str, Value)> {
    let one = |one: &'static str, other: &'static str| if two { other } else { one };
    let object = |api: &str, kind: &str, fields: Value| {
        let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": "web"}});
        object.as_object_mut().expect("a map").extend(fields.as_object().cloned().unwrap_or_default());
        object
    };
    let pods = |app: &str, restart: &str| {
        let container = json!({"name": "app", "image": one("shop/web:1", "shop/web:2")});
        json!({"metadata": {"labels": {"app": app}}, "spec": {"restartPolicy": restart, "containers": [container]}})
    };
    let app = one("web", "other");
    let selector = json!({"matchLabels": {"app": app}});
    let set = json!({"replicas": 0, "serviceName": one("a", "b"), "selector": {"matchLabels": {"app": "web"}},
        "template": pods("web", "Always")});
    let job = json!({"suspend": true, "template": pods("job", "Never")});
    let role = |name: &str| {
        let mut role = object("rbac.authorization.k8s.io/v1", "Role", json!({"rules": []}));
        role["metadata"]["name"] = name.into();
        role
    };
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": one("a", "b")});
    let deployment = json!({"replicas": 0, "selector": selector, "template": pods(app, "Always")});
    vec![
        ("deployments", "/spec/selector", object("apps/v1", "Deployment", json!({"spec": deployment}))),
        ("statefulsets", "/spec/serviceName", object("apps/v1", "StatefulSet", json!({"spec": set}))),
        ("jobs", "/spec/template/spec/containers/0/image", object("batch/v1", "Job", json!({"spec": job}))),
        ("roles", "", role("a")),
        ("roles", "", role("b")),
        (
            "rolebindings",
            "/roleRef/name",
            object("rbac.authorization.k8s.io/v1", "RoleBinding", json!({"roleRef": reference})),
        ),
        (
            "configmaps",
            "/data/level",
            object("v1", "ConfigMap", json!({"immutable": true, "data": {"level": one("info", "debug")}})),
        ),
        (
            "secrets",
            "/type",
            object(
                "v1",
                "Secret",
                json!({"type": one("Opaque", "example.com/other"), "stringData": {"a": "b"}}),
            ),
        ),
    ]
}

#[tokio::test]
async fn immutable_objects_are_replaced_on_request() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("replaced").await else { return };
    let objects = |two: bool| -> Vec<Value> {
        objects_with_immutable_fields(two).into_iter().map(|(_, _, object)| object).collect()
    };
    scene.write_app("web", &objects(false));
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;

    scene.write_objects("web", &objects(true));
    let refused = scene.worktree.publish("all others");
    scene.until_status(&refused, "deploy", "failure", &["cluster-1", "web", "`replace: true`"]).await;
    scene.until_logged_for_each(&["replaced/web", "Refused", "`replace: true`"]).await;
    scene.write_spec("web", &["replace: true"]);
    let replaced = scene.worktree.publish("replace them");
    scene.until_succeeded(&replaced).await;
    for cluster in scene.clusters() {
        until_replaced(&scene, cluster).await;
    }
}

async fn until_replaced(scene: &LiveFixture, cluster: &LiveCluster) {
    for (kind, field, wanted) in
        objects_with_immutable_fields(true).iter().filter(|(_, field, _)| !field.is_empty())
    {
        let arguments = ["get", kind, "web", "-o", "json", "-n", scene.name()];
        let found: Value =
            serde_json::from_str(&cluster.kubectl(&arguments).await.expect("an object")).expect("JSON");
        let (found, wanted) = (found.pointer(field), wanted.pointer(field));
        if *kind == "deployments" {
            assert_eq!(
                found.and_then(|it| it.get("matchLabels")),
                wanted.and_then(|it| it.get("matchLabels"))
            );
        } else {
            assert_eq!(found, wanted, "{kind} on {}", cluster.version());
        }
    }
}
