//! What is said of the marks of other tools: each mark once for an app, with the objects that have it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::{Job, codes};
use crate::model::{Location, Mark};

/// So many objects are named.
const NAMED: usize = 3;

/// The places and names of objects.
type Objects = BTreeSet<(Location, String)>;

/// The marks that one render found.
#[derive(Clone, Debug, Default)]
pub struct Remarks(RefCell<BTreeMap<Mark, Objects>>);

impl Remarks {
    pub fn note(&self, mark: Mark, object: String, source: &Location) {
        self.0.borrow_mut().entry(mark).or_default().insert((source.clone(), object));
    }

    /// Adds them to the warnings of the render.
    pub fn tell(&self, job: &Job<'_>) {
        for (mark, about) in self.0.borrow().iter() {
            let Some((first, _)) = about.first() else { continue };
            let objects = named(about);
            match mark.equal() {
                Some(equal) => {
                    let message = format!("{mark} of {objects} is read as {equal}");
                    job.warn(codes::MARK_READ, message, first, mark.help());
                }
                None => {
                    let message = format!("{mark} of {objects}: {}", mark.effect());
                    job.warn(codes::MARK_NOT_KEPT, message, first, mark.help());
                }
            }
        }
    }
}

fn named(about: &Objects) -> String {
    let names: BTreeSet<&str> = about.iter().map(|(_, name)| name.as_str()).collect();
    let list: Vec<&str> = names.iter().take(NAMED).copied().collect();
    match names.len().saturating_sub(NAMED) {
        0 => list.join(", "),
        1 => format!("{} and 1 other", list.join(", ")),
        more => format!("{} and {more} others", list.join(", ")),
    }
}
