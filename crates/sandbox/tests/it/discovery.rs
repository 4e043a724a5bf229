//! Legacy and aggregated discovery return the same kinds.

use kube::discovery::{Discovery, Scope};
use serde_json::{Value, json};

use crate::support::{cluster_with, instant_cluster};

#[tokio::test]
async fn both_forms_name_the_same_kinds() {
    let (_sandbox, client) = instant_cluster();
    let kinds = |discovery: &Discovery| {
        let mut kinds: Vec<String> = discovery
            .groups()
            .flat_map(|group| group.resources_by_stability())
            .map(|(resource, capabilities)| {
                format!(
                    "{}/{} {:?}",
                    resource.api_version,
                    resource.kind,
                    capabilities.scope == Scope::Namespaced
                )
            })
            .collect();
        kinds.sort();
        kinds
    };
    let legacy = kinds(&Discovery::new(client.clone()).run().await.unwrap());
    let aggregated = kinds(&Discovery::new(client).run_aggregated().await.unwrap());
    assert!(legacy.contains(&"apps/v1/Deployment true".to_owned()), "{legacy:?}");
    assert!(legacy.contains(&"v1/Namespace false".to_owned()), "{legacy:?}");
    assert_eq!(legacy, aggregated);
}

#[tokio::test]
async fn an_old_server_has_no_aggregated_discovery() {
    let options =
        sandbox::SandboxOptions { aggregated_discovery: false, ..sandbox::SandboxOptions::instant("old") };
    let (_sandbox, client) = cluster_with(options);
    let found = Discovery::new(client).run_aggregated().await;
    assert!(found.is_err() || found.unwrap().groups().count() == 0);
}

#[tokio::test]
async fn server_has_the_requested_version() {
    let (_sandbox, client) = instant_cluster();
    let version = client.apiserver_version().await.unwrap();
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
}

#[tokio::test]
async fn health_is_ok() {
    let (_sandbox, client) = instant_cluster();
    let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
    assert_eq!(client.request_text(request).await.unwrap(), "ok");
}

async fn get_document(client: &kube::Client, path: &str) -> Value {
    let request = http::Request::get(format!("/openapi/v3/{path}")).body(Vec::new()).unwrap();
    client.request(request).await.unwrap()
}

#[tokio::test]
async fn documents_define_everything_that_they_refer_to() {
    let (_sandbox, client) = instant_cluster();
    let index = get_document(&client, "").await;
    for path in index["paths"].as_object().unwrap().keys() {
        let text = get_document(&client, path).await;
        let defined = text["components"]["schemas"].as_object().unwrap();
        let said = text.to_string();
        for reference in said.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(defined.contains_key(name), "{path}: {name}");
        }
    }
}

#[tokio::test]
async fn openapi_documents_list_patch_parameters() {
    let (_sandbox, client) = instant_cluster();
    let text = get_document(&client, "apis/apps/v1").await;
    let patch = &text["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    let names: Vec<&str> =
        patch["parameters"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force", "pretty"]);
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
    let scale = &text["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["get"];
    assert_eq!(scale["x-kubernetes-group-version-kind"]["group"], "autoscaling");
}
