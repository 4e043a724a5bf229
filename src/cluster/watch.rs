//! Watching one kind for this instance's objects.

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use kube::api::{Api, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use serde_json::Value;

use super::client::to_value;
use super::{Catalog, Client, Resource};
use crate::model::{Kind, labels};

/// Objects that make a cluster serve something.
const SERVING: [(&str, &str); 2] =
    [("apiextensions.k8s.io", "CustomResourceDefinition"), ("apiregistration.k8s.io", "APIService")];

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
        let config = watcher::Config::default().labels(&format!("{}={instance}", labels::MANAGED_BY));
        let stream = if metadata_only {
            self.metadata_of(resource, config)
        } else {
            let api = resource.api.clone();
            let objects: Api<DynamicObject> = Api::all_with(self.kube().clone(), &api);
            watcher::watcher(objects, config).map(move |event| change(event, |it| to_value(&api, it))).boxed()
        };
        backed_off(stream)
    }

    /// What makes the cluster serve something: definitions and API services, whosever they are; for ever. Each change with
    /// which of the two it is of.
    pub fn watch_served(&self, catalog: &Catalog) -> BoxStream<'static, (usize, Change)> {
        let streams = SERVING.iter().enumerate().filter_map(|(index, (group, kind))| {
            let resource = catalog.get(&Kind::new(group, "v1", kind))?;
            let stream = backed_off(self.metadata_of(resource, watcher::Config::default()));
            Some(stream.map(move |change| (index, change)).boxed())
        });
        futures::stream::select_all(streams).boxed()
    }

    fn metadata_of(&self, resource: &Resource, config: watcher::Config) -> BoxStream<'static, Change> {
        let api = resource.api.clone();
        let objects: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(self.kube().clone(), &api);
        watcher::watcher(objects, config).map(move |event| change(event, |it| to_value(&api, it))).boxed()
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

/// After an error the next attempt waits 0.5 s, 1 s, 2 s … 30 s; the first answer resets it. That a
/// list begins is no answer: it is said before every attempt, also before one that fails.
fn backed_off(stream: impl Stream<Item = Change> + Send + Unpin) -> impl Stream<Item = Change> + Send {
    const FIRST: Duration = Duration::from_millis(500);
    const LONGEST: Duration = Duration::from_secs(30);
    let start = (stream, FIRST, false);
    futures::stream::unfold(start, |(mut stream, mut next, broken)| async move {
        if broken {
            tokio::time::sleep(next).await;
            next = (next * 2).min(LONGEST);
        }
        let change = stream.next().await?;
        if matches!(change, Change::Seen(_) | Change::Left(_) | Change::Listed) {
            next = FIRST;
        }
        let broken = matches!(change, Change::Broken(_));
        Some((change, (stream, next, broken)))
    })
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// When each change arrives, in milliseconds.
    async fn check(changes: Vec<Change>, expected: &[u128]) {
        let start = Instant::now();
        let times = backed_off(futures::stream::iter(changes)).map(|_| start.elapsed().as_millis());
        assert_eq!(times.collect::<Vec<_>>().await, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_begins_does_not_reset_the_pause() {
        let broken = || Change::Broken("forbidden".to_owned());
        let failing = [Change::Listing, broken(), Change::Listing, broken(), Change::Listing, broken()];
        check(failing.to_vec(), &[0, 0, 500, 500, 1500, 1500]).await;
        let answered = [broken(), broken(), Change::Listing, Change::Listed, broken(), Change::Listing];
        check(answered.to_vec(), &[0, 500, 1500, 1500, 1500, 2000]).await;
    }
}
