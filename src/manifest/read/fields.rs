//! Takes the fields of one map, and reports the unknown ones.

use super::{Reading, Value, codes, suggest};
use crate::manifest::yaml::Entry;
use crate::model::Location;

/// The fields of a map. A requested field counts as known; [`Fields::finish`] reports the others.
#[derive(Debug)]
pub struct Fields<'a> {
    entries: &'a [Entry],
    /// Of the map; empty at the root.
    path: String,
    /// Where a missing field is reported: the name of the field that holds the map.
    place: Location,
    known: Vec<&'static str>,
    /// Known, but not suggested in messages.
    hidden: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// `None`, and a mistake, when the value is no map.
    pub fn of(value: &Value<'a>, reading: &mut Reading<'_>) -> Option<Self> {
        let Some(entries) = value.node.as_map() else {
            reading.wrong_type(value, "a map");
            return None;
        };
        let place = value.name_location.clone().unwrap_or_else(|| match entries.first() {
            Some(first) => first.location(reading.file),
            None => reading.location(value.node),
        });
        Some(Self { entries, path: value.path.clone(), place, known: Vec::new(), hidden: Vec::new() })
    }

    pub fn place(&self) -> &Location {
        &self.place
    }

    pub fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// `None` when the field is absent or null, which are the same to Kubernetes.
    pub fn optional(&mut self, name: &'static str, reading: &Reading<'_>) -> Option<Value<'a>> {
        self.known.push(name);
        #[cfg(test)]
        super::asked::note(&self.path, name);
        self.take(name, reading).filter(|value| !value.node.is_null())
    }

    /// An optional field that restricts a selection. Without the field everything is selected, so an empty value is a mistake.
    pub fn narrowing(&mut self, name: &'static str, reading: &mut Reading<'_>) -> Option<Value<'a>> {
        let help = "write what it selects, or remove the field: without it, everything is selected";
        self.with_value(name, help, reading)
    }

    /// An optional field for which a missing value is a mistake.
    pub fn with_value(
        &mut self,
        name: &'static str,
        help: &str,
        reading: &mut Reading<'_>,
    ) -> Option<Value<'a>> {
        let value = self.optional(name, reading);
        if value.is_none()
            && let Some(place) = self.take(name, reading).and_then(|null| null.name_location)
        {
            reading
                .mistake(codes::MISSING_FIELD, format!("`{name}` has no value"), place, &self.path_of(name))
                .help(help);
        }
        value
    }

    pub fn required(&mut self, name: &'static str, reading: &mut Reading<'_>) -> Option<Value<'a>> {
        let value = self.optional(name, reading);
        if value.is_none() {
            let null = self.take(name, reading);
            let (place, what) = match null.and_then(|value| value.name_location) {
                Some(place) => (place, "has no value"),
                None => (self.place.clone(), "is missing"),
            };
            reading.mistake(codes::MISSING_FIELD, format!("`{name}` {what}"), place, &self.path_of(name));
        }
        value
    }

    /// Refuses planned fields that have a value.
    pub fn later(&mut self, names: &[&'static str], reading: &mut Reading<'_>) {
        for name in names {
            self.hidden.push(name);
            if let Some(value) = self.take(name, reading).filter(|value| !value.node.is_null()) {
                reading.not_yet(&format!("`{}`", value.path), &value);
            }
        }
    }

    /// Refuses a planned field, unless its value changes nothing.
    pub fn later_unless(
        &mut self,
        name: &'static str,
        harmless: impl Fn(&Value<'a>) -> bool,
        reading: &mut Reading<'_>,
    ) {
        self.hidden.push(name);
        if let Some(value) = self.take(name, reading)
            && !value.node.is_null()
            && !harmless(&value)
        {
            reading.not_yet(&format!("`{}: {}`", value.path, value.brief()), &value);
        }
    }

    /// Refuses a foreign field, with help on the own one.
    pub fn refuse(&mut self, name: &'static str, help: &str, reading: &mut Reading<'_>) {
        self.hidden.push(name);
        if let Some(place) = self.take(name, reading).and_then(|value| value.name_location) {
            let message = format!("unknown field `{name}` in `{}`", self.path);
            reading.mistake(codes::UNKNOWN_FIELD, message, place, &self.path_of(name)).help(help);
        }
    }

    /// Reports every field that was not requested.
    pub fn finish(self, reading: &mut Reading<'_>) {
        let meant: Vec<&str> = self.known.iter().chain(&self.hidden).copied().collect();
        for entry in self.entries {
            let key = entry.key.as_str();
            if self.known.contains(&key) || self.hidden.contains(&key) {
                continue;
            }
            let place = entry.location(reading.file);
            let within = if self.path.is_empty() { String::new() } else { format!(" in `{}`", self.path) };
            let help = if reading.is_full() { String::new() } else { suggest(key, &meant, &self.known) };
            let message = format!("unknown field `{key}`{within}");
            reading.mistake(codes::UNKNOWN_FIELD, message, place, &self.path_of(key)).help(help);
        }
    }

    /// Returns a field without counting it as known.
    pub fn take(&self, name: &str, reading: &Reading<'_>) -> Option<Value<'a>> {
        let entry = self.entries.iter().find(|entry| entry.key == name)?;
        Some(Value {
            node: &entry.value,
            path: self.path_of(name),
            name_location: Some(entry.location(reading.file)),
        })
    }
}
