//! The events of a watch.

use jiff::Timestamp;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum WatchChange {
    /// A list begins: at the start, and when the server has lost the watch position. An object that is not reported
    /// before [`WatchChange::ListEnded`] no longer exists.
    ListStarted,
    Updated(Box<Value>),
    /// Deleted, or its label was removed. Also possible during a list.
    Removed(Box<Value>),
    /// The list was read to its end, at this resourceVersion. Without it nothing counts as gone.
    ListEnded {
        version: String,
    },
    /// The stream broke; it continues after a backoff.
    Disconnected(String),
    /// The watch failed repeatedly for half a minute or longer without any event. Until [`WatchChange::WatchRestored`] a list every
    /// five minutes replaces it.
    WatchLost {
        since: Timestamp,
        why: String,
    },
    /// The watch delivers events again.
    WatchRestored,
}
