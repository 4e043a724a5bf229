//! Reads one value by its expected type.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::names::{is_label_key, is_label_value};
use super::{NameRule, ReadContext, codes, suggest};
use crate::manifest::yaml::{YamlNode, YamlNodeKind};
use crate::model::Location;

/// Items of one list or map at most, because readers compare them with each other.
pub const MOST_ITEMS: usize = 4096;

/// A node with its path in the document.
#[derive(Clone, Debug)]
pub struct ManifestValue<'a> {
    pub node: &'a YamlNode,
    /// For example `spec.clusterTopology.clusters[0].name`; empty at the root.
    pub path: String,
    /// Where the name of its field stands; `None` for the root and for items of lists.
    pub name_location: Option<Location>,
}

impl<'a> ManifestValue<'a> {
    pub fn root(node: &'a YamlNode) -> Self {
        Self { node, path: String::new(), name_location: None }
    }

    /// The field of a map, or the map itself when it has none of that name.
    pub fn entry(&self, name: &str, file: &str) -> Self {
        match self.node.entry(name) {
            Some(entry) => {
                Self { node: &entry.value, path: name.to_owned(), name_location: Some(entry.location(file)) }
            }
            None => self.clone(),
        }
    }

    /// The last part of its path, for messages.
    pub fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }

    /// A scalar as it is written; `…` for anything else.
    pub fn brief(&self) -> &str {
        match &self.node.kind {
            YamlNodeKind::String(text) if text.chars().count() > 40 => "…",
            _ => self.node.scalar_text().unwrap_or("…"),
        }
    }

    /// An empty map or list.
    pub fn is_empty(&self) -> bool {
        matches!(&self.node.kind, YamlNodeKind::Map(entries) if entries.is_empty())
            || matches!(&self.node.kind, YamlNodeKind::Seq(items) if items.is_empty())
    }
}

