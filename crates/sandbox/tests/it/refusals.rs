//! Refusals: code, message and causes of a kube-apiserver 1.36 for a dry run (`tests/golden/refusals`, one file for each
//! kind).

use std::path::Path;

use http::Request;
use kube::Client;
use serde_json::Value;

use crate::support::{instant_cluster, refusal_status};

#[tokio::test(start_paused = true)]
async fn objects_are_refused_as_by_a_real_server() {
    let (_sandbox, client) = instant_cluster();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/refusals");
    let mut differences = Vec::new();
    let mut cases = 0;
    for file in std::fs::read_dir(golden).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let kind: Vec<Value> = serde_json::from_str(&text).unwrap();
        for case in &kind {
            let (code, message) = dry_run_answer(&client, case).await;
            if Some(code) != case["code"].as_u64()
                || sorted_words(&message) != sorted_words(case_message(case))
            {
                differences.push(format!(
                    "{}\n  ours   {code} {message}\n  theirs {}",
                    case["said"],
                    case_message(case)
                ));
            }
            cases += 1;
        }
    }
    assert!(cases > 300, "only {cases} cases");
    assert!(differences.is_empty(), "{} of {cases}:\n{}", differences.len(), differences.join("\n"));
}

async fn dry_run_answer(client: &Client, case: &Value) -> (u64, String) {
    let path = format!("{}?dryRun=All&fieldValidation=Ignore", case["path"].as_str().unwrap());
    let body = case["said"].to_string().into_bytes();
    let request = Request::post(path).header("content-type", "application/json").body(body).unwrap();
    let status = refusal_status(client.request::<Value>(request).await);
    (status.code.into(), status.message)
}

fn case_message(case: &Value) -> &str {
    case["message"].as_str().unwrap()
}

/// The server iterates maps in a random order.
fn sorted_words(message: &str) -> Vec<&str> {
    let mut words: Vec<&str> = message.split([',', ' ', '[', ']']).filter(|word| !word.is_empty()).collect();
    words.sort_unstable();
    words
}
