//! Which objects of a resource carry a label, or select it, so that whoever looks for them reads those alone.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use super::{Place, Stored, text};
use crate::object;

/// Where pairs of label and value stand in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The labels that it carries.
    Carried,
    /// Those that its `spec.selector` asks for, as a map or in `matchLabels`.
    Selected,
}

/// Where the objects with each pair of label and value are. A pair stands here as a number: two pairs may share one, so
/// whoever asks compares what is found.
#[derive(Debug)]
pub(super) struct Labels {
    side: Side,
    places: BTreeSet<(u64, Place)>,
}

/// For selectors that ask for no pair, but may find something: `matchExpressions` alone, or all.
pub(super) const NO_PAIR: (&str, &str) = ("", "");

impl Side {
    fn path(self) -> [&'static str; 2] {
        match self {
            Self::Carried => ["metadata", "labels"],
            Self::Selected => ["spec", "selector"],
        }
    }

    /// The pairs, as numbers, of what stands at the path.
    fn numbers(self, found: Option<&Value>) -> BTreeSet<u64> {
        let plain = |map: &Value| map.get("matchLabels").is_none() && map.get("matchExpressions").is_none();
        let map = match self {
            Self::Selected => {
                found.and_then(|map| if plain(map) { Some(map) } else { map.get("matchLabels") })
            }
            Self::Carried => found,
        };
        let pairs = map.and_then(Value::as_object).into_iter().flatten();
        let mut numbers: BTreeSet<u64> =
            pairs.filter_map(|(label, value)| Some(number(label, value.as_str()?))).collect();
        if self == Self::Selected && numbers.is_empty() {
            numbers.insert(number(NO_PAIR.0, NO_PAIR.1));
        }
        numbers
    }
}

impl Labels {
    pub(super) fn of<'s>(side: Side, objects: impl Iterator<Item = (&'s Place, &'s Stored)>) -> Self {
        let mut labels = Self { side, places: BTreeSet::new() };
        for (place, stored) in objects {
            let text = stored.text();
            let found = text::at(&text, &side.path()).and_then(|text| serde_json::from_slice(text).ok());
            labels.insert(place, found.as_ref());
        }
        labels
    }

    /// Most writes of an object leave its labels as they are.
    pub(super) fn replace(&mut self, place: &Place, before: Option<&Value>, after: Option<&Value>) {
        let path = self.side.path();
        let found = |object| object::at(object, &path);
        if let (Some(before), Some(after)) = (before, after)
            && found(before) == found(after)
        {
            return;
        }
        for number in before.map(|object| self.side.numbers(found(object))).unwrap_or_default() {
            self.places.remove(&(number, place.clone()));
        }
        if let Some(after) = after {
            self.insert(place, found(after));
        }
    }

    fn insert(&mut self, place: &Place, found: Option<&Value>) {
        let numbers = self.side.numbers(found).into_iter();
        self.places.extend(numbers.map(|number| (number, place.clone())));
    }

    /// The places from `start` on, within `prefix`, of what has the pair.
    pub(super) fn with<'l>(
        &'l self,
        (label, value): (&str, &str),
        prefix: &'l str,
        start: &str,
    ) -> impl Iterator<Item = &'l Place> + use<'l> {
        let (number, first) = (number(label, value), Place::at(prefix.max(start)));
        let run = self.places.range((number, first)..);
        run.take_while(move |(other, place)| *other == number && place.text().starts_with(prefix))
            .map(|(_, place)| place)
    }

    /// As [`with`](Self::with), of the pair that the fewest have. All pairs are gone through side by side, so that the
    /// work is that of the shortest.
    pub(super) fn rarest(&self, pairs: &[(&str, &str)], prefix: &str, start: &str) -> Vec<Place> {
        let run = |pair: &(&str, &str)| (self.with(*pair, prefix, start), Vec::new());
        let mut runs: Vec<_> = pairs.iter().map(run).collect();
        while !runs.is_empty() {
            for (run, found) in &mut runs {
                match run.next() {
                    Some(place) => found.push(place.clone()),
                    None => return std::mem::take(found),
                }
            }
        }
        Vec::new()
    }
}

fn number(label: &str, value: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (label, value).hash(&mut hasher);
    hasher.finish()
}
