//! One mistake, with where it is and what to do about it.

use std::fmt;

use serde::Serialize;

use super::{AppId, ClusterName};

/// A place in a text file; both counted from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TextPosition {
    pub line: u32,
    pub column: u32,
}

/// A span in a file of the config repository; `end` is exclusive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Location {
    /// Path from the root of the config repository, with `/`.
    pub file: String,
    pub start: TextPosition,
    pub end: Option<TextPosition>,
}

impl Location {
    pub fn new(file: &str, line: u32, column: u32) -> Self {
        Self { file: file.to_owned(), start: TextPosition { line, column }, end: None }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.start.line, self.start.column)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiagnosticSeverity {
    Error,
    Warning,
}

/// What a mistake puts out of action. Neighbours go on; deletes never run while any error stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DiagnosticScope {
    /// One app, on all its clusters.
    App(AppId),
    /// One app on one cluster.
    Target(AppId, ClusterName),
    /// One cluster: nothing is written to it.
    Cluster(ClusterName),
    /// A file that could not be understood: whatever it held is unknown.
    File(String),
    /// The instance: nothing can be applied at all.
    Instance,
}

/// A mistake in the config repository (or in what it asks of a cluster).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub severity: DiagnosticSeverity,
    /// `E` and four digits, stable for ever: E11xx reading, E12xx fields, E2xxx fleet, E3xxx rendering.
    pub code: &'static str,
    /// Lower case, no full stop, names the object.
    pub message: String,
    pub location: Option<Location>,
    /// Where in the document, for example `spec.clusterTopology.clusters[0].name`.
    pub path: Option<String>,
    pub help: Option<String>,
    /// Other places that belong to it, each with a short label.
    pub related: Vec<(Location, String)>,
    pub scope: DiagnosticScope,
    /// The clusters that it was found on, where one mistake stands for those of several.
    pub clusters: Vec<ClusterName>,
}

impl Diagnostic {
    pub fn error(code: &'static str, message: impl Into<String>, scope: DiagnosticScope) -> Self {
        Self {
            severity: DiagnosticSeverity::Error,
            code,
            message: message.into(),
            location: None,
            path: None,
            help: None,
            related: Vec::new(),
            scope,
            clusters: Vec::new(),
        }
    }

    pub fn warning(code: &'static str, message: impl Into<String>, scope: DiagnosticScope) -> Self {
        Self { severity: DiagnosticSeverity::Warning, ..Self::error(code, message, scope) }
    }

    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    #[must_use]
    pub fn in_path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    #[must_use]
    pub fn related(mut self, location: Location, label: impl Into<String>) -> Self {
        self.related.push((location, label.into()));
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == DiagnosticSeverity::Error
    }
}

/// So many mistakes of one document are kept.
pub const MOST_MISTAKES: usize = 50;

/// In the place of all mistakes of a document after [`MOST_MISTAKES`].
pub fn further_mistakes(code: &'static str, count: usize, last: &Diagnostic) -> Diagnostic {
    let message = format!("{count} more errors in this document are not shown");
    let mut told = Diagnostic::error(code, message, last.scope.clone());
    told.location.clone_from(&last.location);
    told.help("fix the errors that are shown, then run it again")
}

/// One line: `error[E1203]: message at file:line:column`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            DiagnosticSeverity::Error => "error",
            DiagnosticSeverity::Warning => "warning",
        };
        write!(f, "{severity}[{}]: {}", self.code, self.message)?;
        if let Some(location) = &self.location {
            write!(f, " at {location}")?;
        }
        Ok(())
    }
}
