//! Watches: their events, the order, and how they end.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use http::Method;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use serde_json::json;

use super::probe::{ContractProbe, MERGE_PATCH};

const CORE: &str = "/api/v1";
const EVENT_TIMEOUT: Duration = Duration::from_secs(20);

fn secret(name: &str) -> serde_json::Value {
    json!({"metadata": {"name": name}})
}

pub async fn a_watch_tells_every_change_in_order(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "secrets");
    let first = probe.stop_recording().post(&path, secret("first")).await.revision();
    probe.start_recording();
    let mut watch = probe.watch(&format!("{path}?watch=true&resourceVersion={first}")).await;
    probe.stop_recording().post(&path, secret("one")).await;
    probe.post(&path, secret("two")).await;
    probe.patch(MERGE_PATCH, &format!("{path}/one"), json!({"metadata": {"labels": {"a": "b"}}})).await;
    let before = probe.delete(&format!("{path}/one"), None).await;
    assert_eq!(before.code, 200);
    probe.patch(MERGE_PATCH, &format!("{path}/two"), json!({"type": null})).await;
    probe.delete(&format!("{path}/two"), None).await;
    probe.start_recording();
    let events = watch.record(probe, 5).await;
    let revisions: Vec<u64> = events
        .iter()
        .filter_map(|event| event["object"]["metadata"]["resourceVersion"].as_str()?.parse().ok())
        .collect();
    probe.record_value("revisions grow", &json!(revisions.is_sorted_by(|left, right| left < right)));
}

pub async fn a_selector_makes_its_own_adds_and_deletes(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "secrets");
    let first = probe.stop_recording().post(&path, secret("one")).await.revision();
    probe.start_recording();
    let mut watch =
        probe.watch(&format!("{path}?watch=1&labelSelector=in=yes&resourceVersion={first}")).await;
    let one = format!("{path}/one");
    probe.stop_recording();
    probe.patch(MERGE_PATCH, &one, json!({"metadata": {"labels": {"in": "yes"}}})).await;
    probe.patch(MERGE_PATCH, &one, json!({"metadata": {"annotations": {"still": "in"}}})).await;
    probe.patch(MERGE_PATCH, &one, json!({"metadata": {"labels": {"in": "no"}}})).await;
    probe.patch(MERGE_PATCH, &one, json!({"metadata": {"annotations": {"still": "out"}}})).await;
    probe.patch(MERGE_PATCH, &one, json!({"metadata": {"labels": {"in": "yes"}}})).await;
    probe.delete(&one, None).await;
    probe.post(&path, secret("other")).await;
    probe.start_recording();
    watch.record(probe, 5).await;
}

pub async fn a_watch_of_one_name(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "secrets");
    let first = probe.stop_recording().post(&path, secret("one")).await.revision();
    probe.start_recording();
    let query = format!("watch=1&fieldSelector=metadata.name=two&resourceVersion={first}");
    let mut watch = probe.watch(&format!("{path}?{query}")).await;
    probe
        .stop_recording()
        .patch(MERGE_PATCH, &format!("{path}/one"), json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    probe.post(&path, secret("two")).await;
    probe.start_recording();
    watch.record(probe, 1).await;
    probe.get(&format!("{path}/one?watch=1&timeoutSeconds=1")).await;
}

pub async fn a_watch_without_a_revision_starts_with_what_is_there(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "secrets");
    probe.stop_recording().post(&path, secret("one")).await;
    let last = probe.post(&path, secret("two")).await.revision();
    // until the server's cache has both
    probe
        .wait_until(&format!("{path}?resourceVersion={last}&resourceVersionMatch=NotOlderThan"), |_| true)
        .await;
    probe.start_recording();
    for query in ["watch=1", "watch=1&resourceVersion=0", "watch=1&resourceVersion="] {
        let mut watch = probe.watch(&format!("{path}?{query}")).await;
        watch.record(probe, 2).await;
    }
    let mut watch = probe.watch(&format!("{path}?watch=1&resourceVersion=0&labelSelector=none")).await;
    let silent = watch.is_silent(Duration::from_secs(1)).await;
    probe.record_value("silent", &json!(silent));
}

