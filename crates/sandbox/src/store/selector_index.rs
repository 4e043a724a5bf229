//! Index of `spec.selector`, so that few objects are read to find those that select a label.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::label_index::{pair_hash, read_path};
use super::{ObjectPath, StoredObject};
use crate::object;

const PATH: [&str; 2] = ["spec", "selector"];

/// For selectors that ask for no pair, but may find something: `matchExpressions` alone, or all.
const NO_PAIR: (&str, &str) = ("", "");

/// The objects by one label pair of their `spec.selector` (a map or `matchLabels`). A match has all pairs, so each
/// object is indexed under one: the rarest in its namespace.
#[derive(Debug, Default)]
pub(super) struct SelectorIndex {
    /// By namespace and number of the pair.
    places: HashMap<(String, u64), BTreeSet<ObjectPath>>,
    indexed_pairs: BTreeMap<ObjectPath, u64>,
}

impl SelectorIndex {
    pub(super) fn of<'s>(objects: impl Iterator<Item = (&'s ObjectPath, &'s StoredObject)>) -> Self {
        let mut selectors = Self::default();
        for (place, stored) in objects {
            selectors.insert(place, read_path(stored, PATH).as_ref());
        }
        selectors
    }

    pub(super) fn replace(&mut self, place: &ObjectPath, before: Option<&Value>, after: Option<&Value>) {
        let [before, after] = [before, after].map(|object| object::value_at(object?, &PATH));
        if before == after {
            return;
        }
        if let Some(number) = self.indexed_pairs.remove(place) {
            let key = (place.namespace().to_owned(), number);
            let stay = self.places.get_mut(&key).map(|places| {
                places.remove(place);
                places.len()
            });
            if stay == Some(0) {
                self.places.remove(&key);
            }
        }
        self.insert(place, after);
    }

    /// Without a selector, nothing is found.
    fn insert(&mut self, place: &ObjectPath, selector: Option<&Value>) {
        let Some(selector) = selector.filter(|selector| selector.is_object()) else { return };
        let key = |number| (place.namespace().to_owned(), number);
        let under = |number: &u64| self.places.get(&key(*number)).map_or(0, BTreeSet::len);
        let chosen = numbers(selector).min_by_key(under).unwrap_or_else(|| pair_hash(NO_PAIR.0, NO_PAIR.1));
        self.places.entry(key(chosen)).or_default().insert(place.clone());
        self.indexed_pairs.insert(place.clone(), chosen);
    }

    /// The places in a namespace of what may find an object with these labels, in the order of lists.
    pub(super) fn matching(&self, namespace: &str, labels: &[(&str, &str)]) -> BTreeSet<&ObjectPath> {
        let pairs = labels.iter().chain([&NO_PAIR]);
        let places = pairs
            .filter_map(|(label, value)| self.places.get(&(namespace.to_owned(), pair_hash(label, value))));
        places.flatten().collect()
    }
}

fn numbers(selector: &Value) -> impl Iterator<Item = u64> {
    let is_plain = selector.get("matchLabels").is_none() && selector.get("matchExpressions").is_none();
    let pairs = if is_plain { Some(selector) } else { selector.get("matchLabels") };
    let pairs = pairs.and_then(Value::as_object).into_iter().flatten();
    pairs.filter_map(|(label, value)| Some(pair_hash(label, value.as_str()?)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(selectors: &[(&str, Value)]) -> SelectorIndex {
        let mut found = SelectorIndex::default();
        for (place, selector) in selectors {
            found.replace(
                &ObjectPath::from_text(place),
                None,
                Some(&json!({"spec": {"selector": selector}})),
            );
        }
        found
    }

    fn check(selectors: &SelectorIndex, labels: &[(&str, &str)], expected: &str) {
        let found = selectors.matching("a", labels);
        let found: Vec<&str> = found.into_iter().map(ObjectPath::text).collect();
        assert_eq!(found.join(" "), expected, "{labels:?}");
    }

    #[test]
    fn selector_stands_under_its_rarest_pair() {
        let own = |number: usize| format!("own-{number}");
        let names: Vec<String> = (0..100).map(|number| format!("a/s{number:03}")).collect();
        let selector = |number: usize| json!({"all": "shop", "own": own(number)});
        let all: Vec<_> =
            names.iter().enumerate().map(|(number, name)| (name.as_str(), selector(number))).collect();
        let selectors = of(&all);
        let found = selectors.matching("a", &[("all", "shop"), ("own", "own-70")]);
        assert!(found.contains(&ObjectPath::from_text("a/s070")) && found.len() <= 2, "{found:?}");
    }

    #[test]
    fn selector_is_known_as_it_changes() {
        let mut selectors = of(&[
            ("a/all", json!({})),
            ("a/by-expression", json!({"matchExpressions": [{"key": "x", "operator": "Exists"}]})),
            ("a/nothing", Value::Null),
            ("a/one", json!({"app": "one"})),
            ("a/two", json!({"matchLabels": {"app": "two"}})),
            ("b/one", json!({"app": "one"})),
        ]);
        check(&selectors, &[("app", "one"), ("tier", "x")], "a/all a/by-expression a/one");
        check(&selectors, &[], "a/all a/by-expression");
        let (before, after) = (json!({"spec": {"selector": {"app": "one"}}}), json!({"spec": {}}));
        selectors.replace(&ObjectPath::from_text("a/one"), Some(&before), Some(&after));
        check(&selectors, &[("app", "one")], "a/all a/by-expression");
        selectors.replace(&ObjectPath::from_text("a/one"), Some(&after), Some(&before));
        selectors.replace(&ObjectPath::from_text("a/all"), Some(&json!({"spec": {"selector": {}}})), None);
        check(&selectors, &[("app", "one")], "a/by-expression a/one");
    }
}