impl ReadContext<'_> {
    pub fn wrong_type(&mut self, value: &ManifestValue<'_>, expected: &str) {
        let name = if value.path.is_empty() { "the document" } else { &format!("`{}`", value.name()) };
        let location = self.location(value.node);
        let message = format!("{name} must be {expected}, not {}", value.node.description());
        let noted = self.mistake(codes::WRONG_TYPE, message, location, &value.path);
        match &value.node.kind {
            YamlNodeKind::Bool(_, text) if expected.contains("text") => {
                let words = "YAML reads yes, no, on, off, true and false without quotes as booleans";
                noted.help(format!("put it in quotes: \"{text}\"; {words}"));
            }
            YamlNodeKind::Int(_, text) | YamlNodeKind::Float(_, text) if expected.contains("text") => {
                noted.help(format!("put it in quotes: \"{text}\""));
            }
            YamlNodeKind::String(text) if expected.contains("number") && text.parse::<u64>().is_ok() => {
                noted.help(format!("remove the quotes: {text}"));
            }
            _ => {}
        }
    }

    pub fn bad_value(&mut self, value: &ManifestValue<'_>, message: impl Into<String>, help: &str) {
        let location = self.location(value.node);
        self.mistake(codes::BAD_VALUE, message, location, &value.path).help(help);
    }

    /// A text; a number or boolean without quotes is a mistake that says how to write it.
    pub fn text(&mut self, value: &ManifestValue<'_>) -> Option<String> {
        match &value.node.kind {
            YamlNodeKind::String(text) => Some(text.clone()),
            _ => {
                self.wrong_type(value, "a text");
                None
            }
        }
    }

    /// A text that is not empty and has no spaces.
    pub fn word(&mut self, value: &ManifestValue<'_>) -> Option<String> {
        let text = self.text(value)?;
        if text.is_empty() || text.contains(char::is_whitespace) {
            let message = format!("`{}` must be one word, not {}", value.name(), value.node.description());
            self.bad_value(value, message, "remove the spaces, or the field");
            return None;
        }
        Some(text)
    }

    pub fn boolean(&mut self, value: &ManifestValue<'_>) -> Option<bool> {
        match &value.node.kind {
            YamlNodeKind::Bool(boolean, _) => Some(*boolean),
            _ => {
                self.wrong_type(value, "a boolean (true or false)");
                None
            }
        }
    }

    pub fn count(&mut self, value: &ManifestValue<'_>, range: RangeInclusive<u32>) -> Option<u32> {
        let YamlNodeKind::Int(number, _) = &value.node.kind else {
            self.wrong_type(value, "a whole number");
            return None;
        };
        let count = number
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .filter(|count| range.contains(count));
        if count.is_none() {
            let (from, to) = (range.start(), range.end());
            let message = format!("`{}` must be from {from} to {to}, not {number}", value.name());
            self.bad_value(value, message, &format!("write a whole number from {from} to {to}"));
        }
        count
    }

    /// `90s`, `5m`, `1h30m`.
    pub fn duration(&mut self, value: &ManifestValue<'_>) -> Option<Duration> {
        let duration = match &value.node.kind {
            YamlNodeKind::String(text) => super::text::parse_duration(text),
            _ => None,
        };
        if duration.is_none() {
            let message = format!("`{}` must be a duration, not {}", value.name(), value.node.description());
            self.bad_value(value, message, "write it with units: 60s, 5m or 1h30m");
        }
        duration
    }

    /// One of the given words, in any case when `any_case`; `later` are planned ones.
    pub fn choice<T: Copy>(
        &mut self,
        value: &ManifestValue<'_>,
        choices: &[(&str, T)],
        later: &[&str],
        any_case: bool,
    ) -> Option<T> {
        let text = self.text(value)?;
        let fits = |word: &str| word == text || any_case && word.eq_ignore_ascii_case(&text);
        if let Some((_, choice)) = choices.iter().find(|(word, _)| fits(word)) {
            return Some(*choice);
        }
        if let Some(word) = later.iter().find(|word| fits(word)) {
            self.not_yet(
                &format!("`{}: {word}`", value.path),
                &ManifestValue { name_location: None, ..value.clone() },
            );
            return None;
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let known: Vec<&str> = words.iter().chain(later).copied().collect();
        let mut help = suggest(&text, &known, &words);
        if !later.is_empty() {
            help.push_str(&format!("; not supported yet: {}", later.join(", ")));
        }
        let location = self.location(value.node);
        let message = format!("`{}` cannot be {text:?}", value.name());
        self.mistake(codes::UNKNOWN_VALUE, message, location, &value.path).help(help);
        None
    }

    pub fn name(&mut self, value: &ManifestValue<'_>, rule: NameRule) -> Option<String> {
        let text = self.text(value)?;
        if rule.fits(&text) {
            return Some(text);
        }
        let location = self.location(value.node);
        self.mistake(codes::BAD_NAME, format!("{text:?} is not a valid name"), location, &value.path)
            .help(format!("a name has {}", rule.description()));
        None
    }

    pub fn list<'v>(&mut self, value: &ManifestValue<'v>) -> Option<Vec<ManifestValue<'v>>> {
        let items = self.long_list(value)?;
        self.check_items(value, items.len())?;
        Some(items)
    }

    /// A list without a limit, because its items are not compared with each other.
    pub fn long_list<'v>(&mut self, value: &ManifestValue<'v>) -> Option<Vec<ManifestValue<'v>>> {
        let Some(items) = value.node.as_seq() else {
            self.wrong_type(value, "a list");
            return None;
        };
        let item = |(index, node)| ManifestValue {
            node,
            path: format!("{}[{index}]", value.path),
            name_location: None,
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    fn check_items(&mut self, value: &ManifestValue<'_>, count: usize) -> Option<()> {
        self.check_count(value, count, MOST_ITEMS)
    }

    /// A mistake where a list or map with so many items has too many.
    pub fn check_count(&mut self, value: &ManifestValue<'_>, count: usize, most: usize) -> Option<()> {
        if count <= most {
            return Some(());
        }
        let message = format!("`{}` has {count} items, more than the limit of {most}", value.name());
        let location = value.name_location.clone().unwrap_or_else(|| self.location(value.node));
        self.mistake(codes::LIMIT, message, location, &value.path)
            .help("write a pattern or a selector, or split the manifest");
        None
    }

    pub fn texts(&mut self, value: &ManifestValue<'_>) -> Option<Vec<String>> {
        let items = self.list(value)?;
        // Read all items before the first failure ends the list, to report all mistakes.
        let texts: Vec<_> = items.iter().map(|item| self.text(item)).collect();
        texts.into_iter().collect()
    }

    /// A map with its values.
    pub fn entries<'v>(&mut self, value: &ManifestValue<'v>) -> Option<Vec<(&'v str, ManifestValue<'v>)>> {
        let Some(entries) = value.node.as_map() else {
            self.wrong_type(value, "a map");
            return None;
        };
        self.check_items(value, entries.len())?;
        let file = self.file;
        let entry = |entry: &'v crate::manifest::yaml::YamlEntry| {
            let path = format!("{}.{}", value.path, entry.key);
            (
                entry.key.as_str(),
                ManifestValue { node: &entry.value, path, name_location: Some(entry.location(file)) },
            )
        };
        Some(entries.iter().map(entry).collect())
    }

    /// A map of texts with free keys.
    pub fn text_map(&mut self, value: &ManifestValue<'_>) -> Option<BTreeMap<String, String>> {
        let entries = self.entries(value)?;
        let pairs: Vec<_> =
            entries.into_iter().map(|(key, value)| Some((key.to_owned(), self.text(&value)?))).collect();
        pairs.into_iter().collect()
    }

    /// A map of labels: keys and values by the rules of Kubernetes.
    pub fn labels(&mut self, value: &ManifestValue<'_>) -> Option<BTreeMap<String, String>> {
        let entries = self.entries(value)?;
        let mut labels = BTreeMap::new();
        let before = self.mistakes.len();
        for (key, value) in entries {
            self.label_key(key, &value);
            if let Some(text) = self.label_value(&value) {
                labels.insert(key.to_owned(), text);
            }
        }
        (self.mistakes.len() == before).then_some(labels)
    }

    /// A text that is also the value of a label.
    pub fn label_value(&mut self, value: &ManifestValue<'_>) -> Option<String> {
        let text = self.text(value)?;
        if is_label_value(&text) {
            return Some(text);
        }
        let help = "letters, digits, `-`, `_` and `.`, a letter or digit at both ends, at most 63";
        self.bad_value(value, format!("{text:?} is not a valid label value"), help);
        None
    }

    /// One name twice in a list.
    pub fn duplicate(&mut self, name: &str, value: &ManifestValue<'_>, first: &ManifestValue<'_>) {
        let (place, first) = (self.location(value.node), self.location(first.node));
        self.mistake(codes::DUPLICATE_ITEM, format!("the name `{name}` is given twice"), place, &value.path)
            .related(first, "here first");
    }

    /// Checks the key of a label or annotation.
    pub fn label_key(&mut self, key: &str, value: &ManifestValue<'_>) {
        if is_label_key(key) {
            return;
        }
        let location = value.name_location.clone().unwrap_or_else(|| self.location(value.node));
        self.mistake(
            codes::BAD_NAME,
            format!("{key:?} is not a valid label or annotation key"),
            location,
            &value.path,
        )
        .help("`name` or `domain.example/name`; letters, digits, `-`, `_` and `.`, at most 63 after the `/`");
    }
}

impl ReadContext<'_> {
    /// Refuses a planned field or value, which must not be ignored.
    pub fn not_yet(&mut self, what: &str, value: &ManifestValue<'_>) {
        let location = value.name_location.clone().unwrap_or_else(|| self.location(value.node));
        self.mistake(codes::NOT_YET, format!("{what} is not supported yet"), location, &value.path)
            .help("it comes in a later version; remove it until then");
    }
}
