//! Watching clients: kube-rs' watcher, and one that checks every connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::Api;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::runtime::watcher::{self, Config, Event};
use parking_lot::Mutex;

/// Names and resource versions.
pub type ObjectRevisions = BTreeMap<String, String>;

/// The objects that a watching client has, and the violations that it saw.
#[derive(Clone, Default)]
pub struct WatchedState {
    pub objects: Arc<Mutex<ObjectRevisions>>,
    pub violations: Arc<Mutex<Vec<String>>>,
}

const RETRY_DELAY: Duration = Duration::from_secs(1);

fn name_and_revision(object: &DynamicObject) -> (String, String) {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    (text(&object.metadata.name), text(&object.metadata.resource_version))
}

fn parse_revision(text: &str) -> u64 {
    text.parse().unwrap_or_default()
}

/// The watcher that controllers use.
pub fn watch_with_kube(api: Api<DynamicObject>, streaming: bool) -> WatchedState {
    let mirror = WatchedState::default();
    let objects = mirror.objects.clone();
    let config = if streaming { Config::default().streaming_lists() } else { Config::default() };
    tokio::spawn(async move {
        let mut events = watcher::watcher(api, config).boxed();
        let mut fresh = ObjectRevisions::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => fresh.clear(),
                Ok(Event::InitApply(object)) => fresh.extend([name_and_revision(&object)]),
                Ok(Event::InitDone) => *objects.lock() = std::mem::take(&mut fresh),
                Ok(Event::Apply(object)) => objects.lock().extend([name_and_revision(&object)]),
                Ok(Event::Delete(object)) => _ = objects.lock().remove(&name_and_revision(&object).0),
                Err(_) => tokio::time::sleep(RETRY_DELAY).await,
            }
        }
    });
    mirror
}

/// A manual watch: on one connection resource versions never decrease.
pub fn watch_manually(api: Api<DynamicObject>) -> WatchedState {
    let mirror = WatchedState::default();
    let kept = mirror.clone();
    tokio::spawn(async move {
        loop {
            if let Ok(list) = api.list(&ListParams::default()).await {
                *mirror.objects.lock() = list.items.iter().map(name_and_revision).collect();
                watch_from(&api, list.metadata.resource_version.unwrap_or_default(), &mirror).await;
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    });
    kept
}

/// Watches from a resource version until a new list is needed.
async fn watch_from(api: &Api<DynamicObject>, mut from: String, mirror: &WatchedState) {
    loop {
        let Ok(events) = api.watch(&WatchParams::default(), &from).await else { return };
        let mut events = events.boxed();
        let mut last = parse_revision(&from);
        while let Ok(Some(event)) = events.try_next().await {
            let (WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) =
                &event
            else {
                if matches!(event, WatchEvent::Error(_)) {
                    return;
                }
                continue;
            };
            let (name, found) = name_and_revision(object);
            if parse_revision(&found) < last {
                mirror.violations.lock().push(format!("{name}: {found} after {last} on one connection"));
            }
            last = parse_revision(&found);
            from = found.clone();
            if matches!(event, WatchEvent::Deleted(_)) {
                mirror.objects.lock().remove(&name);
            } else {
                mirror.objects.lock().insert(name, found);
            }
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}
