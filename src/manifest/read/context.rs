//! The mistakes of one document, as they are read.

use crate::manifest::codes;
use crate::manifest::yaml::YamlNode;
use crate::model::{Diagnostic, DiagnosticScope, Location, MOST_MISTAKES, further_mistakes};

/// The mistakes of one document.
#[derive(Debug)]
pub struct ReadContext<'a> {
    pub file: &'a str,
    /// The scope of its mistakes.
    pub scope: DiagnosticScope,
    pub mistakes: Vec<Diagnostic>,
    /// How many were found after [`MOST_MISTAKES`].
    dropped_count: usize,
    /// The last of these.
    dropped: Vec<Diagnostic>,
}

impl<'a> ReadContext<'a> {
    pub fn new(file: &'a str, scope: DiagnosticScope) -> Self {
        Self { file, scope, mistakes: Vec::new(), dropped_count: 0, dropped: Vec::new() }
    }

    pub fn location(&self, node: &YamlNode) -> Location {
        node.location(self.file)
    }

    /// Notes a mistake; the result may be completed with help and related places.
    pub fn mistake(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        location: Location,
        path: &str,
    ) -> RecordedMistake<'_> {
        let mut diagnostic = Diagnostic::error(code, message, self.scope.clone()).at(location);
        if !path.is_empty() {
            diagnostic = diagnostic.in_path(path);
        }
        if self.mistakes.len() < MOST_MISTAKES {
            self.mistakes.push(diagnostic);
            return RecordedMistake { mistakes: &mut self.mistakes };
        }
        // The YAML parser may have reported this already.
        if self.dropped_count > 0 || self.mistakes.len() == MOST_MISTAKES {
            self.dropped_count += 1;
            self.mistakes.truncate(MOST_MISTAKES);
            self.mistakes.push(further_mistakes(codes::MORE_MISTAKES, self.dropped_count, &diagnostic));
        }
        self.dropped = vec![diagnostic];
        RecordedMistake { mistakes: &mut self.dropped }
    }

    /// Whether further mistakes are dropped. Callers then skip expensive messages.
    pub fn is_full(&self) -> bool {
        self.mistakes.len() > MOST_MISTAKES
    }
}

/// The last recorded mistake, to add help and related places.
#[derive(Debug)]
pub struct RecordedMistake<'r> {
    mistakes: &'r mut Vec<Diagnostic>,
}

impl RecordedMistake<'_> {
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
