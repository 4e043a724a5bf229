//! Create, read, update, patch, delete.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::{
    config_map, config_maps, deployment, deployments, instant_cluster, refusal_status, wait_until,
};

fn from_json<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

#[tokio::test]
async fn a_created_object_has_identity_and_owner() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let made =
        api.create(&PostParams::default(), &from_json(config_map("one", json!({"a": "1"})))).await.unwrap();
    assert!(made.uid().is_some() && made.resource_version().is_some());
    let entry = &made.managed_fields()[0];
    assert_eq!(entry.operation.as_deref(), Some("Update"));
    assert_eq!(serde_json::to_value(&entry.fields_v1).unwrap(), json!({"f:data": {".": {}, "f:a": {}}}));
}

#[tokio::test]
async fn refusals_have_the_servers_messages() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let post = PostParams::default();
    let one: ConfigMap = from_json(config_map("one", json!({})));
    api.create(&post, &one).await.unwrap();

    let again = refusal_status(api.create(&post, &one).await);
    assert_eq!((again.code, again.reason.as_str()), (409, "AlreadyExists"));
    assert_eq!(again.message, "configmaps \"one\" already exists");

    let missing = refusal_status(api.get("two").await);
    assert_eq!((missing.code, missing.message.as_str()), (404, "configmaps \"two\" not found"));

    let elsewhere: Api<ConfigMap> = Api::namespaced(client.clone(), "nowhere");
    let nowhere = refusal_status(elsewhere.create(&post, &one).await);
    assert_eq!((nowhere.code, nowhere.message.as_str()), (404, "namespaces \"nowhere\" not found"));

    let bad = refusal_status(api.create(&post, &from_json(config_map("Bad_Name", json!({})))).await);
    assert_eq!((bad.code, bad.reason.as_str()), (422, "Invalid"));
    assert!(
        bad.message.starts_with("ConfigMap \"Bad_Name\" is invalid: metadata.name: Invalid value"),
        "{}",
        bad.message
    );
}

#[tokio::test]
async fn a_stale_update_conflicts() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let first =
        api.create(&PostParams::default(), &from_json(config_map("one", json!({"a": "1"})))).await.unwrap();
    let mut changed = first.clone();
    changed.data = Some([("a".to_owned(), "2".to_owned())].into());
    api.replace("one", &PostParams::default(), &changed).await.unwrap();
    let status = refusal_status(api.replace("one", &PostParams::default(), &changed).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert!(status.message.contains("the object has been modified"), "{}", status.message);
}

#[tokio::test]
async fn generation_counts_spec_changes_only() {
    let (_sandbox, client) = instant_cluster();
    let api = deployments(&client);
    api.create(&PostParams::default(), &from_json(deployment("web", 1, "web:1"))).await.unwrap();
    let patch = |change: Value| {
        let api = api.clone();
        async move { api.patch("web", &PatchParams::default(), &Patch::Merge(change)).await.unwrap() }
    };
    let labelled = patch(json!({"metadata": {"labels": {"x": "y"}}})).await;
    assert_eq!(labelled.metadata.generation, Some(1));
    let scaled = patch(json!({"spec": {"replicas": 2}})).await;
    assert_eq!(scaled.metadata.generation, Some(2));
}

#[tokio::test]
async fn defaults_are_filled() {
    let (_sandbox, client) = instant_cluster();
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let service =
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let made = services.create(&PostParams::default(), &from_json(service)).await.unwrap().spec.unwrap();
    assert_eq!(made.type_.as_deref(), Some("ClusterIP"));
    assert!(made.cluster_ip.unwrap().starts_with("10.96."));
    assert_eq!(made.ports.unwrap()[0].protocol.as_deref(), Some("TCP"));

    let secrets: Api<Secret> = Api::default_namespaced(client);
    let secret = json!({"metadata": {"name": "key"}, "stringData": {"a": "b"}});
    let made = secrets.create(&PostParams::default(), &from_json(secret)).await.unwrap();
    assert_eq!(made.type_.as_deref(), Some("Opaque"));
    assert_eq!(made.data.unwrap()["a"].0, b"b");
}

