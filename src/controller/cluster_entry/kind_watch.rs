//! What is known of one watch.

use std::collections::BTreeSet;

use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::health;
use crate::model::ObjectId;

/// One watch, ended with the entry.
#[derive(Debug)]
pub struct KindWatch {
    task: JoinHandle<()>,
    pub listed: bool,
    /// Objects told since the current list began; `None` when no list is under way.
    pub listing: Option<BTreeSet<ObjectId>>,
    /// Since when it is to list anew, without having come to an end.
    pub listing_since: Option<Instant>,
    /// What was there at this resourceVersion has been told, and what became of it since then will be; `None` before the first list.
    pub told: Option<u64>,
    /// Why it broke, until it tells something again.
    pub trouble: Option<String>,
    /// Why it tells nothing, though its lists are well.
    pub blind: Option<String>,
    /// What a watch that was replaced has still told is not taken for what this one tells.
    pub number: u64,
    /// By what its objects are judged.
    pub mark: Option<health::Mark>,
}

impl KindWatch {
    pub fn new(task: JoinHandle<()>, number: u64, mark: Option<health::Mark>) -> Self {
        let (listing, listing_since, told, trouble, blind) = (None, None, None, None, None);
        Self { task, listed: false, listing, listing_since, told, trouble, blind, number, mark }
    }

    /// Outside of a list each object tells how far the watch has come.
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

/// Resource versions were opaque by contract, and are numbers that grow, of one kind, on every server there is.
pub fn as_number(version: &str) -> Option<u64> {
    version.parse().ok()
}
