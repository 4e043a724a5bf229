//! `spec.ignore`: fields that an app leaves to others.

use super::super::read::{ManifestFields, ManifestValue, ReadContext};
use super::patch;
use crate::model::{FieldPath, FieldPathStep, IgnoreRule, IgnoreTarget};

pub fn read(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<IgnoreRule>> {
    let rules: Vec<_> = reading.list(value)?.iter().map(|rule| read_rule(rule, reading)).collect();
    rules.into_iter().collect()
}

fn read_rule(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<IgnoreRule> {
    let mut fields = ManifestFields::of(value, reading)?;
    let target = match fields.optional_selector("target", reading) {
        Some(target) => read_target(&target, reading),
        None => Some(IgnoreTarget::default()),
    };
    let paths = fields.required("paths", reading).and_then(|paths| read_paths(&paths, reading));
    fields.finish(reading);
    Some(IgnoreRule { target: target?, paths: paths? })
}

fn read_target(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<IgnoreTarget> {
    let mut fields = ManifestFields::of(value, reading)?;
    let kind = fields.optional_selector("kind", reading).map(|kind| reading.word(&kind));
    let name = fields.optional_selector("name", reading).map(|name| patch::read_name(&name, reading));
    fields.finish(reading);
    Some(IgnoreTarget {
        kind: kind.map_or(Some(None), |kind| kind.map(Some))?,
        name: name.map_or(Some(None), |name| name.map(Some))?,
    })
}

fn read_paths(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<FieldPath>> {
    let items = reading.list(value)?;
    if items.is_empty() {
        reading.bad_value(value, "`paths` is empty", "name at least one field, or remove the rule");
    }
    let paths: Vec<_> = items.iter().map(|item| read_path(item, reading)).collect();
    paths.into_iter().collect()
}

fn read_path(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<FieldPath> {
    let text = reading.text(value)?;
    match FieldPath::parse(&text) {
        Ok(path) if is_ours(&path) => {
            let help = "name single labels and annotations, and none of tutti.dev";
            reading.bad_value(value, format!("{text:?} holds the owner of the object"), help);
            None
        }
        Ok(path) => Some(path),
        Err(why) => {
            let help = "for example /spec/replicas or /spec/template/spec/containers/name=app/image; write `/` in a name as ~1";
            reading.bad_value(value, format!("{text:?} is not the path of a field: {why}"), help);
            None
        }
    }
}

/// Without it, the object would not be known as ours.
fn is_ours(path: &FieldPath) -> bool {
    let whole = [&["metadata"][..], &["metadata", "labels"], &["metadata", "annotations"]];
    let identity = [
        &["apiVersion"][..],
        &["kind"],
        &["status"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "managedFields"],
    ];
    let own = |field: &str| {
        let key = path.steps().get(2);
        path.starts_with(&["metadata", field])
            && matches!(key, Some(FieldPathStep::Field(key)) if key.starts_with("tutti.dev/"))
    };
    whole.iter().any(|fields| path.equals(fields))
        || identity.iter().any(|fields| path.starts_with(fields))
        || own("labels")
        || own("annotations")
}
