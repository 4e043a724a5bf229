//! Collects the marks of other tools in one render, and warns once for each mark with the objects that have it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::{Job, codes};
use crate::model::{Location, Mark};

const NAMED: usize = 3;

/// Positions and names of objects.
type Objects = BTreeSet<(Location, String)>;

#[derive(Clone, Debug, Default)]
pub struct Remarks(RefCell<BTreeMap<Mark, Objects>>);

impl Remarks {
    pub fn note(&self, mark: Mark, object: String, source: &Location) {
        self.0.borrow_mut().entry(mark).or_default().insert((source.clone(), object));
    }

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
