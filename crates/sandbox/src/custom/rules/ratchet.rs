//! Ratcheting: an update does not fail on values that it leaves unchanged, except for transition rules.

use serde_json::Value;

use crate::custom::schema::{self, list, text};

/// A value, what it was, and its schema; or of its nearest parent that has an old value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ratchet<'a> {
    current: Option<RatchetPair<'a>>,
    parent: Option<RatchetPair<'a>>,
}

#[derive(Clone, Copy, Debug)]
struct RatchetPair<'a> {
    schema: &'a Value,
    new: &'a Value,
    old: &'a Value,
}

impl<'a> Ratchet<'a> {
    pub(super) fn of(schema: &'a Value, new: &'a Value, old: Option<&'a Value>) -> Self {
        Self { current: old.map(|old| RatchetPair { schema, new, old }), parent: None }
    }

    /// Of what stands below `name`.
    pub(super) fn key(self, name: &str) -> Self {
        match self.current {
            None => self,
            // Both are of the version that is written, whatever they were.
            Some(_) if self.parent.is_none() && matches!(name, "apiVersion" | "kind") => {
                Self { current: None, parent: None }
            }
            Some(pair) => Self { current: pair.key(name), parent: self.current },
        }
    }

    pub(super) fn index(self, at: usize) -> Self {
        match self.current {
            None => self,
            Some(pair) => Self { current: pair.index(at), parent: self.current },
        }
    }

    pub(super) fn is_unchanged(self) -> bool {
        self.current.or(self.parent).is_some_and(RatchetPair::is_same)
    }
}

impl<'a> RatchetPair<'a> {
    fn key(self, name: &str) -> Option<Self> {
        let schema = schema::property(self.schema, name).or_else(|| schema::additional(self.schema))?;
        Some(Self { schema, new: self.new.get(name)?, old: self.old.get(name)? })
    }

    fn index(self, at: usize) -> Option<Self> {
        let (new, all) = (self.new.get(at)?, self.old.as_array()?);
        let old = match text(self.schema, "x-kubernetes-list-type") {
            "map" => item_of_keys(self.schema, all, new)?,
            "set" | "atomic" => return None,
            _ => all.get(at)?,
        };
        Some(Self { schema: schema::items(self.schema)?, new, old })
    }

    /// A server does not know fields without a schema, and takes them for changed.
    fn is_same(self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                let is_map = text(self.schema, "x-kubernetes-list-type") == "map";
                new.len() == old.len()
                    && (0..new.len()).all(|at| match self.index(at) {
                        Some(item) => item.is_same(),
                        None => !is_map && new == old,
                    })
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len() && new.keys().all(|name| self.key(name).is_some_and(Self::is_same))
            }
            (new, old) => new == old,
        }
    }
}

/// The item with the same keys; a missing key may have a default.
pub(super) fn item_of_keys<'a>(schema: &Value, all: &'a [Value], item: &Value) -> Option<&'a Value> {
    let keys = list(schema, "x-kubernetes-list-map-keys");
    let same = |one: &&Value| keys.iter().filter_map(Value::as_str).all(|key| one.get(key) == item.get(key));
    (!keys.is_empty()).then(|| all.iter().find(same)).flatten()
}
