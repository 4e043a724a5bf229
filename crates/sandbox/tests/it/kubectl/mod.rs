//! kubectl against the listener.

mod normalization;
mod program;
mod transcripts;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use sandbox::{Sandbox, SandboxOptions};
use serde_json::json;

use crate::support::{config_map, config_maps, deployment};
use program::Kubectl;

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_from_apply_to_delete() {
    let Some(kubectl) = Kubectl::new().await else { return };
    kubectl.write("web.json", &deployment("web", 2, "web:1"));
    kubectl.check_output("version", "Server Version: v1.36").await;
    kubectl.check_output("get nodes", "bj1-node-1").await;
    kubectl.check_output("apply --server-side -f web.json", "deployment.apps/web serverside-applied").await;
    kubectl.check_output("rollout status deployment/web --timeout=30s", "successfully rolled out").await;
    kubectl.check_output("get deployments", "2/2").await;
    kubectl.check_output("get pods", "Running").await;
    kubectl.check_output("get all", "replicaset.apps/web-").await;
    kubectl.check_output("describe deployment web", "NewReplicaSetAvailable").await;
    kubectl.check_output("logs deployment/web", "ready").await;
    kubectl.check_output("scale deployment web --replicas=3", "scaled").await;
    kubectl.check_output("rollout status deployment/web --timeout=30s", "successfully rolled out").await;
    kubectl
        .check_output("wait --for=condition=Available deployment/web --timeout=30s", "condition met")
        .await;
    let (success, text) = kubectl.output("apply --server-side --field-manager=other -f web.json").await;
    assert!(!success && text.contains("Apply failed with 1 conflict: conflict with \"kubectl\""), "{text}");
    kubectl.check_output("delete deployment web --timeout=30s", "deleted").await;
    kubectl.check_output("wait --for=delete pod -l app=web --timeout=30s", "").await;
    kubectl.check_output("get pods", "No resources found").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everyday_commands() {
    let Some(kubectl) = Kubectl::new().await else { return };
    kubectl.write("web.json", &deployment("web", 1, "web:1"));
    kubectl
        .write("team.json", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}));
    kubectl.write("one.json", &config_map("one", json!({"a": "1"})));
    // `create namespace` would send protobuf
    kubectl.check_output("create -f team.json", "namespace/team created").await;
    kubectl.check_output("create -f one.json", "created").await;
    kubectl.check_output("get configmap one -o yaml", "a: \"1\"").await;
    kubectl.check_output("label configmap one x=y", "labeled").await;
    kubectl.check_output("annotate configmap one x=y", "annotated").await;
    kubectl.check_output("patch configmap one --type=merge -p {\"data\":{\"b\":\"2\"}}", "patched").await;
    kubectl.check_output("apply -f web.json", "deployment.apps/web created").await;
    kubectl.check_output("apply -f web.json", "deployment.apps/web unchanged").await;
    kubectl.check_output("apply --server-side -f web.json", "deployment.apps/web serverside-applied").await;
    // a status change between the two reads of `diff` would be a difference
    kubectl.check_output("rollout status deployment/web --timeout=30s", "successfully rolled out").await;
    kubectl.check_output("diff --server-side -f web.json", "").await;
    kubectl.check_output("set image deployment/web main=web:2", "image updated").await;
    kubectl.check_output("rollout status deployment/web --timeout=30s", "successfully rolled out").await;
    kubectl.check_output("rollout history deployment/web", "2").await;
    kubectl.check_output("rollout undo deployment/web", "rolled back").await;
    kubectl.check_output("rollout restart deployment/web", "restarted").await;
    kubectl
        .check_output(
            "get deployment web --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}",
            "kubectl",
        )
        .await;
    kubectl.check_output("delete namespace team --timeout=30s", "deleted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_refused() {
    let sandbox = Sandbox::new(SandboxOptions::instant("bj1"));
    let listener = sandbox.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let client = |text: String| async move {
        let config = Kubeconfig::from_yaml(&text).unwrap();
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
        Client::try_from(config).unwrap()
    };
    let good = client(listener.kubeconfig()).await;
    assert_eq!(crate::support::refusal_status(config_maps(&good).get("x").await).code, 404);
    let bad = client(listener.kubeconfig().replace(listener.token(), "guess")).await;
    assert_eq!(crate::support::refusal_status(config_maps(&bad).get("x").await).code, 401);
    sandbox.set_down(true);
    assert!(!matches!(config_maps(&good).get("x").await.unwrap_err(), kube::Error::Api(_)));
}
