//! Watches: the changes of one resource after a revision, as a stream of JSON lines.
//!
//! Needs the store's history. Never holds the lock while it waits; a slow client falls behind and
//! is told 410 when the history it needs is gone. An event is encoded once for all watches that want
//! it whole, or its metadata.

mod event;
mod request;
mod stream;

pub(crate) use request::WatchRequest;
pub(crate) use stream::open;
