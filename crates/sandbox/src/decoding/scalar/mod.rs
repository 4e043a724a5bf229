//! Scalars with rules of their own.

mod bytes;
mod quantity;
mod time;

pub(super) use bytes::{canonical as canonical_bytes, mistake as bytes_mistake};
pub(super) use quantity::mistake as quantity_mistake;
pub(super) use time::{canonical as canonical_time, mistake as time_mistake};
