//! Strategic merge patches, which merge by the definition of the kind.
//!
//! Lists merge by their merge key or as sets. Directives express what values cannot: `$patch` (delete or replace a
//! map or an item), `$deleteFromPrimitiveList/…`, `$setElementOrder/…` and `$retainKeys`. Only merged parts obey
//! directives; in parts that are copied whole they stay, and the decoder reports them. Custom kinds have no strategic
//! patches.
//!
//! The caller passes the declaration of the kind and decodes the patched map.
//!
//! `maps`, `lists` and `order` are one unit: maps hold lists, lists hold maps, and a list with an order is
//! merged item by item.

mod directives;
mod error;
mod interleave;
mod json_fields;
mod lists;
mod maps;
mod order;
#[cfg(test)]
mod tests;

pub(super) use error::StrategicError;
pub(super) use maps::merge;
