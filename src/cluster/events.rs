//! Reads the events of a cluster about objects.

use kube::Api;
use kube::api::{ApiResource, ListParams};
use serde_json::Value;

use super::object::WholeObject;
use super::{Client, Error};

/// Events of one page, and pages of one request. Repeated events are one event with a count.
const PAGE: u32 = 500;
const PAGES: usize = 4;

#[derive(Clone, Copy, Debug)]
pub enum EventSubject<'a> {
    /// The object with this uid.
    Uid(&'a str),
    /// All objects of a kind in any group.
    Kind(&'a str),
}

#[derive(Debug, Default)]
pub struct EventPage {
    pub events: Vec<Value>,
    /// More events exist.
    pub is_truncated: bool,
}

impl Client {
    /// The events of a namespace about one object or a kind.
    pub async fn events_about(&self, namespace: &str, about: EventSubject<'_>) -> Result<EventPage, Error> {
        let api = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "Event".to_owned(),
            plural: "events".to_owned(),
        };
        let events: Api<WholeObject> = Api::namespaced_with(self.kube().clone(), namespace, &api);
        let field = match about {
            EventSubject::Uid(uid) => format!("involvedObject.uid={uid}"),
            EventSubject::Kind(kind) => format!("involvedObject.kind={kind}"),
        };
        let mut parameters = ListParams::default().fields(&field).limit(PAGE);
        let mut page = EventPage::default();
        for _ in 0..PAGES {
            let list = self.with_timeout("list events", events.list(&parameters)).await?;
            page.events.extend(list.items.into_iter().map(|event| event.into_value(&api)));
            parameters.continue_token = list.metadata.continue_.filter(|token| !token.is_empty());
            page.is_truncated = parameters.continue_token.is_some();
            if !page.is_truncated {
                break;
            }
        }
        Ok(page)
    }
}
