//! What the controllers of a cluster say about one object.

use kube::Api;
use kube::api::{ApiResource, ListParams};
use serde_json::Value;

use super::object::Whole;
use super::{Client, Error};

/// The events about one object that are asked for: each is told once, with a count.
const MOST: u32 = 50;

impl Client {
    /// The events about the object of this uid.
    pub async fn events_about(&self, namespace: &str, uid: &str) -> Result<Vec<Value>, Error> {
        let api = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "Event".to_owned(),
            plural: "events".to_owned(),
        };
        let events: Api<Whole> = Api::namespaced_with(self.kube().clone(), namespace, &api);
        let about = ListParams::default().fields(&format!("involvedObject.uid={uid}")).limit(MOST);
        let list = self.bounded("list events", events.list(&about)).await?;
        Ok(list.items.into_iter().map(|event| event.into_value(&api)).collect())
    }
}
