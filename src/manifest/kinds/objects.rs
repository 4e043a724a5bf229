//! Kind Objects: plain Kubernetes manifests as an app.

use super::super::codes;
use super::super::read::{NameRule, Reading, Value};
use super::super::yaml::Node;
use super::{envelope, placement, spec_fields, workload};
use crate::model::{App, AppSpec, Location, Objects, Placement};

pub fn read(root: &Node, default_namespace: &str, reading: &mut Reading<'_>) -> Option<App> {
    let (metadata, spec) = envelope(root, NameRule::Subdomain, true, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let create_namespace = workload::create_namespace(&mut fields, reading);
    let common = workload::Common { create_namespace, ..workload::common(&mut fields, reading) };
    let placement = match fields.narrowing("placement", reading) {
        Some(value) => placement::read(&value, reading),
        None => Some(Placement::default()),
    };
    let files = fields.required("files", reading).and_then(|files| read_files(&files, reading));
    fields.finish(reading);
    let spec = AppSpec::Objects(Objects { placement: placement?, files: files? });
    Some(workload::app(metadata?, &common, spec, default_namespace))
}

fn read_files(value: &Value<'_>, reading: &mut Reading<'_>) -> Option<Vec<(String, Location)>> {
    let items = reading.list(value)?;
    if items.is_empty() {
        reading.bad_value(value, "`files` is empty", "name at least one file, or remove the app");
    }
    let files: Vec<_> = items.iter().map(|item| read_pattern(item, reading)).collect();
    files.into_iter().collect()
}

fn read_pattern(value: &Value<'_>, reading: &mut Reading<'_>) -> Option<(String, Location)> {
    let text = reading.text(value)?;
    let location = reading.location(value.node);
    let folder = reading.file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let (mistake, help) = match from_root(folder, &text) {
        None => (
            format!(
                "the pattern {text:?} leaves the folder of the manifests (`--path`), and nothing else is read"
            ),
            "move the files below that folder, or give `--path` a folder above both and name under `ignore` in tutti.yaml \
             what is no manifest",
        ),
        Some(path) => match globset::Glob::new(&path) {
            Ok(_) => return Some((path, location)),
            Err(error) => (
                format!("{text:?} is not a pattern: {}", error.kind()),
                "write a path relative to this manifest, for example objects/*.yaml",
            ),
        },
    };
    reading.mistake(codes::BAD_PATTERN, mistake, location, &value.path).help(help);
    None
}

/// The pattern from the root of the config repository; `None` when it leaves it, or is empty.
fn from_root(folder: &str, pattern: &str) -> Option<String> {
    if pattern.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in pattern.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    (!parts.is_empty() && !pattern.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_relative_to_the_manifest_and_stay_inside() {
        let check = |pattern: &str, expected: Option<&str>| {
            assert_eq!(from_root("apps/infra", pattern).as_deref(), expected, "{pattern}");
        };
        check("objects/*.yaml", Some("apps/infra/objects/*.yaml"));
        check("./a.yaml", Some("apps/infra/a.yaml"));
        check("../shared/a.yaml", Some("apps/shared/a.yaml"));
        check("../../../a.yaml", None);
        check("/etc/passwd", None);
        check("", None);
    }
}
