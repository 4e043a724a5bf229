//! Ownership of replicas when they are written through `scale`.
//!
//! A scale is an object of its own, whose managed fields are those of the workload that own the
//! replicas, in the scale's version. After the write they are put back. For updaters that is not the
//! entry they came from: their replicas end up in an entry of their own, without a time.

use std::borrow::Cow;
use std::mem;

use serde_json::Value;

use super::fieldset::FieldSet;
use super::managed::{Entry, Managed, write_to};
use super::path::PathElement;
use super::write::Write;
use super::writer::Writer;

const SCALE_VERSION: &str = "autoscaling/v1";

/// Records a write of the replicas at `path`.
pub(crate) fn track_scale(before: &Value, new: &mut Value, path: &[&str], write: &Write<'_>) {
    let workload = Managed::of(before).unwrap_or_default();
    let replicas: Vec<PathElement<'_>> = path.iter().map(|name| PathElement::Field(name)).collect();
    let mut only = FieldSet::default();
    only.insert(&replicas);

    let mut scale = Managed::default();
    for entry in workload.entries.iter().filter(|entry| write.type_at(&entry.api_version).is_some()) {
        if entry.fields.contains(&replicas) {
            let api_version = Cow::Borrowed(SCALE_VERSION);
            scale.put(Entry { api_version, fields: only.clone(), ..entry.clone() });
        }
    }
    let writer = Writer { api_version: SCALE_VERSION.to_owned(), ..write.writer.clone() };
    // replicas that nobody owns are not tracked
    let is_tracked = !scale.is_empty();
    if is_tracked && count(before, path) != count(new, path) {
        scale.entries.clear();
        if count(new, path) != 0 {
            scale.put(Entry::of(&writer, only.clone()));
        }
    }

    let mut after = Managed::default();
    for mut entry in workload.entries.iter().cloned() {
        if write.type_at(&entry.api_version).is_none() {
            continue;
        }
        if entry.fields.contains(&replicas) {
            match scale.entries.iter().position(|one| one.is_same_manager(&entry)) {
                Some(place) => drop(scale.entries.remove(place)),
                None => entry.fields = mem::take(&mut entry.fields).difference(&only),
            }
        }
        if !entry.fields.is_empty() {
            after.entries.push(entry);
        }
    }
    after.entries.extend(scale.entries.into_iter().map(|entry| Entry {
        api_version: Cow::Borrowed(&write.writer.api_version),
        time: None,
        ..entry
    }));
    let entries = after.encode();
    write_to(new, entries);
}

fn count(workload: &Value, path: &[&str]) -> i64 {
    crate::object::integer(workload, path)
}