pub async fn a_watch_of_a_forgotten_revision_is_told(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "secrets");
    probe.stop_recording().post(&path, secret("one")).await;
    if let Some(sandbox) = &probe.sandbox {
        sandbox.compact();
    }
    probe.start_recording();
    let mut watch = probe.watch(&format!("{path}?watch=1&resourceVersion=1")).await;
    let event = watch.next(EVENT_TIMEOUT).await.unwrap_or_default();
    let message = event["object"]["message"].as_str().unwrap_or_default();
    let (said, oldest) = message.split_once(" (").unwrap_or((message, ""));
    let oldest = oldest.trim_end_matches(')');
    if !oldest.is_empty() {
        probe.alias(oldest, "OLDEST");
    }
    probe.record_value("event", &event["type"]);
    probe.record_value("said", &json!(said));
    probe.record_event(&event);
    let over = watch.next(EVENT_TIMEOUT).await.is_none();
    probe.record_value("then it is over", &json!(over));
}

pub async fn a_watch_ends_when_its_time_is_over(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "secrets");
    let first = probe.stop_recording().post(&path, secret("one")).await.revision();
    probe.start_recording();
    let query = format!("watch=1&timeoutSeconds=2&resourceVersion={first}");
    let mut watch = probe.watch(&format!("{path}?{query}")).await;
    let end = watch.next(EVENT_TIMEOUT).await;
    probe.record_value("events", &json!(end));
    let mut watch = probe.watch(&format!("{path}?{query}&allowWatchBookmarks=true")).await;
    let mut last = None;
    while let Some(event) = watch.next(EVENT_TIMEOUT).await {
        last = Some(event);
    }
    if let Some(event) = last {
        probe.record_event(&event);
    }
}

pub async fn watch_parameters_of_all_sorts(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "secrets");
    let first = probe.stop_recording().post(&path, secret("one")).await.revision();
    probe
        .wait_until(&format!("{path}?resourceVersion={first}&resourceVersionMatch=NotOlderThan"), |_| true)
        .await;
    probe.start_recording();
    for query in [
        "watch=yes",
        "watch=TRUE",
        "watch",
        "watch=1&resourceVersion=abc",
        "watch=1&resourceVersion=-1",
        "watch=1&resourceVersionMatch=Exact",
        "watch=1&resourceVersionMatch=NotOlderThan",
        "watch=1&resourceVersion=RV&resourceVersionMatch=Exact",
        "watch=1&labelSelector=%29",
        "watch=1&fieldSelector=nope=x",
        "watch=1&timeoutSeconds=abc",
        "watch=1&timeoutSeconds=-1",
        "watch=1&limit=1",
        "watch=1&continue=abc",
        "watch=1&limit=abc",
        "watch=1&allowWatchBookmarks=nope",
        "watch=1&sendInitialEvents=nope",
    ] {
        let timeout = if query.contains("timeoutSeconds") { "" } else { "&timeoutSeconds=1" };
        // from now on, so that only an error arrives
        let since = if query.contains("resourceVersion") {
            String::new()
        } else {
            format!("&resourceVersion={first}")
        };
        let query = format!("{query}{timeout}{since}").replace("RV", &first);
        probe.get(&format!("{path}?{query}")).await;
    }
}

pub async fn a_streaming_list_ends_with_a_bookmark(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "secrets");
    probe.stop_recording().post(&path, secret("one")).await;
    probe.post(&path, secret("two")).await;
    probe.start_recording();
    let stream = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = probe.watch(&format!("{path}?{stream}")).await;
    watch.record(probe, 3).await;
    probe.stop_recording().post(&path, secret("three")).await;
    probe.start_recording();
    watch.record(probe, 1).await;
    let mut watch = probe.watch(&format!("{path}?{stream}&resourceVersion=0&labelSelector=none")).await;
    watch.record(probe, 1).await;
}

pub async fn streaming_lists_need_their_parameters(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "secrets");
    for query in [
        "watch=1&sendInitialEvents=true",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=Nope",
        "watch=1&sendInitialEvents=false",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=abc&allowWatchBookmarks=true",
    ] {
        probe.get(&format!("{path}?{query}&timeoutSeconds=1")).await;
    }
    probe.stop_recording().post(&path, secret("one")).await;
    probe.start_recording();
    let unmarked = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut watch = probe.watch(&format!("{path}?{unmarked}")).await;
    watch.record(probe, 1).await;
    let without = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=1";
    probe.get(&format!("{path}?{without}&allowWatchBookmarks=false")).await;
}

