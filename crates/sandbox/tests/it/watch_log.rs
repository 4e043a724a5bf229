//! Statuses that a watching client sees, in order; shared by several tests.

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{ApiResource, DynamicObject, WatchEvent, WatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::Value;

/// The states of objects of one kind in the namespace `default`, in watch order, one line each. A line equal to the
/// previous one is left out, for any object. Events between two watches follow later, because the history is kept.
pub struct WatchLog(Arc<Mutex<Vec<String>>>);

impl WatchLog {
    pub async fn of(client: &Client, group: &str, kind: &str, line: fn(&Value) -> String) -> Self {
        let kind = GroupVersionKind::gvk(group, if group == "autoscaling" { "v2" } else { "v1" }, kind);
        let api: Api<DynamicObject> =
            Api::default_namespaced_with(client.clone(), &ApiResource::from_gvk(&kind));
        let lines = Arc::new(Mutex::new(Vec::<String>::new()));
        let seen = lines.clone();
        let mut events = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
        tokio::spawn(async move {
            let mut last = "0".to_owned();
            loop {
                let Ok(Some(event)) = events.try_next().await else {
                    // a watch ends after some minutes
                    events = api.watch(&WatchParams::default(), &last).await.unwrap().boxed();
                    continue;
                };
                let (object, gone) = match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                    WatchEvent::Deleted(object) => (object, true),
                    _ => continue,
                };
                last = object.metadata.resource_version.clone().unwrap();
                let line = if gone {
                    format!("{} gone", object.metadata.name.as_deref().unwrap_or(""))
                } else {
                    line(&serde_json::to_value(object).unwrap())
                };
                let mut lines = lines.lock();
                if lines.last() != Some(&line) {
                    lines.push(line);
                }
            }
        });
        Self(seen)
    }

    /// The lines since the last call.
    pub fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}
