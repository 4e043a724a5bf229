//! Dry-run requests.

use http::Method;
use serde_json::json;

use super::probe::{ContractProbe, JSON_PATCH, MERGE_PATCH};

const CORE: &str = "/api/v1";

pub async fn a_dry_run_answers_as_if(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    let one = format!("{path}/one");
    probe.post(&format!("{path}?dryRun=All"), json!({"metadata": {"name": "one"}, "data": {"a": "b"}})).await;
    probe.get(&one).await;
    let kept = json!({"metadata": {"name": "one", "finalizers": ["example.com/hold"]}, "data": {"a": "b"}});
    probe.post(&path, kept.clone()).await;
    probe.post(&format!("{path}?dryRun=All"), kept).await;
    let changed = json!({"metadata": {"name": "one"}, "data": {"a": "c"}});
    probe.put(&format!("{one}?dryRun=All"), changed).await;
    probe.patch(MERGE_PATCH, &format!("{one}?dryRun=All"), json!({"data": {"a": "d"}})).await;
    let replace = json!([{"op": "replace", "path": "/data/a", "value": "e"}]);
    probe.patch(JSON_PATCH, &format!("{one}?dryRun=All"), replace).await;
    probe.delete(&format!("{one}?dryRun=All"), None).await;
    probe.get(&one).await;
    probe.patch(MERGE_PATCH, &one, json!({"metadata": {"finalizers": null}})).await;
    probe.delete(&format!("{one}?dryRun=All"), None).await;
    probe.delete(&one, Some(json!({"dryRun": ["All"]}))).await;
    probe.delete(&format!("{path}?dryRun=All&labelSelector=none"), None).await;
    probe.get(&one).await;
}

pub async fn a_dry_run_fills_defaults_and_checks(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "services");
    let service =
        json!({"metadata": {"name": "one"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}});
    probe.post(&format!("{path}?dryRun=All"), service).await;
    let bad = json!({"metadata": {"name": "one"}, "spec": {"ports": [{"port": 0}]}});
    probe.post(&format!("{path}?dryRun=All"), bad).await;
    let roles = probe.namespaced_path("/apis/rbac.authorization.k8s.io/v1", "roles");
    probe.put(&format!("{roles}/put?dryRun=All"), json!({"metadata": {"name": "put"}, "rules": []})).await;
    probe.get(&format!("{roles}/put")).await;
    let config =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "b"}});
    let applied = probe.namespaced_path(CORE, "configmaps/applied");
    probe.apply("tester", &format!("{applied}?dryRun=All"), config).await;
    probe.get(&applied).await;
    let prefix = json!({"metadata": {"generateName": "made-"}});
    let config_maps = probe.namespaced_path(CORE, "configmaps?dryRun=All");
    let made = probe.stop_recording().post(&config_maps, prefix).await;
    let name = made.text("/metadata/name");
    probe.start_recording().record_value("generated", &json!([name.len(), name.starts_with("made-")]));
}

pub async fn bad_values_of_dry_run(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    let one = format!("{path}/one");
    let object = json!({"metadata": {"name": "one"}});
    probe.stop_recording().post(&path, object.clone()).await;
    probe.start_recording();
    for value in ["all", "Nope", "true", "All&dryRun=Nope", ""] {
        let other = json!({"metadata": {"name": "other"}});
        probe.post(&format!("{path}?dryRun={value}"), other).await;
    }
    probe.put(&format!("{one}?dryRun=x"), object.clone()).await;
    probe.patch(MERGE_PATCH, &format!("{one}?dryRun=x"), json!({})).await;
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}});
    probe.apply("tester", &format!("{one}?dryRun=x"), config).await;
    probe.delete(&format!("{one}?dryRun=x"), None).await;
    probe.delete(&one, Some(json!({"dryRun": ["x"]}))).await;
    probe.delete(&format!("{path}?dryRun=x"), None).await;
    let twice = format!("{one}?dryRun=All&dryRun=All");
    probe.put(&twice, json!({"metadata": {"name": "one"}, "data": {"never": "stored"}})).await;
    probe.send(Method::GET, &format!("{one}?dryRun=x"), &[], "").await;
}
