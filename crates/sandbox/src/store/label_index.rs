//! Index of labels, so that a search reads only objects that carry them.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Bound;

use serde_json::Value;

use super::{ObjectPath, StoredObject, json_text};
use crate::object;

const PATH: [&str; 2] = ["metadata", "labels"];

/// The objects by label pair. Pairs are hashed and may collide, so callers check each result.
#[derive(Debug, Default)]
pub(super) struct LabelIndex {
    places: BTreeSet<(u64, ObjectPath)>,
}

impl LabelIndex {
    pub(super) fn of<'s>(objects: impl Iterator<Item = (&'s ObjectPath, &'s StoredObject)>) -> Self {
        let mut labels = Self::default();
        for (place, stored) in objects {
            labels.insert(place, read_path(stored, PATH).as_ref());
        }
        labels
    }

    /// Most writes of an object leave its labels as they are.
    pub(super) fn replace(&mut self, place: &ObjectPath, before: Option<&Value>, after: Option<&Value>) {
        let [before, after] = [before, after].map(|object| object::value_at(object?, &PATH));
        if before == after {
            return;
        }
        for number in pair_hashes(before) {
            self.places.remove(&(number, place.clone()));
        }
        self.insert(place, after);
    }

    fn insert(&mut self, place: &ObjectPath, labels: Option<&Value>) {
        self.places.extend(pair_hashes(labels).map(|number| (number, place.clone())));
    }

    /// The places from `start` on, within `prefix`, of what has all of the pairs, as they are asked for.
    pub(super) fn matching<'l>(
        &'l self,
        pairs: &[(&str, &str)],
        prefix: &str,
        start: &str,
    ) -> LabelMatches<'l> {
        LabelMatches {
            places: &self.places,
            numbers: pairs.iter().map(|(label, value)| pair_hash(label, value)).collect(),
            prefix: prefix.to_owned(),
            from: Bound::Included(ObjectPath::from_text(prefix.max(start))),
        }
    }
}

/// A merge join of the sorted keys of all pairs.
#[derive(Debug)]
pub(super) struct LabelMatches<'l> {
    places: &'l BTreeSet<(u64, ObjectPath)>,
    numbers: Vec<u64>,
    prefix: String,
    from: Bound<ObjectPath>,
}

impl<'l> LabelMatches<'l> {
    fn first(&self, number: u64, from: &Bound<ObjectPath>) -> Option<&'l ObjectPath> {
        #[cfg(test)]
        super::counters::count_index_step();
        let from = from.as_ref().map(|place| (number, place.clone()));
        let (found, place) = self.places.range((from, Bound::Unbounded)).next()?;
        (*found == number && place.text().starts_with(&self.prefix)).then_some(place)
    }
}

impl<'l> Iterator for LabelMatches<'l> {
    type Item = &'l ObjectPath;

    fn next(&mut self) -> Option<&'l ObjectPath> {
        let (mut place, mut agreed) = (None, 0);
        for number in self.numbers.iter().copied().cycle() {
            let found = self.first(number, &self.from)?;
            agreed = if place == Some(found) { agreed + 1 } else { 1 };
            place = Some(found);
            if agreed == self.numbers.len() {
                break;
            }
            self.from = Bound::Included(found.clone());
        }
        self.from = Bound::Excluded(place?.clone());
        place
    }
}

/// The value at a path of a stored object.
pub(super) fn read_path(stored: &StoredObject, path: [&str; 2]) -> Option<Value> {
    json_text::value_at(&stored.text(), &path).and_then(|text| serde_json::from_slice(text).ok())
}

fn pair_hashes(labels: Option<&Value>) -> impl Iterator<Item = u64> {
    let pairs = labels.and_then(Value::as_object).into_iter().flatten();
    pairs.filter_map(|(label, value)| Some(pair_hash(label, value.as_str()?)))
}

pub(super) fn pair_hash(label: &str, value: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (label, value).hash(&mut hasher);
    hasher.finish()
}
