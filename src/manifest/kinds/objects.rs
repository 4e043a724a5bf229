//! Kind Objects: plain Kubernetes manifests as an app.

use super::super::read::{ManifestValue, NameRule, ReadContext};
use super::super::yaml::{self, YamlNode};
use super::super::{codes, find};
use super::{ManifestKind, app_fields, placement, read_envelope, spec_fields};
use crate::model::glob::{self, SeparatorMatching};
use crate::model::{App, AppSpec, Location, ObjectsApp, Placement, outside_path};

pub fn read(root: &YamlNode, default_namespace: &str, reading: &mut ReadContext<'_>) -> Option<App> {
    let (metadata, spec) = read_envelope(root, NameRule::Subdomain, true, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let create_namespace = app_fields::create_namespace(&mut fields, reading);
    let mut common =
        app_fields::CommonAppFields { create_namespace, ..app_fields::read_common(&mut fields, reading) };
    let namespace = metadata.as_ref().map_or(default_namespace, |it| it.namespace_or(default_namespace));
    common.read_strategy(&mut fields, namespace, reading);
    let placement = match fields.optional_selector("placement", reading) {
        Some(value) => placement::read(&value, reading),
        None => Some(Placement::default()),
    };
    let files = fields.required("files", reading).and_then(|files| read_files(&files, reading));
    fields.finish(reading);
    let spec = AppSpec::Objects(ObjectsApp { placement: placement?, files: files? });
    Some(app_fields::build_app(metadata?, &common, spec, default_namespace))
}

/// Patterns of one app: each is held against all files that begin as it does.
const MOST_PATTERNS: usize = 256;
/// Their bytes together: a long one takes longer.
const MOST_PATTERN_BYTES: usize = 16 << 10;

fn read_files(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<(String, Location)>> {
    let items = reading.list(value)?;
    if items.is_empty() {
        reading.bad_value(value, "`files` is empty", "name at least one file, or remove the app");
    }
    let is_pattern = |text: &&str| outside_path::literal_prefix(text).len() < text.len();
    let patterns = || items.iter().filter_map(|item| item.node.as_str()).filter(is_pattern);
    let over = if patterns().count() > MOST_PATTERNS {
        Some(format!("more than {MOST_PATTERNS} patterns"))
    } else if patterns().map(str::len).filter(|length| *length <= glob::LONGEST_PATTERN).sum::<usize>()
        > MOST_PATTERN_BYTES
    {
        Some(format!("patterns of more than {MOST_PATTERN_BYTES} bytes"))
    } else {
        None
    };
    if let Some(over) = over {
        let message = format!("`files` has {over}");
        reading.bad_value(value, message, "write a wider pattern, or the paths of the files");
        return None;
    }
    let files: Vec<_> = items.iter().map(|item| read_pattern(item, reading)).collect();
    files.into_iter().collect()
}

fn read_pattern(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<(String, Location)> {
    let text = reading.text(value)?;
    let location = reading.location(value.node);
    let folder = reading.file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let (mistake, help) = match from_read_folder(folder, &text) {
        None => (
            format!("the pattern {text:?} is not a path relative to this manifest"),
            "write a path in the repository, relative to this manifest: objects/*.yaml, ../shared/a.yaml",
        ),
        Some(path) => match glob::compile(&path, SeparatorMatching::Literal) {
            Ok(_) => return Some((path, location)),
            Err(error) => (
                format!("{text:?} is not a pattern: {}", error),
                "write a path relative to this manifest, for example objects/*.yaml",
            ),
        },
    };
    reading.mistake(codes::BAD_PATTERN, mistake, location, &value.path).help(help);
    None
}

/// The files beside the folder that is read which the apps of a file list: each begins with `../`.
pub fn listed_beside(path: &str, text: &str) -> Vec<String> {
    // Cheap, and true of nearly every file.
    if !text.contains("../") || !text.contains("Objects") || !find::is_candidate(path) {
        return Vec::new();
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let stream = yaml::read(path, text);
    let is_objects =
        |root: &&YamlNode| root.get("kind").and_then(YamlNode::as_str) == Some(ManifestKind::Objects.name());
    let apps = stream.documents.iter().map(|document| &document.root).filter(is_objects);
    let patterns = apps.filter_map(|root| root.find(&["spec", "files"])?.as_seq()).flatten();
    let patterns = patterns.filter_map(|pattern| from_read_folder(folder, pattern.as_str()?));
    patterns.filter(|pattern| outside_path::is_outside(pattern)).collect()
}

/// The pattern from the folder that is read; one that leaves that begins with `../`. `None` for an absolute one and for none.
fn from_read_folder(folder: &str, pattern: &str) -> Option<String> {
    if pattern.is_empty() || pattern.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in pattern.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts.last().is_some_and(|last| *last != "..").then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_relative_to_the_manifest() {
        let check = |pattern: &str, expected: Option<&str>| {
            assert_eq!(from_read_folder("apps/infra", pattern).as_deref(), expected, "{pattern}");
        };
        check("objects/*.yaml", Some("apps/infra/objects/*.yaml"));
        check("./a.yaml", Some("apps/infra/a.yaml"));
        check("../shared/a.yaml", Some("apps/shared/a.yaml"));
        check("../../../a.yaml", Some("../a.yaml"));
        check("../../../../x/../a/*.yaml", Some("../../a/*.yaml"));
        check("../..", None);
        check("/etc/passwd", None);
        check("", None);
    }

    #[test]
    fn outside_files_are_found_in_the_text() {
        let text = "kind: Objects\nspec: {files: [a.yaml, ../../b.yaml, '../../../deploy/*.yaml']}\n---\nkind: Component\nspec: {files: \
                    [../../../c.yaml]}\n";
        assert_eq!(listed_beside("apps/web/app.yaml", text), ["../deploy/*.yaml"]);
        assert_eq!(listed_beside("templates/web/app.yaml", text), Vec::<String>::new());
        assert_eq!(listed_beside("app.yaml", text), ["../../b.yaml", "../../../deploy/*.yaml"]);
        // Its mistakes are told where it is read.
        assert_eq!(listed_beside("app.yaml", "kind: Objects\nspec: {files: [../a"), Vec::<String>::new());
    }
}
