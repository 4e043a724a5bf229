//! Reads and applies the patches of layers and of Component manifests, and records which matched an object.
//!
//! Order: after templates, layer by layer. The patches of the app come after its manifest was merged. Only all targets
//! together show whether a patch is unused.

use std::collections::BTreeMap;

use json_patch::PatchOperation;
use serde_json::{Map, Value};

use super::codes;
use super::layer_source::LayerSource;
use super::object_document::ObjectDocument;
use super::render_job::RenderJob;
use super::strategic_merge::{self, ListMergeRules, StrategicMergeError};
use super::template_layers::TemplateLayers;
use crate::manifest::kinds::patch;
use crate::manifest::read::{ManifestValue as Field, ReadContext};
use crate::manifest::yaml;
use crate::model::{App, AppSpec, Diagnostic, DiagnosticScope, JsonPatchStep, Location, Patch, PatchChange};

/// Whether each patch, by its position, matched an object.
pub type PatchUsage = BTreeMap<Location, bool>;

/// The patches of the layers of a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patches {
    /// Of the layers below the app's layer, lowest first.
    below_app: Vec<Patch>,
    /// Of the app's layer; the patches of its manifest come after.
    of_app: Vec<Patch>,
}

pub fn patches_of_layers(job: &RenderJob<'_>, layers: &TemplateLayers) -> Result<Patches, Vec<Diagnostic>> {
    let mut patches = Patches::default();
    let mut mistakes = Vec::new();
    let own = format!("{}layer/", job.app.folder());
    for layer in &layers.list {
        let to = if layer.folder == own { &mut patches.of_app } else { &mut patches.below_app };
        for source in &layer.patches {
            match read(job, source) {
                Ok(mut found) => to.append(&mut found),
                Err(mut found) => mistakes.append(&mut found),
            }
        }
    }
    if mistakes.is_empty() { Ok(patches) } else { Err(mistakes) }
}

/// Each document is one patch.
fn read(job: &RenderJob<'_>, source: &LayerSource) -> Result<Vec<Patch>, Vec<Diagnostic>> {
    let (documents, mut mistakes) = yaml::parse(&source.path, &source.text);
    let mut reading = ReadContext::new(&source.path, job.scope());
    let patches: Vec<_> = documents
        .iter()
        .filter_map(|document| patch::read(&Field::root(&document.root), &mut reading))
        .collect();
    mistakes.append(&mut reading.mistakes);
    if patches.is_empty() && mistakes.is_empty() {
        let error = job.error(codes::PATCH, format!("{} is empty", source.path)).at(source.start());
        mistakes.push(error.help("a patch has a target, and merge or json"));
    }
    for mistake in &mut mistakes {
        mistake.scope = job.scope();
    }
    if mistakes.is_empty() { Ok(patches) } else { Err(mistakes) }
}

impl Patches {
    /// All patches, the manifest's included, as unused.
    pub fn as_unused(&self, app: &App) -> PatchUsage {
        let all = self.below_app.iter().chain(&self.of_app).chain(manifest_patches(app));
        all.map(|patch| (patch.location.clone(), false)).collect()
    }

    pub fn apply_layer_patches(
        &self,
        job: &RenderJob<'_>,
        documents: &mut Vec<ObjectDocument>,
        used: &mut PatchUsage,
    ) -> Result<(), Vec<Diagnostic>> {
        apply(job, self.below_app.iter(), documents, used)
    }

    /// The patches of the app, after its manifest was merged.
    pub fn apply_app_patches(
        &self,
        job: &RenderJob<'_>,
        documents: &mut Vec<ObjectDocument>,
        used: &mut PatchUsage,
    ) -> Result<(), Vec<Diagnostic>> {
        apply(job, self.of_app.iter().chain(manifest_patches(job.app)), documents, used)
    }
}

fn manifest_patches(app: &App) -> &[Patch] {
    match &app.spec {
        AppSpec::Component(component) => &component.patches,
        AppSpec::AppSet(_) | AppSpec::Objects(_) | AppSpec::Project(_) => &[],
    }
}

