//! Server-side apply: ownership, conflicts, force, pruning.

use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::{
    apply, config_map, config_maps, deployment, deployments, instant_cluster, refusal_status,
};

#[tokio::test]
async fn repeated_apply_changes_nothing() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let object = config_map("one", json!({"a": "1"}));
    let first = apply(&api, "a", &object).await.unwrap();
    let again = apply(&api, "a", &object).await.unwrap();
    assert_eq!(first.resource_version(), again.resource_version());
    assert_eq!(first.managed_fields(), again.managed_fields());
}

#[tokio::test]
async fn managed_fields_match_a_real_server() {
    let (_sandbox, client) = instant_cluster();
    let made = apply(&deployments(&client), "a", &deployment("web", 2, "web:1")).await.unwrap();
    let entry = made.managed_fields().iter().find(|entry| entry.manager.as_deref() == Some("a")).unwrap();
    assert_eq!(entry.operation.as_deref(), Some("Apply"));
    assert_eq!(
        serde_json::to_value(&entry.fields_v1).unwrap(),
        json!({"f:spec": {
            "f:replicas": {}, "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {
                    ".": {}, "f:image": {}, "f:name": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                }}},
            },
        }})
    );
}

#[tokio::test]
async fn a_conflict_names_manager_and_field() {
    let (_sandbox, client) = instant_cluster();
    let api = deployments(&client);
    let post =
        PostParams { field_manager: Some("kubectl-client-side-apply".to_owned()), ..PostParams::default() };
    let object = serde_json::from_value(deployment("web", 1, "web:1")).unwrap();
    api.create(&post, &object).await.unwrap();
    let status = refusal_status(apply(&api, "b", &deployment("web", 3, "web:1")).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using apps/v1: .spec.replicas"
    );
    let cause = &status.details.unwrap().causes[0];
    assert_eq!(cause.reason, "FieldManagerConflict");
    assert_eq!(cause.message, "conflict with \"kubectl-client-side-apply\" using apps/v1");
    assert_eq!(cause.field, ".spec.replicas");
}

#[tokio::test]
async fn force_takes_over() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    apply(&api, "a", &config_map("one", json!({"x": "1", "y": "1"}))).await.unwrap();
    let theirs: Value = config_map("one", json!({"x": "2"}));
    refusal_status(apply(&api, "b", &theirs).await);
    let taken = api.patch("one", &PatchParams::apply("b").force(), &Patch::Apply(&theirs)).await.unwrap();
    assert_eq!(taken.data.unwrap()["x"], "2");
    let kept = apply(&api, "a", &config_map("one", json!({"y": "1"}))).await.unwrap();
    assert_eq!(kept.data.unwrap().len(), 2);
}

#[tokio::test]
async fn dropped_fields_are_pruned_or_reset_to_defaults() {
    let (_sandbox, client) = instant_cluster();
    let api = deployments(&client);
    let mut object = deployment("web", 3, "web:1");
    object["metadata"]["labels"] = json!({"x": "1"});
    apply(&api, "a", &object).await.unwrap();
    object["metadata"]["labels"] = json!({});
    object["spec"].as_object_mut().unwrap().remove("replicas");
    let dropped = apply(&api, "a", &object).await.unwrap();
    assert!(dropped.labels().is_empty());
    assert_eq!(dropped.spec.replicas, Some(1));
}

#[tokio::test]
async fn a_dry_run_answers_and_keeps_the_object() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let first = apply(&api, "a", &config_map("one", json!({"x": "1"}))).await.unwrap();
    let change = config_map("one", json!({"x": "2"}));
    let params = PatchParams::apply("a").dry_run();
    let answer = api.patch("one", &params, &Patch::Apply(&change)).await.unwrap();
    assert_eq!(answer.data.unwrap()["x"], "2");
    assert_eq!(api.get("one").await.unwrap().resource_version(), first.resource_version());
}

#[tokio::test]
async fn an_apply_needs_a_manager_and_a_namespace() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let object = config_map("one", json!({}));
    let nobody = refusal_status(api.patch("one", &PatchParams::default(), &Patch::Apply(&object)).await);
    assert_eq!(nobody.code, 422);
    let nowhere: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = kube::Api::namespaced(client, "nowhere");
    let missing = refusal_status(apply(&nowhere, "a", &object).await);
    assert_eq!((missing.code, missing.message.as_str()), (404, "namespaces \"nowhere\" not found"));
}

#[tokio::test]
async fn patch_can_return_metadata_only() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let object = config_map("one", json!({"x": "1"}));
    let answer = api.patch_metadata("one", &PatchParams::apply("a"), &Patch::Apply(&object)).await.unwrap();
    assert_eq!(answer.name_any(), "one");
}

#[tokio::test(start_paused = true)]
async fn reapplied_quantities_change_nothing() {
    let (_sandbox, client) = instant_cluster();
    let api = deployments(&client);
    let mut object = deployment("web", 0, "web:1");
    object["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "1000m", "memory": "1024Mi"}});
    apply(&api, "a", &object).await.unwrap();
    // the controllers write first
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let first = api.get("web").await.unwrap();
    let stored = serde_json::to_value(&first).unwrap();
    let requests = &stored["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"];
    assert_eq!(*requests, json!({"cpu": "1", "memory": "1Gi"}));
    let again = apply(&api, "a", &object).await.unwrap();
    assert_eq!(first.resource_version(), again.resource_version());
}