pub async fn a_watch_of_metadata_only(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "secrets");
    let first = probe.stop_recording().post(&path, secret("first")).await.revision();
    probe.start_recording();
    for accept in [
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json;as=Table;g=meta.k8s.io;v=v1,application/json",
    ] {
        let query = format!("watch=1&resourceVersion={first}&timeoutSeconds=3");
        let mut watch = probe.watch_with(&format!("{path}?{query}"), &[("accept", accept)]).await;
        probe
            .stop_recording()
            .post(&path, json!({"metadata": {"name": "one"}, "stringData": {"a": "b"}}))
            .await;
        probe.delete(&format!("{path}/one"), None).await;
        probe.start_recording();
        for _ in 0..2 {
            let event = watch.next(EVENT_TIMEOUT).await.unwrap_or_default();
            probe.record_value(
                "event",
                &json!([
                    event["type"],
                    event["object"]["kind"],
                    event["object"]["apiVersion"],
                    event["object"]["metadata"]["name"]
                ]),
            );
            if accept.contains("as=Partial") {
                probe.record_event(&event);
            }
        }
    }
}

pub async fn the_old_watch_paths(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "secrets");
    let last = probe.stop_recording().post(&path, secret("one")).await.revision();
    probe
        .wait_until(&format!("{path}?resourceVersion={last}&resourceVersionMatch=NotOlderThan"), |_| true)
        .await;
    probe.start_recording();
    let old = path.replacen("/api/v1/", "/api/v1/watch/", 1);
    for rest in ["", "/one", "/none"] {
        probe.get(&format!("{old}{rest}?timeoutSeconds=1")).await;
    }
    probe.get(&format!("{old}?timeoutSeconds=1&watch=0")).await;
    let namespace = probe.namespace().to_owned();
    probe
        .get(&format!("/api/v1/watch/secrets?timeoutSeconds=1&fieldSelector=metadata.namespace={namespace}"))
        .await;
    probe.get(&format!("{old}?timeoutSeconds=1&labelSelector=%29")).await;
    probe.send(Method::DELETE, &old, &[], "").await;
    probe.get("/api/v1/watch/nope").await;
    probe.get("/api/v1/watch").await;
}

/// A reflector has the server's objects, whatever happened in between.
pub async fn a_reflector_ends_with_the_same_store(probe: &mut ContractProbe) {
    let namespace = probe.namespace().to_owned();
    let path = probe.namespaced_path(CORE, "secrets");
    let api: Api<Secret> = Api::namespaced(probe.client(), &namespace);
    let (store, writer) = reflector::store();
    let stream = watcher(api, watcher::Config::default().any_semantic()).default_backoff().reflect(writer);
    let reflecting = tokio::spawn(stream.for_each(|_| std::future::ready(())));
    probe.stop_recording();
    let mut dice: u64 = 7;
    for step in 0..1000_u32 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let name = format!("s{}", (dice >> 33) % 20);
        let one = format!("{path}/{name}");
        match (dice >> 50) % 3 {
            0 => probe.post(&path, secret(&name)).await,
            1 => {
                probe
                    .patch(MERGE_PATCH, &one, json!({"metadata": {"labels": {"step": step.to_string()}}}))
                    .await
            }
            _ => probe.delete(&one, None).await,
        };
        if let Some(sandbox) = &probe.sandbox {
            match step % 50 {
                10 => sandbox.cut_watches(),
                30 => {
                    sandbox.compact();
                    sandbox.cut_watches();
                }
                _ => {}
            }
        }
        if step % 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let list = probe.get(&path).await;
    let wanted: BTreeMap<String, String> = list.body["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|item| (item["metadata"]["name"].to_string(), item["metadata"]["resourceVersion"].to_string()))
        .collect();
    let held = || -> BTreeMap<String, String> {
        let quoted = |text: &Option<String>| json!(text).to_string();
        let objects = store.state();
        objects
            .iter()
            .map(|one| (quoted(&one.metadata.name), quoted(&one.metadata.resource_version)))
            .collect()
    };
    for _ in 0..600 {
        if held() == wanted {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    reflecting.abort();
    probe.start_recording().record_value("objects", &json!(wanted.len()));
    probe.record_value("the store is the same", &json!(held() == wanted));
}
