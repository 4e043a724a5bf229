//! Converts one document from a version to the hub version, or back.

use super::rules::{Rule, Say};
use crate::manifest::codes;
use crate::manifest::read::Reading;
use crate::manifest::yaml::{Entry, Node, NodeKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToHub,
    FromHub,
}

/// The path part of a rule that enters a list.
pub const ITEMS: &str = "[]";

/// Changes a document in place, by rules that are all about one version.
pub fn document(
    root: &mut Node,
    rules: &[&Rule],
    version: &str,
    direction: Direction,
    reading: &mut Reading<'_>,
) {
    Walk { rules, version, direction, at: Vec::new(), shown: String::new() }.node(root, reading);
}

struct Walk<'a> {
    rules: &'a [&'a Rule],
    version: &'a str,
    direction: Direction,
    /// With the field names of the version, as in the rules.
    at: Vec<String>,
    /// As it is written in the document.
    shown: String,
}

impl Walk<'_> {
    fn node(&mut self, node: &mut Node, reading: &mut Reading<'_>) {
        let place = reading.location(node);
        match &mut node.kind {
            NodeKind::Map(entries) => {
                for entry in entries.iter_mut() {
                    self.entry(entry, reading);
                }
            }
            NodeKind::Seq(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.below(ITEMS.to_owned(), &format!("[{index}]"), |walk| walk.node(item, reading));
                }
            }
            NodeKind::String(text) => match self.word(text) {
                Ok(Some(other)) => *text = other,
                Ok(None) => {}
                Err(help) => {
                    let name = self.shown.rsplit('.').next().unwrap_or(&self.shown);
                    let message = format!("`{name}` cannot be {text:?} in {}", self.version);
                    reading.mistake(codes::NOT_IN_VERSION, message, place, &self.shown).help(help);
                }
            },
            _ => {}
        }
    }

    fn entry(&mut self, entry: &mut Entry, reading: &mut Reading<'_>) {
        let shown = format!(".{}", entry.key);
        let (name, key) = match self.names(&entry.key) {
            Ok(names) => names,
            Err(help) => {
                self.refuse(entry, &help, reading);
                return;
            }
        };
        self.below(name, &shown, |walk| {
            if walk.says(|say| *say == Say::Absent).is_some() {
                if !entry.value.is_null() {
                    let shown = walk.shown.clone();
                    walk.refuse_at(entry, &shown, walk.way_out(), reading);
                }
                return;
            }
            walk.node(&mut entry.value, reading);
        });
        entry.key = key;
    }

    /// The name of a key in the version, and what it becomes.
    fn names(&self, key: &str) -> Result<(String, String), String> {
        let renamed = |rule: &&&Rule| match &rule.say {
            Say::Name(name) if self.is_child(&rule.field) => Some((rule.field.last()?.clone(), name.clone())),
            _ => None,
        };
        let pairs: Vec<(String, String)> = self.rules.iter().filter_map(|rule| renamed(&rule)).collect();
        translate(&pairs, key, self.direction)
            .map_err(|other| match self.direction {
                Direction::ToHub => format!("there it is called `{other}`"),
                Direction::FromHub => format!("there `{key}` is what is called `{other}` here"),
            })
            .map(|other| match (other, self.direction) {
                (None, _) => (key.to_owned(), key.to_owned()),
                (Some(hub), Direction::ToHub) => (key.to_owned(), hub),
                (Some(name), Direction::FromHub) => (name.clone(), name),
            })
    }

    /// What the text at this place becomes; `None` when it stays.
    fn word(&self, text: &str) -> Result<Option<String>, String> {
        let Some(Say::Words(pairs)) = self.says(|say| matches!(say, Say::Words(_))) else { return Ok(None) };
        translate(pairs, text, self.direction).map_err(|other| match self.direction {
            Direction::ToHub => format!("there it is {other:?}; {}", self.way_out()),
            Direction::FromHub => format!("there {text:?} means what is {other:?} here"),
        })
    }

    fn way_out(&self) -> &'static str {
        match self.direction {
            Direction::ToHub => "remove it, or bring the file to the native version: `tutti migrate`",
            Direction::FromHub => "remove it, or leave the file in the native version",
        }
    }

    fn says(&self, wanted: impl Fn(&Say) -> bool) -> Option<&Say> {
        self.rules.iter().find(|rule| rule.field == self.at && wanted(&rule.say)).map(|rule| &rule.say)
    }

    fn is_child(&self, field: &[String]) -> bool {
        field.split_last().is_some_and(|(_, parent)| parent == self.at)
    }

    fn refuse(&self, entry: &Entry, help: &str, reading: &mut Reading<'_>) {
        let shown =
            if self.shown.is_empty() { entry.key.clone() } else { format!("{}.{}", self.shown, entry.key) };
        self.refuse_at(entry, &shown, help, reading);
    }

    fn refuse_at(&self, entry: &Entry, shown: &str, help: &str, reading: &mut Reading<'_>) {
        let message = format!("{} has no `{shown}`", self.version);
        let place = entry.location(reading.file);
        reading.mistake(codes::NOT_IN_VERSION, message, place, shown).help(help);
    }

    fn below(&mut self, name: String, shown: &str, within: impl FnOnce(&mut Self)) {
        let length = self.shown.len();
        self.at.push(name);
        self.shown.push_str(if length == 0 { shown.trim_start_matches('.') } else { shown });
        within(self);
        self.shown.truncate(length);
        self.at.pop();
    }
}

/// Translates a text by pairs of (version, hub); `None` when it stays. The error is the text that already has this meaning: without the
/// refusal, the way back would be ambiguous.
fn translate(pairs: &[(String, String)], word: &str, direction: Direction) -> Result<Option<String>, String> {
    let sides = |pair: &(String, String)| match direction {
        Direction::ToHub => (pair.0.clone(), pair.1.clone()),
        Direction::FromHub => (pair.1.clone(), pair.0.clone()),
    };
    if let Some((_, to)) = pairs.iter().map(sides).find(|(from, _)| from == word) {
        return Ok(Some(to));
    }
    match pairs.iter().map(sides).find(|(_, to)| to == word) {
        Some((from, _)) => Err(from),
        None => Ok(None),
    }
}
