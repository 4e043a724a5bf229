//! Records the objects of a traced render.

use std::cell::{Cell, RefCell};

use super::field_locations::{FieldLocations, walk};
use super::line_marks::{self, TemplateMark};
use crate::manifest::yaml::YamlNode;
use crate::model::{Location, RenderedObject};
use crate::render::layer_source::SHIPPED;

/// Records of a traced render.
#[derive(Debug, Default)]
pub struct TraceRecorder {
    pub marked: bool,
    /// Template paths; a mark holds the index.
    templates: RefCell<Vec<String>>,
    /// The index of the current podSet.
    pub pod_set: Cell<usize>,
    pub objects: RefCell<Vec<TracedObject>>,
}

/// An object as rendered for one podSet.
#[derive(Clone, Debug, PartialEq)]
pub struct TracedObject {
    pub key: TracedObjectKey,
    pub object: RenderedObject,
    /// Positions of the fields that a template or file writes.
    pub fields: FieldLocations,
}

/// Identifies an object across altered renders, which may change its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TracedObjectKey {
    pod_set: usize,
    source: Location,
    /// The index among documents of this podSet and source.
    ordinal: usize,
}

impl TraceRecorder {
    pub fn marked() -> Self {
        Self { marked: true, ..Self::default() }
    }

    /// Numbers templates for marks, and returns the first number.
    pub fn number_templates<'p>(&self, paths: impl Iterator<Item = &'p str>) -> usize {
        let mut templates = self.templates.borrow_mut();
        let first = templates.len();
        templates.extend(paths.map(str::to_owned));
        first
    }

    /// The template lines of the fields of a document.
    pub fn field_locations(&self, root: &YamlNode, marks: &[TemplateMark]) -> FieldLocations {
        let templates = self.templates.borrow();
        let mut fields = FieldLocations::new();
        walk(root, "", None, &mut |path, position| {
            if let Some(mark) = line_marks::mark_at(marks, position)
                && let Some(template) = templates.get(mark.template)
            {
                fields.insert(path.to_owned(), Location::new(template, mark.line, 1));
            }
        });
        fields
    }

    pub fn record(&self, object: &RenderedObject, fields: FieldLocations) {
        let mut made = self.objects.borrow_mut();
        let (pod_set, mut source) = (self.pod_set.get(), object.source.clone());
        // An altered shipped file is a file of the repository.
        if let Some(path) = source.file.strip_prefix(SHIPPED) {
            source.file = path.to_owned();
        }
        let same = |made: &&TracedObject| made.key.pod_set == pod_set && made.key.source == source;
        let ordinal = made.iter().filter(same).count();
        let key = TracedObjectKey { pod_set, source, ordinal };
        made.push(TracedObject { key, object: object.clone(), fields });
    }
}
