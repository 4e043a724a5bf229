//! Ownership of replicas that are written through the `scale` subresource.
//!
//! The owners of a scale are the owners of the workload's replicas, in the version of the scale
//! ([`owners_of_scale`]). A write of the scale changes them like the owners of any object. [`owners_of_workload`]
//! then writes them back to the workload. The replicas of an updater do not return to their old entry: they get an
//! entry of their own, without a time.

use std::borrow::Cow;
use std::mem;

use serde_json::Value;

use super::fieldset::FieldSet;
use super::managed_fields::{ManagedFields, ManagedFieldsEntry};
use super::path::PathElement;

const SCALE_VERSION: &str = "autoscaling/v1";
const SCALE_REPLICAS: &[&str] = &["spec", "replicas"];

/// The versions of a workload that its entries may name, and where each keeps its replicas; `None`
/// for one without a scale.
pub(crate) struct ReplicaPaths<'k>(pub(crate) Vec<(Cow<'k, str>, Option<Vec<&'k str>>)>);

impl ReplicaPaths<'_> {
    /// `None`: no such version.
    fn path_in_version(&self, api_version: &str) -> Option<Option<Vec<PathElement<'_>>>> {
        let (_, path) = self.0.iter().find(|(version, _)| version == api_version)?;
        Some(path.as_ref().map(|path| steps(path)))
    }
}

fn steps<'n>(path: &[&'n str]) -> Vec<PathElement<'n>> {
    path.iter().map(|name| PathElement::Field(name)).collect()
}

fn path_set<'n>(path: &[PathElement<'n>]) -> FieldSet<'n> {
    let mut set = FieldSet::default();
    set.insert(path);
    set
}

/// The entries of a workload's scale; `None` when those of the workload cannot be read.
pub(crate) fn owners_of_scale(workload: &Value, paths: &ReplicaPaths<'_>) -> Option<Vec<Value>> {
    let mut scale = ManagedFields::default();
    for entry in ManagedFields::of(workload)?.entries {
        let path = paths.path_in_version(&entry.api_version).flatten();
        if path.is_some_and(|path| entry.fields.contains(&path)) {
            let fields = path_set(&steps(SCALE_REPLICAS));
            scale.put(ManagedFieldsEntry { api_version: Cow::Borrowed(SCALE_VERSION), fields, ..entry });
        }
    }
    Some(scale.encode())
}

/// The entries of a workload, `before` its scale was written in this version.
pub(crate) fn owners_of_workload(
    before: &Value,
    scale: &Value,
    paths: &ReplicaPaths<'_>,
    api_version: &str,
) -> Option<Vec<Value>> {
    let mut scalers = ManagedFields::of(scale)?.entries;
    let mut after = ManagedFields::default();
    let mut times = Vec::new();
    for mut entry in ManagedFields::of(before)?.entries {
        times.push((entry.identifier(), entry.time.clone()));
        let Some(path) = paths.path_in_version(&entry.api_version) else { continue };
        if let Some(path) = path.filter(|path| entry.fields.contains(path)) {
            match scalers.iter().position(|one| one.is_same_manager(&entry)) {
                Some(place) => drop(scalers.remove(place)),
                None => entry.fields = mem::take(&mut entry.fields).difference(&path_set(&path)),
            }
        }
        if !entry.fields.is_empty() {
            after.entries.push(entry);
        }
    }
    let replicas =
        paths.path_in_version(api_version).flatten().map(|path| path_set(&path)).unwrap_or_default();
    for entry in scalers.into_iter().filter(|entry| entry.fields.contains(&steps(SCALE_REPLICAS))) {
        let name = entry.identifier();
        let time = times.iter().find(|(known, _)| *known == name).and_then(|(_, time)| time.clone());
        // beside an entry of the same updater, which real servers know by another version at this moment
        after.entries.push(ManagedFieldsEntry {
            api_version: Cow::Borrowed(api_version),
            fields: replicas.clone(),
            time,
            ..entry
        });
    }
    Some(after.encode())
}