#[tokio::test]
async fn immutable_fields_stay() {
    let (_sandbox, client) = instant_cluster();
    let api = deployments(&client);
    api.create(&PostParams::default(), &from_json(deployment("web", 1, "web:1"))).await.unwrap();
    let change = json!({"spec": {"selector": {"matchLabels": {"app": "other"}},
        "template": {"metadata": {"labels": {"app": "other"}}}}});
    let status = refusal_status(api.patch("web", &PatchParams::default(), &Patch::Merge(change)).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert!(
        status.message.starts_with("Deployment.apps \"web\" is invalid: spec.selector: Invalid value: "),
        "{}",
        status.message
    );
    assert!(status.message.ends_with(": field is immutable"), "{}", status.message);
}

#[tokio::test]
async fn immutable_config_map_cannot_change() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let mut sealed = config_map("one", json!({"a": "1"}));
    sealed["immutable"] = json!(true);
    api.create(&PostParams::default(), &from_json(sealed)).await.unwrap();
    let change = Patch::Merge(json!({"data": {"a": "2"}}));
    let status = refusal_status(api.patch("one", &PatchParams::default(), &change).await);
    assert_eq!(status.code, 422);
    assert!(
        status.message.contains("data: Forbidden: field is immutable when `immutable` is set"),
        "{}",
        status.message
    );
}

#[tokio::test]
async fn preconditions_guard_a_delete() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let made = api.create(&PostParams::default(), &from_json(config_map("one", json!({})))).await.unwrap();
    let with = |uid: Option<String>, resource_version: Option<String>| DeleteParams {
        preconditions: Some(Preconditions { uid, resource_version }),
        ..DeleteParams::default()
    };
    assert_eq!(refusal_status(api.delete("one", &with(Some("other".to_owned()), None)).await).code, 409);
    assert_eq!(refusal_status(api.delete("one", &with(None, Some("1".to_owned()))).await).code, 409);
    api.delete("one", &with(made.uid(), made.resource_version())).await.unwrap();
    assert_eq!(refusal_status(api.get("one").await).code, 404);
}

#[tokio::test]
async fn selectors_and_pages() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    for number in 0..5 {
        let mut object = config_map(&format!("c{number}"), json!({}));
        object["metadata"]["labels"] = json!({"odd": (number % 2).to_string()});
        api.create(&PostParams::default(), &from_json(object)).await.unwrap();
    }
    let odd = api.list(&ListParams::default().labels("odd=1")).await.unwrap();
    assert_eq!(odd.items.len(), 2);
    let named = api.list(&ListParams::default().fields("metadata.name=c3")).await.unwrap();
    assert_eq!(named.items.len(), 1);
    let first = api.list(&ListParams::default().limit(2).labels("odd")).await.unwrap();
    let token = first.metadata.continue_.unwrap();
    let rest = api.list(&ListParams::default().limit(10).labels("odd").continue_token(&token)).await.unwrap();
    assert_eq!((first.items.len(), rest.items.len()), (2, 3));
    assert_eq!(refusal_status(api.list(&ListParams::default().labels("a in b")).await).code, 400);
    assert_eq!(refusal_status(api.list(&ListParams::default().fields("spec.x=1")).await).code, 400);
}

#[tokio::test]
async fn a_collection_is_deleted_by_label() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    for name in ["a", "b", "c"] {
        let mut object = config_map(name, json!({}));
        object["metadata"]["labels"] = json!({"keep": (name == "b").to_string()});
        api.create(&PostParams::default(), &from_json(object)).await.unwrap();
    }
    api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("keep=false"))
        .await
        .unwrap();
    let left = api.list(&ListParams::default().labels("keep")).await.unwrap();
    assert_eq!(left.items.len(), 1);
    assert_eq!(left.items[0].name_any(), "b");
}

