//! Finds where each field of a rendered object comes from.
//!
//! A plain render keeps no records. To explain one, it is repeated. First with [`marks`] in the templates: they give the
//! template line of each field. Then once for each value of each input file ([`leaves`]), with that value altered ([`runs`]):
//! the value reaches the fields that change, through layers, templates, manifests and patches. [`explain`] combines both.
//!
//! This module never analyzes template code.

pub mod explain;
mod files;
pub mod leaves;
pub mod lines;
pub mod marks;
pub mod reach;
mod runs;
pub mod touch;

use std::cell::{Cell, RefCell};

use super::documents::Fields;
use crate::manifest::yaml::{Node, NodeKind};
use crate::model::{Location, Position, RenderedObject};
use marks::Mark;

/// Records of a traced render.
#[derive(Debug, Default)]
pub struct Notes {
    pub marked: bool,
    /// Template paths; a mark holds the index.
    templates: RefCell<Vec<String>>,
    /// The index of the current podSet.
    pub pod_set: Cell<usize>,
    pub made: RefCell<Vec<Made>>,
}

/// An object as rendered for one podSet.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    pub key: Key,
    pub object: RenderedObject,
    /// Positions of the fields that a template or file writes.
    pub fields: Fields,
}

/// Identifies an object across altered renders, which may change its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pod_set: usize,
    source: Location,
    /// The index among documents of this podSet and source.
    ordinal: usize,
}

impl Notes {
    pub fn marked() -> Self {
        Self { marked: true, ..Self::default() }
    }

    /// Numbers templates for marks, and returns the first number.
    pub fn number<'p>(&self, paths: impl Iterator<Item = &'p str>) -> usize {
        let mut templates = self.templates.borrow_mut();
        let first = templates.len();
        templates.extend(paths.map(str::to_owned));
        first
    }

    /// The template lines of the fields of a document.
    pub fn fields(&self, root: &Node, marks: &[Mark]) -> Fields {
        let templates = self.templates.borrow();
        let mut fields = Fields::new();
        walk(root, "", None, &mut |path, position| {
            if let Some(mark) = marks::at(marks, position)
                && let Some(template) = templates.get(mark.template)
            {
                fields.insert(path.to_owned(), Location::new(template, mark.line, 1));
            }
        });
        fields
    }

    pub fn note(&self, object: &RenderedObject, fields: Fields) {
        let mut made = self.made.borrow_mut();
        let (pod_set, mut source) = (self.pod_set.get(), object.source.clone());
        // An altered shipped file is a file of the repository.
        if let Some(path) = source.file.strip_prefix(super::layers::SHIPPED) {
            source.file = path.to_owned();
        }
        let same = |made: &&Made| made.key.pod_set == pod_set && made.key.source == source;
        let ordinal = made.iter().filter(same).count();
        let key = Key { pod_set, source, ordinal };
        made.push(Made { key, object: object.clone(), fields });
    }
}

/// The positions of fields in a plain file.
pub fn fields_of_file(file: &str, root: &Node) -> Fields {
    let mut fields = Fields::new();
    walk(root, "", None, &mut |path, position| {
        fields.insert(path.to_owned(), Location::new(file, position.line, position.column));
    });
    fields
}

/// A scalar has its own position, a map or list that of its key.
fn walk(node: &Node, path: &str, name: Option<Position>, see: &mut dyn FnMut(&str, Position)) {
    match &node.kind {
        NodeKind::Map(entries) => {
            see(path, name.unwrap_or(node.start));
            for entry in entries {
                walk(&entry.value, &reach::below(path, &entry.key), Some(entry.start), see);
            }
        }
        NodeKind::Seq(items) => {
            see(path, name.unwrap_or(node.start));
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{path}[{index}]"), None, see);
            }
        }
        _ => see(path, node.start),
    }
}
