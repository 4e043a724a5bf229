//! Values that the server adds to objects: every leaf of a kube-apiserver 1.36's response to a dry run
//! (`tests/golden/defaults`, one file for each kind).

use std::path::Path;

use http::Request;
use kube::Client;
use serde_json::Value;

use crate::support::instant_cluster;

#[tokio::test(start_paused = true)]
async fn objects_are_filled_as_on_a_real_server() {
    let (_sandbox, client) = instant_cluster();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/defaults");
    let mut differences = Vec::new();
    let mut cases = 0;
    for file in std::fs::read_dir(golden).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let kind: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
        for (name, case) in &kind {
            let answer = without_server_values(&create_object(&client, case).await);
            let (ours, theirs) = (leaf_lines(&answer), leaf_lines(&without_server_values(&case["observed"])));
            let lacks = theirs.iter().filter(|leaf| !ours.contains(leaf)).map(|leaf| format!("-{leaf}"));
            let adds = ours.iter().filter(|leaf| !theirs.contains(leaf)).map(|leaf| format!("+{leaf}"));
            differences.extend(lacks.chain(adds).map(|leaf| format!("{name}: {leaf}")));
            cases += 1;
        }
    }
    assert!(cases > 90, "only {cases} cases");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

async fn create_object(client: &Client, case: &Value) -> Value {
    let path = format!("{}?dryRun=All&fieldValidation=Ignore", case["path"].as_str().unwrap());
    let body = case["said"].to_string().into_bytes();
    let request = Request::post(path).header("content-type", "application/json").body(body).unwrap();
    client.request(request).await.unwrap_or_else(|error| panic!("{}: {error}", case["said"]))
}

/// Without fields that differ between servers.
fn without_server_values(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "managedFields", "creationTimestamp", "namespace"] {
            metadata.shift_remove(field);
        }
    }
    object
}

/// `/spec/replicas 1`, sorted.
fn leaf_lines(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_leaves("", value, &mut found);
    found.sort();
    found
}

fn collect_leaves(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(name, below)| collect_leaves(&format!("{path}/{name}"), below, found));
        }
        Value::Array(items) if !items.is_empty() => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, below)| collect_leaves(&format!("{path}/{at}"), below, found));
        }
        leaf => found.push(format!("{path} {}", mask_random_value(path, &leaf.to_string()))),
    }
}

/// Random and time-dependent values of servers.
fn mask_random_value(path: &str, leaf: &str) -> String {
    let is_drawn = path.ends_with("odePort")
        || path.ends_with("Time") && leaf.contains("TIME")
        || path.ends_with("lastPhaseTransitionTime")
        || path.ends_with("/clusterIP")
        || path.ends_with("/clusterIPs/0");
    let is_address = leaf.starts_with("\"10.96.") || path.ends_with("Time") || path.ends_with("odePort");
    let is_own = path.contains("controller-uid")
        || path.contains("renewTime")
        || path.contains("eventTime")
        || path.ends_with("Timestamp");
    match leaf {
        _ if is_drawn && is_address || is_own => "drawn".to_owned(),
        _ if leaf.contains("kube-api-access-") => "\"kube-api-access-X\"".to_owned(),
        _ => leaf.to_owned(),
    }
}
