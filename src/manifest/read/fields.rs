//! Takes the fields of one map, and reports the unknown ones.

use super::{ManifestValue, ReadContext, codes, suggest};
use crate::manifest::yaml::YamlEntry;
use crate::model::Location;

/// The fields of a map. A requested field counts as known; [`ManifestFields::finish`] reports the others.
#[derive(Debug)]
pub struct ManifestFields<'a> {
    entries: &'a [YamlEntry],
    /// Of the map; empty at the root.
    path: String,
    /// Where a missing field is reported: the name of the field that holds the map.
    location: Location,
    known: Vec<&'static str>,
    /// Known, but not suggested in messages.
    hidden: Vec<&'static str>,
}

impl<'a> ManifestFields<'a> {
    /// `None`, and a mistake, when the value is no map.
    pub fn of(value: &ManifestValue<'a>, reading: &mut ReadContext<'_>) -> Option<Self> {
        let Some(entries) = value.node.as_map() else {
            reading.wrong_type(value, "a map");
            return None;
        };
        let place = value.name_location.clone().unwrap_or_else(|| match entries.first() {
            Some(first) => first.location(reading.file),
            None => reading.location(value.node),
        });
        Some(Self {
            entries,
            path: value.path.clone(),
            location: place,
            known: Vec::new(),
            hidden: Vec::new(),
        })
    }

    pub fn location(&self) -> &Location {
        &self.location
    }

    pub fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// `None` when the field is absent or null, which are the same to Kubernetes.
    pub fn optional(&mut self, name: &'static str, reading: &ReadContext<'_>) -> Option<ManifestValue<'a>> {
        self.known.push(name);
        #[cfg(test)]
        super::requested_fields::record(&self.path, name);
        self.get(name, reading).filter(|value| !value.node.is_null())
    }

    /// An optional field that restricts a selection. Without the field everything is selected, so an empty value is a mistake.
    pub fn optional_selector(
        &mut self,
        name: &'static str,
        reading: &mut ReadContext<'_>,
    ) -> Option<ManifestValue<'a>> {
        let help = "write what it selects, or remove the field: without it, everything is selected";
        self.optional_with_value(name, help, reading)
    }

    /// An optional field for which a missing value is a mistake.
    pub fn optional_with_value(
        &mut self,
        name: &'static str,
        help: &str,
        reading: &mut ReadContext<'_>,
    ) -> Option<ManifestValue<'a>> {
        let value = self.optional(name, reading);
        if value.is_none()
            && let Some(place) = self.get(name, reading).and_then(|null| null.name_location)
        {
            reading
                .mistake(codes::MISSING_FIELD, format!("`{name}` has no value"), place, &self.path_of(name))
                .help(help);
        }
        value
    }

    pub fn required(
        &mut self,
        name: &'static str,
        reading: &mut ReadContext<'_>,
    ) -> Option<ManifestValue<'a>> {
        let value = self.optional(name, reading);
        if value.is_none() {
            let null = self.get(name, reading);
            let (place, what) = match null.and_then(|value| value.name_location) {
                Some(place) => (place, "has no value"),
                None => (self.location.clone(), "is missing"),
            };
            reading.mistake(codes::MISSING_FIELD, format!("`{name}` {what}"), place, &self.path_of(name));
        }
        value
    }

    /// Refuses planned fields that have a value.
    pub fn refuse_planned(&mut self, names: &[&'static str], reading: &mut ReadContext<'_>) {
        for name in names {
            self.hidden.push(name);
            if let Some(value) = self.get(name, reading).filter(|value| !value.node.is_null()) {
                reading.not_yet(&format!("`{}`", value.path), &value);
            }
        }
    }

    /// Refuses a planned field, unless its value changes nothing.
    pub fn refuse_planned_unless(
        &mut self,
        name: &'static str,
        harmless: impl Fn(&ManifestValue<'a>) -> bool,
        reading: &mut ReadContext<'_>,
    ) {
        self.hidden.push(name);
        if let Some(value) = self.get(name, reading)
            && !value.node.is_null()
            && !harmless(&value)
        {
            reading.not_yet(&format!("`{}: {}`", value.path, value.brief()), &value);
        }
    }

    /// Refuses a foreign field, with help on the own one.
    pub fn refuse(&mut self, name: &'static str, help: &str, reading: &mut ReadContext<'_>) {
        self.hidden.push(name);
        if let Some(place) = self.get(name, reading).and_then(|value| value.name_location) {
            let message = format!("unknown field `{name}` in `{}`", self.path);
            reading.mistake(codes::UNKNOWN_FIELD, message, place, &self.path_of(name)).help(help);
        }
    }

    /// Reports every field that was not requested.
    pub fn finish(self, reading: &mut ReadContext<'_>) {
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
    pub fn get(&self, name: &str, reading: &ReadContext<'_>) -> Option<ManifestValue<'a>> {
        let entry = self.entries.iter().find(|entry| entry.key == name)?;
        Some(ManifestValue {
            node: &entry.value,
            path: self.path_of(name),
            name_location: Some(entry.location(reading.file)),
        })
    }
}
