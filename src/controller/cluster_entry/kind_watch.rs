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
    pub is_listed: bool,
    /// Objects of the list in progress; `None` if no list is in progress.
    pub listed_objects: Option<BTreeSet<ObjectId>>,
    /// Start of the current list that is not complete.
    pub listing_since: Option<Instant>,
    /// The watch has reported the state at this resourceVersion, and reports all changes after it; `None` before the first list.
    pub seen_version: Option<u64>,
    /// The error that broke the watch, until the next event.
    pub error: Option<String>,
    /// Why the watch reports nothing although its lists succeed.
    pub silent_reason: Option<String>,
    /// Events of a replaced watch are dropped by this number.
    pub number: u64,
    /// The health rules that judged its objects.
    pub mark: Option<health::RuleDigest>,
}

impl KindWatch {
    pub fn new(task: JoinHandle<()>, number: u64, mark: Option<health::RuleDigest>) -> Self {
        let (listing, listing_since, told, trouble, blind) = (None, None, None, None, None);
        Self {
            task,
            is_listed: false,
            listed_objects: listing,
            listing_since,
            seen_version: told,
            error: trouble,
            silent_reason: blind,
            number,
            mark,
        }
    }

    /// Outside of a list each event shows how far the watch has come.
    pub fn observe_event(&mut self, object: &Value, id: &ObjectId, is_there: bool) {
        match &mut self.listed_objects {
            Some(seen) if is_there => {
                seen.insert(id.clone());
            }
            Some(seen) => {
                seen.remove(id);
            }
            None => {
                let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
                self.seen_version = version.and_then(version_number).or(self.seen_version);
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
pub fn version_number(version: &str) -> Option<u64> {
    version.parse().ok()
}
