//! Servers of older Kubernetes releases.

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::Discovery;
use sandbox::{Release, Sandbox, SandboxOptions};
use serde_json::{Value, json};

fn release_cluster(minor: u32) -> (Sandbox, Client) {
    let sandbox = Sandbox::new(SandboxOptions::instant("old").running(Release::new(minor).unwrap()));
    let client = Client::new(sandbox.service(), "default");
    (sandbox, client)
}

fn api(client: &Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match kind {
        "Namespace" => Api::all_with(client.clone(), &resource),
        _ => Api::namespaced_with(client.clone(), "default", &resource),
    }
}

async fn get(client: &Client, path: &str) -> Result<Value, u16> {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    client.request(request).await.map_err(|error| match error {
        kube::Error::Api(status) => status.code,
        other => panic!("{other}"),
    })
}

/// Served versions of kinds that moved.
async fn check_served(minor: u32, expected: &[&str]) {
    let (_sandbox, client) = release_cluster(minor);
    let found = Discovery::new(client.clone()).run().await.unwrap();
    let moved = ["CronJob", "PodDisruptionBudget", "HorizontalPodAutoscaler", "EndpointSlice", "ServiceCIDR"];
    let mut versions: Vec<String> = found
        .groups()
        .flat_map(|group| group.resources_by_stability())
        .filter(|(api, _)| moved.contains(&api.kind.as_str()))
        .map(|(api, _)| format!("{}/{}", api.api_version, api.kind))
        .collect();
    versions.sort();
    assert_eq!(versions, expected, "1.{minor}");
    assert_eq!(client.apiserver_version().await.unwrap().minor, minor.to_string());
}

#[tokio::test]
async fn each_release_serves_its_apis() {
    let oldest = [
        "autoscaling/v1/HorizontalPodAutoscaler",
        "batch/v1beta1/CronJob",
        "policy/v1beta1/PodDisruptionBudget",
    ];
    check_served(20, &oldest).await;
    let old = [
        "autoscaling/v2/HorizontalPodAutoscaler",
        "batch/v1/CronJob",
        "discovery.k8s.io/v1/EndpointSlice",
        "policy/v1/PodDisruptionBudget",
    ];
    check_served(24, &old).await;
    let newest = [&old[..3], &["networking.k8s.io/v1/ServiceCIDR"], &old[3..]].concat();
    check_served(36, &newest).await;
}

#[tokio::test]
async fn old_releases_have_empty_aggregated_discovery() {
    for (minor, is_there) in [(20, false), (29, false), (30, true)] {
        let (_sandbox, client) = release_cluster(minor);
        let groups = client.list_api_groups_aggregated().await.unwrap().items;
        assert_eq!(!groups.is_empty(), is_there, "1.{minor}");
    }
}

#[tokio::test]
async fn old_releases_have_no_openapi_v3() {
    assert_eq!(get(&release_cluster(23).1, "/openapi/v3").await, Err(404));
    assert!(get(&release_cluster(24).1, "/openapi/v3").await.is_ok());
}

#[tokio::test]
async fn oldest_release_requires_port_protocol_in_apply() {
    let service = |port: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [port]}})
    };
    let apply = async |minor: u32, port: Value| {
        let (_sandbox, client) = release_cluster(minor);
        let patch = Patch::Apply(service(port));
        let applied = api(&client, "", "v1", "Service").patch("web", &PatchParams::apply("a"), &patch).await;
        applied.map(drop).map_err(|error| error.to_string())
    };
    let refused = apply(20, json!({"port": 80})).await.unwrap_err();
    assert!(refused.contains("omits key field \"protocol\""), "{refused}");
    assert_eq!(apply(20, json!({"port": 80, "protocol": "TCP"})).await, Ok(()));
    assert_eq!(apply(21, json!({"port": 80})).await, Ok(()));
}

#[tokio::test]
async fn old_releases_ignore_newer_parameters() {
    let watch =
        "/api/v1/configmaps?watch=true&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true";
    for (minor, expected) in [(26, 200), (27, 422), (31, 422)] {
        let (_sandbox, client) = release_cluster(minor);
        let request = http::Request::get(watch).body(Vec::new()).unwrap();
        let code = match client.request_text(request).await {
            Ok(_) => 200,
            Err(kube::Error::Api(status)) => status.code,
            Err(other) => panic!("{other}"),
        };
        assert_eq!(code, expected, "1.{minor}");
    }
    for (minor, taken) in [(24, true), (25, false)] {
        let (_sandbox, client) = release_cluster(minor);
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dada": {"b": "c"}});
        let request = http::Request::post("/api/v1/namespaces/default/configmaps?fieldValidation=Strict");
        let request = request.header("content-type", "application/json").body(map.to_string().into_bytes());
        let made = client.request::<Value>(request.unwrap()).await;
        assert_eq!(made.is_ok(), taken, "1.{minor}: {made:?}");
    }
}

#[tokio::test]
async fn old_releases_do_not_track_subresources() {
    for (minor, is_told) in [(21, false), (22, true)] {
        let (_sandbox, client) = release_cluster(minor);
        let web = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}},
        });
        let deployments = api(&client, "apps", "v1", "Deployment");
        let object = serde_json::from_value(web).unwrap();
        deployments.create(&PostParams::default(), &object).await.unwrap();
        let by = PatchParams { field_manager: Some("scaler".to_owned()), ..PatchParams::default() };
        deployments.patch_scale("web", &by, &Patch::Merge(json!({"spec": {"replicas": 3}}))).await.unwrap();
        let status = Patch::Merge(json!({"status": {"conditions": [{"type": "Odd", "status": "True"}]}}));
        deployments.patch_status("web", &by, &status).await.unwrap();
        let live = serde_json::to_value(deployments.get("web").await.unwrap()).unwrap();
        assert_eq!(live["spec"]["replicas"], 3);
        let entries = live["metadata"]["managedFields"].as_array().unwrap();
        let of_scaler: Vec<&Value> = entries.iter().filter(|entry| entry["manager"] == "scaler").collect();
        let replicas = |entry: &&Value| entry.pointer("/fieldsV1/f:spec/f:replicas").is_some();
        assert_eq!(of_scaler.iter().any(replicas), is_told, "1.{minor}: {entries:?}");
        assert_eq!(entries.iter().any(|entry| entry.get("subresource").is_some()), is_told, "1.{minor}");
    }
}

#[tokio::test]
async fn namespaces_of_the_oldest_release_carry_no_name() {
    for (minor, is_there) in [(20, false), (21, true)] {
        let (_sandbox, client) = release_cluster(minor);
        let default = api(&client, "", "v1", "Namespace").get("default").await.unwrap();
        let labels = default.metadata.labels.unwrap_or_default();
        assert_eq!(labels.contains_key("kubernetes.io/metadata.name"), is_there, "1.{minor}");
    }
}
