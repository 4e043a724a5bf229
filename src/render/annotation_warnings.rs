//! Collects the marks of other tools in one render, and warns once for each mark with the objects that have it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::codes;
use crate::model::{ForeignAnnotation, Location};

const MOST_NAMED: usize = 3;

/// Positions and names of objects.
type AnnotatedObjects = BTreeSet<(Location, String)>;

#[derive(Clone, Debug, Default)]
pub struct AnnotationWarnings(RefCell<BTreeMap<ForeignAnnotation, AnnotatedObjects>>);

impl AnnotationWarnings {
    pub fn record(&self, mark: ForeignAnnotation, object: String, source: &Location) {
        self.0.borrow_mut().entry(mark).or_default().insert((source.clone(), object));
    }

    pub fn report(&self, warn: impl Fn(&'static str, String, &Location, &str)) {
        for (mark, about) in self.0.borrow().iter() {
            let Some((first, _)) = about.first() else { continue };
            let objects = join_names(about);
            match mark.equivalent() {
                Some(equal) => {
                    let message = format!("{mark} of {objects} is read as {equal}");
                    warn(codes::MARK_READ, message, first, mark.help());
                }
                None => {
                    let message = format!("{mark} of {objects}: {}", mark.effect());
                    warn(codes::MARK_NOT_KEPT, message, first, mark.help());
                }
            }
        }
    }
}

fn join_names(about: &AnnotatedObjects) -> String {
    let names: BTreeSet<&str> = about.iter().map(|(_, name)| name.as_str()).collect();
    let list: Vec<&str> = names.iter().take(MOST_NAMED).copied().collect();
    match names.len().saturating_sub(MOST_NAMED) {
        0 => list.join(", "),
        1 => format!("{} and 1 other", list.join(", ")),
        more => format!("{} and {more} others", list.join(", ")),
    }
}
