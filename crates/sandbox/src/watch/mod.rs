//! Watches: the changes of one resource after a revision, as a stream of JSON lines.
//!
//! A watch reads the store's history and never holds the lock while it waits. A client that is too slow for the
//! history gets 410. Watches of whole objects, or of metadata, share one encoding of each event.

mod event;
mod request;
mod stream;

pub(crate) use request::WatchRequest;
pub(crate) use stream::open;
