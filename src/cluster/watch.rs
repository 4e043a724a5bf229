//! Watching one kind for this instance's objects.

use std::time::Duration;

use futures::{Stream, StreamExt as _};
use kube::api::{Api, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use serde_json::Value;

use super::client::to_value;
use super::{Client, Resource};
use crate::model::labels;

/// What a watch tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A list begins (at first, and when the server has forgotten where we were): what is not told
    /// before [`Change::Listed`] is no longer there.
    Listing,
    Seen(Box<Value>),
    /// Deleted, or the label was taken off.
    Left(Box<Value>),
    Listed,
    /// The stream broke; it is taken up again with back-off.
    Broken(String),
}

impl Client {
    /// All objects of a kind that carry the instance's label, and what becomes of them, for ever.
    /// `metadata_only` leaves out spec and status on the wire.
    pub fn watch(
        &self,
        resource: &Resource,
        instance: &str,
        metadata_only: bool,
    ) -> impl Stream<Item = Change> + Send + use<> {
        let api = resource.api.clone();
        let client = self.kube().clone();
        let config = watcher::Config::default().labels(&format!("{}={instance}", labels::MANAGED_BY));
        let stream = if metadata_only {
            let objects: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client, &api);
            watcher::watcher(objects, config).map(move |event| change(event, |it| to_value(&api, it))).boxed()
        } else {
            let objects: Api<DynamicObject> = Api::all_with(client, &api);
            watcher::watcher(objects, config).map(move |event| change(event, |it| to_value(&api, it))).boxed()
        };
        backed_off(stream)
    }
}

fn change<K>(event: watcher::Result<Event<K>>, value: impl Fn(&K) -> Value) -> Change {
    match event {
        Ok(Event::Init) => Change::Listing,
        Ok(Event::InitDone) => Change::Listed,
        Ok(Event::InitApply(object) | Event::Apply(object)) => Change::Seen(Box::new(value(&object))),
        Ok(Event::Delete(object)) => Change::Left(Box::new(value(&object))),
        Err(error) => Change::Broken(error.to_string()),
    }
}

/// After an error the next attempt waits 0.5 s, 1 s, 2 s … 30 s; the first good event resets it.
fn backed_off(stream: impl Stream<Item = Change> + Send + Unpin) -> impl Stream<Item = Change> + Send {
    const FIRST: Duration = Duration::from_millis(500);
    const LONGEST: Duration = Duration::from_secs(30);
    futures::stream::unfold((stream, None::<Duration>), |(mut stream, wait)| async move {
        if let Some(wait) = wait {
            tokio::time::sleep(wait).await;
        }
        let change = stream.next().await?;
        let wait = match (&change, wait) {
            (Change::Broken(_), None) => Some(FIRST),
            (Change::Broken(_), Some(wait)) => Some((wait * 2).min(LONGEST)),
            _ => None,
        };
        Some((change, (stream, wait)))
    })
}
