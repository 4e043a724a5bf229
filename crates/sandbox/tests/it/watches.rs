//! Watches through kube's watcher.

use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use serde_json::json;

use crate::support::{apply, config_map, config_maps, instant_cluster};

/// The next event with an object, as text.
async fn next_event<K: Resource>(
    events: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin),
) -> String {
    let event = tokio::time::timeout(Duration::from_secs(60), events.next()).await.unwrap().unwrap().unwrap();
    match event {
        Event::Init => "init".to_owned(),
        Event::InitApply(object) => format!("has {}", object.meta().name.clone().unwrap_or_default()),
        Event::InitDone => "ready".to_owned(),
        Event::Apply(object) => format!("set {}", object.meta().name.clone().unwrap_or_default()),
        Event::Delete(object) => format!("gone {}", object.meta().name.clone().unwrap_or_default()),
    }
}

async fn check_events(config: Config) {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let labelled = |data: serde_json::Value| {
        let mut object = config_map("one", data);
        object["metadata"]["labels"] = json!({"watched": "yes"});
        object
    };
    apply(&api, "a", &labelled(json!({"x": "1"}))).await.unwrap();
    let mut events = Box::pin(watcher(api.clone(), config.labels("watched=yes")));
    assert_eq!(next_event(&mut events).await, "init");
    assert_eq!(next_event(&mut events).await, "has one");
    assert_eq!(next_event(&mut events).await, "ready");
    apply(&api, "a", &config_map("other", json!({}))).await.unwrap();
    apply(&api, "a", &labelled(json!({"x": "2"}))).await.unwrap();
    assert_eq!(next_event(&mut events).await, "set one");
    // without the label it is deleted for this watch
    apply(&api, "a", &config_map("one", json!({"x": "2"}))).await.unwrap();
    assert_eq!(next_event(&mut events).await, "gone one");
    apply(&api, "a", &labelled(json!({"x": "2"}))).await.unwrap();
    assert_eq!(next_event(&mut events).await, "set one");
    api.delete("one", &DeleteParams::default()).await.unwrap();
    assert_eq!(next_event(&mut events).await, "gone one");
}

#[tokio::test]
async fn list_and_watch() {
    check_events(Config::default()).await;
}

#[tokio::test]
async fn streaming_list() {
    check_events(Config::default().streaming_lists()).await;
}

#[tokio::test]
async fn metadata_only() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    apply(&api, "a", &config_map("one", json!({"x": "1"}))).await.unwrap();
    let config = Config::default().streaming_lists().fields("metadata.name=one");
    let metadata: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client);
    let mut events = Box::pin(watcher(metadata, config));
    for expected in ["init", "has one", "ready"] {
        assert_eq!(next_event(&mut events).await, expected);
    }
    apply(&api, "a", &config_map("one", json!({"x": "2"}))).await.unwrap();
    assert_eq!(next_event(&mut events).await, "set one");
}

/// A watch whose history was compacted starts over and has the same objects in the end.
#[tokio::test(start_paused = true)]
async fn watcher_survives_compaction_and_cuts() {
    let (sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    let (store, writer) = kube::runtime::reflector::store::<ConfigMap>();
    let config = Config::default().labels("watched");
    let stream = watcher(api.clone(), config).default_backoff().reflect(writer).applied_objects();
    let reflecting = tokio::spawn(stream.for_each(|_| async {}));
    for round in 0..20 {
        let mut object = config_map(&format!("c{}", round % 7), json!({"round": round.to_string()}));
        object["metadata"]["labels"] = json!({"watched": "yes"});
        api.patch(
            object["metadata"]["name"].as_str().unwrap(),
            &PatchParams::apply("a").force(),
            &Patch::Apply(&object),
        )
        .await
        .unwrap();
        match round % 3 {
            0 => sandbox.cut_watches(),
            1 => sandbox.compact(),
            _ => {}
        }
    }
    tokio::time::sleep(Duration::from_secs(120)).await;
    let mut seen: Vec<(String, Option<String>)> =
        store.state().iter().map(|one| (one.name_any(), one.resource_version())).collect();
    seen.sort();
    let list = api.list(&ListParams::default().labels("watched")).await.unwrap();
    let real: Vec<_> = list.items.iter().map(|one| (one.name_any(), one.resource_version())).collect();
    assert_eq!(seen, real);
    reflecting.abort();
}

/// Number of bookmarks that a watch gets in three minutes without changes.
async fn bookmark_count(api: &Api<ConfigMap>, from: &str) -> usize {
    let mut events = Box::pin(api.watch(&WatchParams::default(), from).await.unwrap());
    let until = tokio::time::Instant::now() + Duration::from_secs(180);
    let mut count = 0;
    while let Ok(Some(event)) = tokio::time::timeout_at(until, events.next()).await {
        count += usize::from(matches!(event, Ok(WatchEvent::Bookmark(_))));
    }
    count
}

/// A current bookmark would take the client back behind its own resource version.
#[tokio::test(start_paused = true)]
async fn watch_from_future_revision_gets_no_bookmarks() {
    let (_sandbox, client) = instant_cluster();
    let api = config_maps(&client);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let now = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    assert!(bookmark_count(&api, &now).await > 0);
    assert_eq!(bookmark_count(&api, "999999999").await, 0);
}
