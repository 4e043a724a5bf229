//! One render, with all its inputs and its warnings.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use super::annotation_warnings::AnnotationWarnings;
use super::app_inputs::AppInputs;
use super::cluster_facts::TrackedCluster;
use super::field_locator::FieldLocator;
use super::time_slice::RenderTimeSlice;
use super::trace::trace_recorder::TraceRecorder;
use crate::fleet::{Fleet, Target};
use crate::model::{App, ChartProvider, Diagnostic, DiagnosticScope, Location, ObjectId, Snapshot};

/// One render, with all its inputs.
#[derive(Clone, Debug)]
pub struct RenderJob<'a> {
    pub fleet: &'a Fleet,
    pub snapshot: &'a Snapshot,
    pub charts: &'a dyn ChartProvider,
    pub target: &'a Target,
    pub app: &'a App,
    pub inputs: Arc<AppInputs<'a>>,
    pub cluster: TrackedCluster<'a>,
    /// Set only by [`trace`](super::trace).
    pub trace: Option<&'a TraceRecorder>,
    /// The remaining processor time for templates in workers; `None` before the first.
    pub time_left: Cell<Option<Duration>>,
    pub time_slice: RenderTimeSlice<'a>,
    pub annotation_warnings: AnnotationWarnings,
    pub warnings: RefCell<Vec<Diagnostic>>,
    pub field_locator: FieldLocator,
}

impl RenderJob<'_> {
    /// Mistakes of another target, with the scope of this one.
    pub fn rescoped(&self, mistakes: &[Diagnostic]) -> Vec<Diagnostic> {
        mistakes.iter().map(|mistake| Diagnostic { scope: self.scope(), ..mistake.clone() }).collect()
    }

    pub fn error(&self, code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message, self.scope())
    }

    /// Adds a warning. Its scope is the app, because clusters share a render.
    pub fn warn(&self, code: &'static str, message: impl Into<String>, at: &Location, help: &str) {
        let warning = Diagnostic::warning(code, message, DiagnosticScope::App(self.app.id.clone()));
        self.warnings.borrow_mut().push(warning.at(at.clone()).help(help));
    }

    pub fn scope(&self) -> DiagnosticScope {
        DiagnosticScope::Target(self.target.app.clone(), self.target.cluster.clone())
    }

    pub fn describe(&self, id: &ObjectId) -> String {
        match self.scope() {
            DiagnosticScope::Target(_, cluster) => format!("{id} on {cluster}"),
            _ => id.to_string(),
        }
    }
}
