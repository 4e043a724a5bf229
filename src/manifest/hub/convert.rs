//! Converts one document from a version to the hub version, or back.

use super::rules::{ConversionAction, ConversionRule, LIST_ITEMS};
use crate::manifest::codes;
use crate::manifest::read::ReadContext;
use crate::manifest::yaml::{YamlEntry, YamlNode, YamlNodeKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversionDirection {
    ToHub,
    FromHub,
}

/// Changes a document in place, by rules that are all about one version.
pub fn convert_document(
    root: &mut YamlNode,
    rules: &[&ConversionRule],
    version: &str,
    direction: ConversionDirection,
    reading: &mut ReadContext<'_>,
) {
    ConversionWalk { rules, version, direction, path: Vec::new(), display_path: String::new() }
        .convert_node(root, reading);
}

struct ConversionWalk<'a> {
    rules: &'a [&'a ConversionRule],
    version: &'a str,
    direction: ConversionDirection,
    /// With the field names of the version, as in the rules.
    path: Vec<String>,
    /// As it is written in the document.
    display_path: String,
}

impl ConversionWalk<'_> {
    fn convert_node(&mut self, node: &mut YamlNode, reading: &mut ReadContext<'_>) {
        let place = reading.location(node);
        match &mut node.kind {
            YamlNodeKind::Map(entries) => {
                for entry in entries.iter_mut() {
                    self.convert_entry(entry, reading);
                }
            }
            YamlNodeKind::Seq(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.descend(LIST_ITEMS.to_owned(), &format!("[{index}]"), |walk| {
                        walk.convert_node(item, reading)
                    });
                }
            }
            YamlNodeKind::String(text) => match self.translated_text(text) {
                Ok(Some(other)) => *text = other,
                Ok(None) => {}
                Err(help) => {
                    let name = self.display_path.rsplit('.').next().unwrap_or(&self.display_path);
                    let message = format!("`{name}` cannot be {text:?} in {}", self.version);
                    reading.mistake(codes::NOT_IN_VERSION, message, place, &self.display_path).help(help);
                }
            },
            _ => {}
        }
    }

    fn convert_entry(&mut self, entry: &mut YamlEntry, reading: &mut ReadContext<'_>) {
        let shown = format!(".{}", entry.key);
        let (name, key) = match self.names(&entry.key) {
            Ok(names) => names,
            Err(help) => {
                self.refuse(entry, &help, reading);
                return;
            }
        };
        self.descend(name, &shown, |walk| {
            if walk.find_action(|say| *say == ConversionAction::Absent).is_some() {
                if !entry.value.is_null() {
                    let shown = walk.display_path.clone();
                    walk.refuse_at(entry, &shown, walk.refusal_help(), reading);
                }
                return;
            }
            walk.convert_node(&mut entry.value, reading);
        });
        entry.key = key;
    }

    /// The name of a key in the version, and what it becomes.
    fn names(&self, key: &str) -> Result<(String, String), String> {
        let renamed = |rule: &&&ConversionRule| match &rule.action {
            ConversionAction::Rename(name) if self.is_child(&rule.field) => {
                Some((rule.field.last()?.clone(), name.clone()))
            }
            _ => None,
        };
        let pairs: Vec<(String, String)> = self.rules.iter().filter_map(|rule| renamed(&rule)).collect();
        translate(&pairs, key, self.direction)
            .map_err(|other| match self.direction {
                ConversionDirection::ToHub => format!("its name there is `{other}`"),
                ConversionDirection::FromHub => format!("there `{key}` has the meaning of `{other}` here"),
            })
            .map(|other| match (other, self.direction) {
                (None, _) => (key.to_owned(), key.to_owned()),
                (Some(hub), ConversionDirection::ToHub) => (key.to_owned(), hub),
                (Some(name), ConversionDirection::FromHub) => (name.clone(), name),
            })
    }

    /// What the text at this place becomes; `None` when it stays.
    fn translated_text(&self, text: &str) -> Result<Option<String>, String> {
        let Some(ConversionAction::Values(pairs)) =
            self.find_action(|say| matches!(say, ConversionAction::Values(_)))
        else {
            return Ok(None);
        };
        translate(pairs, text, self.direction).map_err(|other| match self.direction {
            ConversionDirection::ToHub => format!("there it is {other:?}; {}", self.refusal_help()),
            ConversionDirection::FromHub => format!("there {text:?} has the meaning of {other:?} here"),
        })
    }

    fn refusal_help(&self) -> &'static str {
        match self.direction {
            ConversionDirection::ToHub => {
                "remove it, or bring the file to the native version: `tutti migrate`"
            }
            ConversionDirection::FromHub => "remove it, or leave the file in the native version",
        }
    }

    fn find_action(&self, wanted: impl Fn(&ConversionAction) -> bool) -> Option<&ConversionAction> {
        self.rules
            .iter()
            .find(|rule| rule.field == self.path && wanted(&rule.action))
            .map(|rule| &rule.action)
    }

    fn is_child(&self, field: &[String]) -> bool {
        field.split_last().is_some_and(|(_, parent)| parent == self.path)
    }

    fn refuse(&self, entry: &YamlEntry, help: &str, reading: &mut ReadContext<'_>) {
        let shown = if self.display_path.is_empty() {
            entry.key.clone()
        } else {
            format!("{}.{}", self.display_path, entry.key)
        };
        self.refuse_at(entry, &shown, help, reading);
    }

    fn refuse_at(&self, entry: &YamlEntry, shown: &str, help: &str, reading: &mut ReadContext<'_>) {
        let message = format!("{} has no `{shown}`", self.version);
        let place = entry.location(reading.file);
        reading.mistake(codes::NOT_IN_VERSION, message, place, shown).help(help);
    }

    fn descend(&mut self, name: String, shown: &str, within: impl FnOnce(&mut Self)) {
        let length = self.display_path.len();
        self.path.push(name);
        self.display_path.push_str(if length == 0 { shown.trim_start_matches('.') } else { shown });
        within(self);
        self.display_path.truncate(length);
        self.path.pop();
    }
}

/// Translates a text by pairs of (version, hub); `None` when it stays. The error is the text that already has this meaning: without the
/// refusal, the way back would be ambiguous.
fn translate(
    pairs: &[(String, String)],
    word: &str,
    direction: ConversionDirection,
) -> Result<Option<String>, String> {
    let sides = |pair: &(String, String)| match direction {
        ConversionDirection::ToHub => (pair.0.clone(), pair.1.clone()),
        ConversionDirection::FromHub => (pair.1.clone(), pair.0.clone()),
    };
    if let Some((_, to)) = pairs.iter().map(sides).find(|(from, _)| from == word) {
        return Ok(Some(to));
    }
    match pairs.iter().map(sides).find(|(_, to)| to == word) {
        Some((from, _)) => Err(from),
        None => Ok(None),
    }
}
