//! A patch, in a file of a layer or in a Component: `{target, merge}` or `{target, json}`.

use json_patch::PatchOperation;

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, ReadContext};
use crate::model::glob::{self, SeparatorMatching};
use crate::model::{JsonPatchStep, Patch, PatchChange, PatchTarget};
use serde_json::Value as Json;

pub fn read(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Patch> {
    let mut fields = ManifestFields::of(value, reading)?;
    let target = fields.required("target", reading);
    let location = target.as_ref().and_then(|target| target.name_location.clone());
    let target = target.and_then(|target| read_target(&target, reading));
    let merge = fields.optional("merge", reading);
    let json = fields.optional("json", reading);
    if merge.is_some() == json.is_some() {
        let (place, path) = (fields.location().clone(), value.path.clone());
        reading
            .mistake(codes::NOT_EXACTLY_ONE, "a patch has exactly one of merge and json", place, &path)
            .help("`merge: {spec: {…}}`, or `json: [{op: replace, path: /spec/…, value: …}]`");
    }
    let change = match (merge, json) {
        (Some(merge), _) => read_merge(&merge, reading),
        (None, Some(json)) => read_steps(&json, reading).map(PatchChange::Json),
        (None, None) => None,
    };
    fields.finish(reading);
    Some(Patch { target: target?, change: change?, location: location? })
}

fn read_target(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<PatchTarget> {
    let mut fields = ManifestFields::of(value, reading)?;
    let kind = fields.optional_selector("kind", reading).map(|kind| reading.word(&kind));
    let name = fields.optional_selector("name", reading).map(|name| read_name(&name, reading));
    let labels = fields.optional_selector("labels", reading).map(|labels| reading.labels(&labels));
    fields.finish(reading);
    Some(PatchTarget {
        kind: kind.map_or(Some(None), |kind| kind.map(Some))?,
        name: name.map_or(Some(None), |name| name.map(Some))?,
        labels: labels.map_or(Some(None), |labels| labels.map(Some))?.unwrap_or_default(),
    })
}

pub fn read_name(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<String> {
    let name = reading.word(value)?;
    if let Err(error) = glob::compile(&name, SeparatorMatching::Matched) {
        reading.bad_value(
            value,
            format!("{name:?} is neither a name nor a pattern: {}", error),
            "for example web, or web-*",
        );
        return None;
    }
    Some(name)
}

fn read_merge(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<PatchChange> {
    match value.node.to_json() {
        Json::Object(merge) => Some(PatchChange::Merge(merge)),
        _ => {
            reading.wrong_type(value, "a map");
            None
        }
    }
}

fn read_steps(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<JsonPatchStep>> {
    let steps: Vec<_> = reading.list(value)?.iter().map(|item| read_step(item, reading)).collect();
    steps.into_iter().collect()
}

fn read_step(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<JsonPatchStep> {
    let mut fields = ManifestFields::of(value, reading)?;
    let before = reading.mistakes.len();
    let location = reading.location(value.node);
    let words = ["add", "remove", "replace", "move", "copy", "test"].map(|word| (word, word));
    let operation = fields.required("op", reading).and_then(|op| reading.choice(&op, &words, &[], false));
    if let Some(path) = fields.required("path", reading) {
        read_pointer(&path, reading);
    }
    if matches!(operation, Some("move" | "copy"))
        && let Some(from) = fields.required("from", reading)
    {
        read_pointer(&from, reading);
    }
    if matches!(operation, Some("add" | "replace" | "test")) && fields.get("value", reading).is_none() {
        let (place, path) = (fields.location().clone(), fields.path_of("value"));
        reading.mistake(codes::MISSING_FIELD, "`value` is missing", place, &path);
    }
    // Known to `finish`; null is a value here.
    fields.optional("value", reading);
    fields.finish(reading);
    if reading.mistakes.len() > before {
        return None;
    }
    match serde_json::from_value::<PatchOperation>(value.node.to_json()) {
        Ok(operation) => Some(JsonPatchStep { operation, location }),
        Err(error) => {
            reading.bad_value(value, format!("not a step of a JSON patch: {error}"), "see RFC 6902");
            None
        }
    }
}

fn read_pointer(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) {
    let Some(text) = reading.text(value) else { return };
    if !text.starts_with('/') {
        reading.bad_value(
            value,
            format!("{text:?} is not a JSON pointer"),
            "for example /spec/template/spec/containers/0/image; write `/` in a name as ~1",
        );
    }
}
