//! Index of owner references, for garbage collection.

use std::collections::HashMap;

use serde_json::Value;

use super::ObjectPath;
use crate::object;

/// A table's number, and a place in it.
pub(super) type TableAddress = (u16, ObjectPath);

#[derive(Debug, Default)]
pub(super) struct OwnerIndex {
    uids: HashMap<ObjectUid, TableAddress>,
    /// Sorted by address; nearly always very few.
    dependents: HashMap<ObjectUid, Vec<TableAddress>>,
}

/// Most owners have no more dependents than this: there is no room for more until there are.
const FEW_DEPENDENTS: usize = 4;

/// A uid as a number. Only the form that this server gives out can be the uid of anything here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ObjectUid(u128);

impl ObjectUid {
    fn parse(text: &str) -> Option<Self> {
        let mut number = 0;
        for (at, byte) in text.bytes().enumerate() {
            match (at, byte) {
                (8 | 13 | 18 | 23, b'-') => {}
                (8 | 13 | 18 | 23, _) => return None,
                (_, b'0'..=b'9') => number = number << 4 | u128::from(byte - b'0'),
                (_, b'a'..=b'f') => number = number << 4 | u128::from(byte - b'a' + 10),
                _ => return None,
            }
        }
        (text.len() == 36).then_some(Self(number))
    }
}

impl OwnerIndex {
    pub(super) fn insert(&mut self, address: &TableAddress, value: &Value) {
        if let Some(uid) = ObjectUid::parse(object::uid(value)) {
            self.uids.insert(uid, address.clone());
        }
        for owner in owners(value) {
            let dependents = self.dependents.entry(owner).or_default();
            if let Err(place) = dependents.binary_search(address) {
                if dependents.len() < FEW_DEPENDENTS {
                    dependents.reserve_exact(1);
                }
                dependents.insert(place, address.clone());
            }
        }
    }

    /// Most writes of an object leave these as they are.
    pub(super) fn replace(&mut self, address: &TableAddress, before: &Value, after: &Value) {
        let owners = |value| object::list(value, &["metadata", "ownerReferences"]);
        if object::uid(before) != object::uid(after) || owners(before) != owners(after) {
            self.remove(address, before);
            self.insert(address, after);
        }
    }

    pub(super) fn remove(&mut self, address: &TableAddress, value: &Value) {
        if let Some(uid) = ObjectUid::parse(object::uid(value)) {
            self.uids.remove(&uid);
        }
        for owner in owners(value) {
            if let Some(dependents) = self.dependents.get_mut(&owner) {
                if let Ok(place) = dependents.binary_search(address) {
                    dependents.remove(place);
                }
                if dependents.is_empty() {
                    self.dependents.remove(&owner);
                }
            }
        }
    }

    pub(super) fn dependents(&self, owner_uid: &str) -> &[TableAddress] {
        let uid = ObjectUid::parse(owner_uid);
        uid.and_then(|uid| self.dependents.get(&uid)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn by_uid(&self, uid: &str) -> Option<&TableAddress> {
        self.uids.get(&ObjectUid::parse(uid)?)
    }
}

fn owners(value: &Value) -> impl Iterator<Item = ObjectUid> {
    let owners = object::list(value, &["metadata", "ownerReferences"]);
    owners.iter().filter_map(|owner| owner["uid"].as_str()).filter_map(ObjectUid::parse)
}
