//! Index of labels, so that a search reads only objects that carry them.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Bound;

use serde_json::Value;

use super::{Place, Stored, text};
use crate::object;

const PATH: [&str; 2] = ["metadata", "labels"];

/// The objects by label pair. Pairs are hashed and may collide, so callers check each result.
#[derive(Debug, Default)]
pub(super) struct Labels {
    places: BTreeSet<(u64, Place)>,
}

impl Labels {
    pub(super) fn of<'s>(objects: impl Iterator<Item = (&'s Place, &'s Stored)>) -> Self {
        let mut labels = Self::default();
        for (place, stored) in objects {
            labels.insert(place, read(stored, PATH).as_ref());
        }
        labels
    }

    /// Most writes of an object leave its labels as they are.
    pub(super) fn replace(&mut self, place: &Place, before: Option<&Value>, after: Option<&Value>) {
        let [before, after] = [before, after].map(|object| object::at(object?, &PATH));
        if before == after {
            return;
        }
        for number in numbers(before) {
            self.places.remove(&(number, place.clone()));
        }
        self.insert(place, after);
    }

    fn insert(&mut self, place: &Place, labels: Option<&Value>) {
        self.places.extend(numbers(labels).map(|number| (number, place.clone())));
    }

    /// The places from `start` on, within `prefix`, of what has all of the pairs, as they are asked for.
    pub(super) fn with<'l>(&'l self, pairs: &[(&str, &str)], prefix: &str, start: &str) -> Carrying<'l> {
        Carrying {
            places: &self.places,
            numbers: pairs.iter().map(|(label, value)| number(label, value)).collect(),
            prefix: prefix.to_owned(),
            from: Bound::Included(Place::at(prefix.max(start))),
        }
    }
}

/// A merge join of the sorted keys of all pairs.
#[derive(Debug)]
pub(super) struct Carrying<'l> {
    places: &'l BTreeSet<(u64, Place)>,
    numbers: Vec<u64>,
    prefix: String,
    from: Bound<Place>,
}

impl<'l> Carrying<'l> {
    fn first(&self, number: u64, from: &Bound<Place>) -> Option<&'l Place> {
        #[cfg(test)]
        super::counters::count_step();
        let from = from.as_ref().map(|place| (number, place.clone()));
        let (found, place) = self.places.range((from, Bound::Unbounded)).next()?;
        (*found == number && place.text().starts_with(&self.prefix)).then_some(place)
    }
}

impl<'l> Iterator for Carrying<'l> {
    type Item = &'l Place;

    fn next(&mut self) -> Option<&'l Place> {
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
pub(super) fn read(stored: &Stored, path: [&str; 2]) -> Option<Value> {
    text::at(&stored.text(), &path).and_then(|text| serde_json::from_slice(text).ok())
}

fn numbers(labels: Option<&Value>) -> impl Iterator<Item = u64> {
    let pairs = labels.and_then(Value::as_object).into_iter().flatten();
    pairs.filter_map(|(label, value)| Some(number(label, value.as_str()?)))
}

pub(super) fn number(label: &str, value: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (label, value).hash(&mut hasher);
    hasher.finish()
}
