//! Converts nodes to types, field by field.
//!
//! A [`Reading`] collects the mistakes of one document. [`Fields`] takes the fields of one map and reports unknown ones. A reader returns
//! `None` after it reported a mistake; the caller continues with the other fields, so that one pass finds all mistakes.

#[cfg(test)]
pub mod asked;
mod fields;
mod names;
mod text;
mod value;

use crate::model::{Diagnostic, Location, MISTAKES_KEPT, Scope, left_off};

pub use fields::Fields;
pub use names::{NameRule, is_label_key, is_label_value, nearest, suggest, with_a_slip};
pub use text::{duration, quantity};
pub use value::Value;

use super::codes;
use super::yaml::Node;

/// The mistakes of one document.
#[derive(Debug)]
pub struct Reading<'a> {
    pub file: &'a str,
    /// The scope of its mistakes.
    pub scope: Scope,
    pub mistakes: Vec<Diagnostic>,
    /// How many were found after [`MISTAKES_KEPT`].
    more: usize,
    /// The last of these.
    unsaid: Vec<Diagnostic>,
}

impl<'a> Reading<'a> {
    pub fn new(file: &'a str, scope: Scope) -> Self {
        Self { file, scope, mistakes: Vec::new(), more: 0, unsaid: Vec::new() }
    }

    pub fn location(&self, node: &Node) -> Location {
        node.location(self.file)
    }

    /// Notes a mistake; the result may be completed with help and related places.
    pub fn mistake(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        location: Location,
        path: &str,
    ) -> Noted<'_> {
        let mut diagnostic = Diagnostic::error(code, message, self.scope.clone()).at(location);
        if !path.is_empty() {
            diagnostic = diagnostic.in_path(path);
        }
        if self.mistakes.len() < MISTAKES_KEPT {
            self.mistakes.push(diagnostic);
            return Noted { mistakes: &mut self.mistakes };
        }
        // The YAML parser may have reported this already.
        if self.more > 0 || self.mistakes.len() == MISTAKES_KEPT {
            self.more += 1;
            self.mistakes.truncate(MISTAKES_KEPT);
            self.mistakes.push(left_off(codes::MORE_MISTAKES, self.more, &diagnostic));
        }
        self.unsaid = vec![diagnostic];
        Noted { mistakes: &mut self.unsaid }
    }

    /// Whether further mistakes are dropped. Callers then skip expensive messages.
    pub fn is_full(&self) -> bool {
        self.mistakes.len() > MISTAKES_KEPT
    }

    /// Refuses a planned field or value, which must not be ignored.
    pub fn not_yet(&mut self, what: &str, value: &Value<'_>) {
        let location = value.name_location.clone().unwrap_or_else(|| self.location(value.node));
        self.mistake(codes::NOT_YET, format!("{what} is not supported yet"), location, &value.path)
            .help("it comes in a later version; remove it until then");
    }
}

/// The last recorded mistake, to add help and related places.
#[derive(Debug)]
pub struct Noted<'r> {
    mistakes: &'r mut Vec<Diagnostic>,
}

impl Noted<'_> {
    pub fn help(self, help: impl Into<String>) -> Self {
        if let Some(last) = self.mistakes.last_mut() {
            last.help = Some(help.into());
        }
        self
    }

    pub fn related(self, location: Location, label: &str) -> Self {
        if let Some(last) = self.mistakes.last_mut() {
            last.related.push((location, label.to_owned()));
        }
        self
    }
}