fn apply<'a>(
    job: &RenderJob<'_>,
    patches: impl Iterator<Item = &'a Patch>,
    documents: &mut Vec<ObjectDocument>,
    used: &mut PatchUsage,
) -> Result<(), Vec<Diagnostic>> {
    let mut mistakes = Vec::new();
    for patch in patches {
        let mut removed = false;
        for document in documents.iter_mut().filter(|document| patch.target.matches(&document.object)) {
            used.insert(patch.location.clone(), true);
            match apply_patch(job, patch, &mut document.object) {
                Ok(()) => removed |= document.object.is_empty(),
                Err(mistake) => mistakes.push(*mistake),
            }
        }
        if removed {
            documents.retain(|document| !document.object.is_empty());
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

/// Empties an object that the patch deletes.
fn apply_patch(
    job: &RenderJob<'_>,
    patch: &Patch,
    object: &mut Map<String, Value>,
) -> Result<(), Box<Diagnostic>> {
    let text = |object: &Map<String, Value>, field: &str| {
        object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let name = |object: &Map<String, Value>| object.get("metadata").and_then(|it| it.get("name")).cloned();
    let (kind, before) = (text(object, "kind"), name(object));
    match &patch.change {
        PatchChange::Merge(upper) if strategic_merge::is_delete_directive(upper) => {
            object.clear();
            return Ok(());
        }
        PatchChange::Merge(upper) => {
            let version = text(object, "apiVersion");
            let group = version.split_once('/').map_or("", |(group, _)| group);
            strategic_merge::merge(object, upper, ListMergeRules::of(group, &kind)).map_err(
                |StrategicMergeError { path, message }| {
                    let message = format!("the patch of {kind} cannot be merged: {path}: {message}");
                    let mistake = job.error(codes::PATCH, message).at(patch.location.clone());
                    Box::new(mistake.help("compare the patch with the object that `tutti render` shows"))
                },
            )?;
        }
        PatchChange::Json(steps) => apply_json_steps(job, &kind, steps, object)?,
    }
    if text(object, "kind") != kind || name(object) != before {
        let message = format!("a patch of {kind} changes the identity of the object: its kind or its name");
        let help = "a patch changes only the content of an object: change its name in the template";
        return Err(job.error(codes::PATCH, message).at(patch.location.clone()).help(help).into());
    }
    Ok(())
}

fn apply_json_steps(
    job: &RenderJob<'_>,
    kind: &str,
    steps: &[JsonPatchStep],
    object: &mut Map<String, Value>,
) -> Result<(), Box<Diagnostic>> {
    let mut value = Value::Object(std::mem::take(object));
    let mut copied = 0;
    for step in steps {
        if let PatchOperation::Copy(copy) = &step.operation
            && let Some(source) = value.pointer(copy.from.as_str())
        {
            copied += approximate_size(source);
            if copied > MOST_COPIED_BYTES || depth_of(source) > yaml::DEPTH_LIMIT {
                let message = format!(
                    "the patch copies more than {MOST_COPIED_BYTES} bytes of {kind}, or a value that is \
                     nested too deeply"
                );
                let mistake = job.error(codes::PATCH, message).at(step.location.clone());
                return Err(mistake.help("write the values into the patch, or copy smaller parts").into());
            }
        }
        json_patch::patch(&mut value, std::slice::from_ref(&step.operation)).map_err(|error| {
            let message = format!("the patch does not fit {kind}: {} at {}", error.kind, error.path);
            Box::new(job.error(codes::PATCH, message).at(step.location.clone()).help(
                "`tutti render` shows the object; `add` creates a missing field, and `/-` appends to a list",
            ))
        })?;
    }
    match value {
        Value::Object(map) => *object = map,
        _ => {
            let message = format!("the result of the patch is not an object of {kind}");
            let place = steps.last().map(|step| step.location.clone());
            let error =
                job.error(codes::PATCH, message).help("replace fields of the object, not the whole object");
            return Err(place.map_or(error.clone(), |place| error.at(place)).into());
        }
    }
    Ok(())
}

/// Bytes that the steps of one patch may copy: each step may copy the result of earlier ones.
const MOST_COPIED_BYTES: usize = 1024 * 1024;

/// The approximate size in bytes.
fn approximate_size(value: &Value) -> usize {
    const OF_A_VALUE: usize = 32;
    let inside = match value {
        Value::Array(items) => items.iter().map(approximate_size).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + approximate_size(value)).sum(),
        Value::String(text) => text.len(),
        _ => 0,
    };
    OF_A_VALUE + inside
}

fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}

/// The mistake of an unused patch, for each target that reads it.
pub fn unused_patch(location: &Location, scope: DiagnosticScope) -> Diagnostic {
    Diagnostic::error(codes::IDLE_PATCH, "this patch fits no object of any app that has it", scope)
        .at(location.clone())
        .help("compare kind, name and labels of its target with what `tutti render` shows")
}
