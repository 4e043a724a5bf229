//! The objects of one cluster, with their history for watches.
//!
//! One counter gives every write its `resourceVersion`. It starts high and jumps, which exposes clients that do
//! arithmetic on it. Each resource keeps a ring of its last changes. Older changes are compacted, and a watch from
//! before them gets 410.
//!
//! Objects are kept as compressed JSON text, a tenth of the parsed size. An object is parsed at first use; the parsed
//! form is shared until the controllers are idle ([`ObjectStore::cool`]). Responses with whole objects use the text without
//! parsing.

#[cfg(test)]
pub(crate) mod counters;
mod history;
pub(crate) mod json_text;
mod label_index;
mod object_path;
mod object_store;
mod owner_index;
mod selector_index;
mod store_backup;
mod store_change;
mod store_key;
mod stored_object;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use object_path::ObjectPath;
pub(crate) use object_store::ObjectStore;
pub(crate) use store_backup::StoreBackup;
pub(crate) use store_change::{HistoryCompacted, StoreChange, StoreChangeKind};
pub(crate) use store_key::{NamespacedName, StoreKey};
pub(crate) use stored_object::{ParsedObject, StoredObject};
