//! Watching one kind for this instance's objects.

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use kube::api::{Api, ApiResource};
use kube::runtime::watcher::{self, Event};
use serde_json::Value;

use super::object::{Bare, Told, Whole};
use super::{Catalog, Client, Resource};
use crate::model::{Kind, labels};

/// Objects that make a cluster serve something.
const SERVING: [(&str, &str); 2] =
    [("apiextensions.k8s.io", "CustomResourceDefinition"), ("apiregistration.k8s.io", "APIService")];

/// Objects of one page of a list: it is held whole while it is read.
const PAGE: u32 = 250;

/// After an error the next attempt waits 0.5 s, 1 s, 2 s … up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// As above, where a list is refused that tutti can do without: most likely it has no right to it.
const LONGEST_PAUSE_OF_SERVING: Duration = Duration::from_secs(1800);

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
        let config =
            watcher::Config::default().page_size(PAGE).labels(&format!("{}={instance}", labels::MANAGED_BY));
        let stream = if metadata_only {
            self.metadata_of(resource, config)
        } else {
            let api = resource.api.clone();
            let objects: Api<Whole> = Api::all_with(self.kube().clone(), &api);
            watcher::watcher(objects, config).map(move |event| change(event, &api)).boxed()
        };
        backed_off(stream, LONGEST_PAUSE)
    }

    /// What makes the cluster serve something: definitions and API services, whosever they are; for ever. Each change with
    /// which of the two it is of.
    pub fn watch_served(&self, catalog: &Catalog) -> BoxStream<'static, (usize, Change)> {
        let streams = SERVING.iter().enumerate().filter_map(|(index, (group, kind))| {
            let resource = catalog.get(&Kind::new(group, "v1", kind))?;
            let stream = self.metadata_of(resource, watcher::Config::default());
            let stream = backed_off(stream, LONGEST_PAUSE_OF_SERVING);
            Some(stream.map(move |change| (index, change)).boxed())
        });
        futures::stream::select_all(streams).boxed()
    }

    fn metadata_of(&self, resource: &Resource, config: watcher::Config) -> BoxStream<'static, Change> {
        let api = resource.api.clone();
        let objects: Api<Bare> = Api::all_with(self.kube().clone(), &api);
        watcher::watcher(objects, config).map(move |event| change(event, &api)).boxed()
    }
}

pub(super) fn change<const METADATA: bool>(
    event: watcher::Result<Event<Told<METADATA>>>,
    api: &ApiResource,
) -> Change {
    match event {
        Ok(Event::Init) => Change::Listing,
        Ok(Event::InitDone) => Change::Listed,
        Ok(Event::InitApply(object) | Event::Apply(object)) => Change::Seen(Box::new(object.into_value(api))),
        Ok(Event::Delete(object)) => Change::Left(Box::new(object.into_value(api))),
        Err(error) => Change::Broken(error.to_string()),
    }
}

/// After an error the next attempt waits; the first answer resets the pause. That a list begins is no
/// answer: it is said before every attempt, also before one that fails. A list that fails again and
/// again has its own longest pause: one that goes on after a break may not tell anything for hours.
pub(super) fn backed_off(
    stream: impl Stream<Item = Change> + Send + Unpin,
    longest_of_lists: Duration,
) -> impl Stream<Item = Change> + Send {
    const FIRST: Duration = Duration::from_millis(500);
    let start = (stream, FIRST, false, false);
    futures::stream::unfold(start, move |(mut stream, mut next, broken, mut lists)| async move {
        if broken {
            let longest = if lists { longest_of_lists } else { LONGEST_PAUSE };
            tokio::time::sleep(next.min(longest)).await;
            next = (next * 2).min(longest);
        }
        let change = stream.next().await?;
        match change {
            Change::Listing => lists = true,
            Change::Listed => (lists, next) = (false, FIRST),
            Change::Seen(_) | Change::Left(_) => next = FIRST,
            Change::Broken(_) => {}
        }
        let broken = matches!(change, Change::Broken(_));
        Some((change, (stream, next, broken, lists)))
    })
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// When each change arrives, in milliseconds.
    async fn check(changes: Vec<Change>, expected: &[u128]) {
        let start = Instant::now();
        let times = backed_off(futures::stream::iter(changes), 2 * LONGEST_PAUSE);
        let times = times.map(|_| start.elapsed().as_millis());
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

    #[tokio::test(start_paused = true)]
    async fn what_goes_on_after_breaks_waits_less_long_than_a_list_that_is_refused() {
        let broken = || Change::Broken("cut".to_owned());
        let last = |times: &[Change]| {
            let times = backed_off(futures::stream::iter(times.to_vec()), 2 * LONGEST_PAUSE);
            async move {
                let times = times.map(|_| Instant::now()).collect::<Vec<_>>().await;
                times[times.len() - 1] - times[times.len() - 2]
            }
        };
        let goes_on = [vec![Change::Listing, Change::Listed], vec![broken(); 12]].concat();
        assert_eq!(last(&goes_on).await, LONGEST_PAUSE);
        assert_eq!(last(&[vec![Change::Listing], vec![broken(); 12]].concat()).await, 2 * LONGEST_PAUSE);
    }
}
