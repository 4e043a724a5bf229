//! Unreachable clusters and failing requests.

use futures::StreamExt;
use kube::api::{PostParams, WatchParams};
use sandbox::{Fault, RequestMatch};
use serde_json::json;

use crate::support::{apply, config_map, config_maps, instant_cluster, refusal_status};

#[tokio::test]
async fn a_cluster_that_is_down_cannot_be_reached() {
    let (sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let mut watch = Box::pin(api.watch(&WatchParams::default(), "0").await.unwrap());
    watch.next().await;
    sandbox.set_down(true);
    assert!(!matches!(api.get("x").await.unwrap_err(), kube::Error::Api(_)));
    while let Some(event) = watch.next().await {
        if event.is_err() {
            break;
        }
    }
    sandbox.set_down(false);
    assert_eq!(refusal_status(api.get("x").await).code, 404);
}

#[tokio::test]
async fn requests_are_counted() {
    let (sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    apply(&api, "a", &config_map("one", json!({}))).await.unwrap();
    api.get("one").await.unwrap();
    let applies = RequestMatch::any().verb("apply").resource("configmaps");
    assert_eq!(sandbox.count_requests(&applies), 1);
    assert_eq!(sandbox.count_requests(&RequestMatch::writes()), 1);
    sandbox.reset_requests();
    assert!(sandbox.requests().is_empty());
}

#[tokio::test]
async fn planned_faults_apply_once() {
    let (sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    sandbox.fail_next(RequestMatch::writes(), 1, Fault::forbidden());
    let object = config_map("one", json!({}));
    assert_eq!(refusal_status(apply(&api, "a", &object).await).code, 403);
    apply(&api, "a", &object).await.unwrap();
}

#[tokio::test]
async fn lost_response_hides_a_successful_write() {
    let (sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let make = |name: &str| serde_json::from_value(config_map(name, json!({}))).unwrap();
    sandbox.fail_nth(RequestMatch::writes(), 1, Fault::DropAfter);
    api.create(&PostParams::default(), &make("one")).await.unwrap();
    assert!(!matches!(
        api.create(&PostParams::default(), &make("two")).await.unwrap_err(),
        kube::Error::Api(_)
    ));
    api.get("two").await.unwrap();
    sandbox.fail_next(RequestMatch::writes(), 1, Fault::DropBefore);
    api.create(&PostParams::default(), &make("three")).await.unwrap_err();
    assert_eq!(refusal_status(api.get("three").await).code, 404);
}