#[tokio::test]
async fn status_and_spec_are_written_separately() {
    let (_sandbox, client) = instant_cluster();
    let api = deployments(&client);
    api.create(&PostParams::default(), &from_json(deployment("web", 0, "web:1"))).await.unwrap();
    let change = Patch::Merge(json!({"spec": {"replicas": 9}, "status": {"collisionCount": 7}}));
    let changed = api.patch_status("web", &PatchParams::default(), &change).await.unwrap();
    assert_eq!(changed.spec.replicas, Some(0));
    assert_eq!(changed.status.unwrap().collision_count, Some(7));
    let change = Patch::Merge(json!({"status": {"collisionCount": 8}}));
    let kept = api.patch("web", &PatchParams::default(), &change).await.unwrap();
    assert_eq!(kept.status.unwrap().collision_count, Some(7));
}

#[tokio::test]
async fn metadata_alone_is_smaller() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    api.create(&PostParams::default(), &from_json(config_map("one", json!({"a": "1"})))).await.unwrap();
    let one = api.get_metadata("one").await.unwrap();
    assert_eq!(one.name_any(), "one");
    let list = api.list_metadata(&ListParams::default().fields("metadata.name=one")).await.unwrap();
    assert_eq!(list.items.len(), 1);
}

#[tokio::test]
async fn dry_runs_store_nothing() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    api.create(&dry, &from_json(config_map("one", json!({})))).await.unwrap();
    assert_eq!(refusal_status(api.get("one").await).code, 404);
}

#[tokio::test]
async fn finalizers_hold_a_deleted_object() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let mut held = config_map("one", json!({}));
    held["metadata"]["finalizers"] = json!(["test.dev/hold"]);
    api.create(&PostParams::default(), &from_json(held)).await.unwrap();
    let left = api.delete("one", &DeleteParams::default()).await.unwrap();
    assert!(left.left().is_some_and(|object| object.metadata.deletion_timestamp.is_some()));
    let freed = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("one", &PatchParams::default(), &freed).await.unwrap();
    assert_eq!(refusal_status(api.get("one").await).code, 404);
}

#[tokio::test(start_paused = true)]
async fn namespace_deletion_deletes_its_content() {
    let (_sandbox, client) = instant_cluster();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces
        .create(&PostParams::default(), &from_json(json!({"metadata": {"name": "team"}})))
        .await
        .unwrap();
    let api: Api<ConfigMap> = Api::namespaced(client, "team");
    api.create(&PostParams::default(), &from_json(config_map("one", json!({})))).await.unwrap();
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    for _ in 0..100 {
        if namespaces.get_opt("team").await.unwrap().is_none() {
            assert!(api.get_opt("one").await.unwrap().is_none());
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the namespace never went");
}

#[tokio::test]
async fn unsupported_requests_return_not_simulated() {
    let (_sandbox, client) = instant_cluster();
    let api = deployments(&client);
    api.create(&PostParams::default(), &from_json(deployment("web", 1, "web:1"))).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    wait_until(&api, "web", |web| web.status.as_ref().and_then(|status| status.ready_replicas) == Some(1))
        .await;
    let pod = pods.list(&ListParams::default()).await.unwrap().items.remove(0);
    let exec = http::Request::post(format!("/api/v1/namespaces/default/pods/{}/binding", pod.name_any()));
    let status = refusal_status(client.request::<Value>(exec.body(b"{}".to_vec()).unwrap()).await);
    assert_eq!((status.code, status.reason.as_str()), (501, "NotSimulated"));
}

#[tokio::test]
async fn scale_changes_replicas() {
    let (_sandbox, client) = instant_cluster();
    let api = deployments(&client);
    api.create(&PostParams::default(), &from_json(deployment("web", 1, "web:1"))).await.unwrap();
    assert_eq!(api.get_scale("web").await.unwrap().spec.unwrap().replicas, Some(1));
    let change = Patch::Merge(json!({"spec": {"replicas": 3}}));
    api.patch_scale("web", &PatchParams::default(), &change).await.unwrap();
    let web = api.get("web").await.unwrap();
    assert_eq!(web.spec.replicas, Some(3));
    assert!(web.managed_fields().iter().any(|entry| entry.subresource.as_deref() == Some("scale")));
}
