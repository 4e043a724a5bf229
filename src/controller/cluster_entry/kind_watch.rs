//! The state of one watch.

use std::collections::BTreeSet;

use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::health;
use crate::model::ObjectId;

/// One watch; it ends with the entry.
#[derive(Debug)]
pub struct KindWatch {
    task: JoinHandle<()>,
    pub listed: bool,
    /// Objects of the list in progress; `None` if no list is in progress.
    pub listing: Option<BTreeSet<ObjectId>>,
    /// Start of the current list that is not complete.
    pub listing_since: Option<Instant>,
    /// The watch has reported the state at this resourceVersion, and reports all changes after it; `None` before the first list.
    pub told: Option<u64>,
    /// The error that broke the watch, until the next event.
    pub trouble: Option<String>,
    /// Why the watch reports nothing although its lists succeed.
    pub blind: Option<String>,
    /// Events of a replaced watch are dropped by this number.
    pub number: u64,
    /// The health rules that judged its objects.
    pub mark: Option<health::Mark>,
}

impl KindWatch {
    pub fn new(task: JoinHandle<()>, number: u64, mark: Option<health::Mark>) -> Self {
        let (listing, listing_since, told, trouble, blind) = (None, None, None, None, None);
        Self { task, listed: false, listing, listing_since, told, trouble, blind, number, mark }
    }

    /// Outside of a list each event shows how far the watch has come.
    pub fn hears_of(&mut self, object: &Value, id: &ObjectId, is_there: bool) {
        match &mut self.listing {
            Some(seen) if is_there => {
                seen.insert(id.clone());
            }
            Some(seen) => {
                seen.remove(id);
            }
            None => {
                let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
                self.told = version.and_then(as_number).or(self.told);
            }
        }
    }
}

impl Drop for KindWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Resource versions were opaque by contract. On every known server they are increasing numbers per kind.
pub fn as_number(version: &str) -> Option<u64> {
    version.parse().ok()
}
