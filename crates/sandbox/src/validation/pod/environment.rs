//! Environment variables, and where their values come from.

use serde_json::json;

use super::path::check_no_steps_back;
use super::pod_validation::PodValidation;
use super::resources::check_divisor;
use crate::validation::field_cursor::FieldCursor;
use crate::validation::formats;
use crate::validation::validation_errors::ValidationErrors;

const SOURCES: &[&str] = &["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

/// The fields of a pod that a variable may hold.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The fields of a pod that a file may hold.
pub(super) const FILE_FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

pub(super) fn check(container: &FieldCursor, problems: &mut ValidationErrors) {
    for variable in container.at("env").items() {
        let name = variable.at("name");
        if name.is_empty() {
            problems.required(&name, "");
        } else {
            problems.invalid_each(&name, formats::variable_name(name.text()));
        }
        check_source(&variable, problems);
    }
    check_from(&container.at("envFrom"), problems);
}

fn check_source(variable: &FieldCursor, problems: &mut ValidationErrors) {
    let from = variable.at("valueFrom");
    if !from.is_set() {
        return;
    }
    if from.has("fieldRef") {
        check_field(&from.at("fieldRef"), FIELDS, problems);
    }
    if from.has("resourceFieldRef") {
        check_resource(&from.at("resourceFieldRef"), false, problems);
    }
    for source in ["configMapKeyRef", "secretKeyRef"] {
        if from.has(source) {
            check_key(&from.at(source), problems);
        }
    }
    if from.has("fileKeyRef") {
        check_file(&from.at("fileKeyRef"), problems);
    }
    let why = match SOURCES.iter().filter(|source| from.has(source)).count() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !variable.at("value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    problems.invalid_value(&from, &json!(""), why);
}

/// A field of the pod.
pub(super) fn check_field(field: &FieldCursor, known: &[&str], problems: &mut ValidationErrors) {
    let path = field.at("fieldPath");
    if field.at("apiVersion").is_empty() {
        return problems.required(&field.at("apiVersion"), "");
    }
    if path.is_empty() {
        return problems.required(&path, "");
    }
    let (text, subscript) = match path.text().strip_suffix("']").and_then(|text| text.split_once("['")) {
        Some((text, subscript)) if !text.is_empty() => (text, Some(subscript)),
        _ => (path.text(), None),
    };
    let renamed = if text == "spec.host" { "spec.nodeName" } else { text };
    let can_be = FIELDS.contains(&renamed)
        || FILE_FIELDS.contains(&renamed)
        || matches!(renamed, "spec.restartPolicy" | "spec.schedulerName" | "status.phase");
    let is_map = matches!(text, "metadata.annotations" | "metadata.labels");
    if !can_be || field.at("apiVersion").text() != "v1" || subscript.is_some() && !is_map {
        let why = if field.at("apiVersion").text() == "v1" {
            format!("error converting fieldPath: field label not supported: {}", path.text())
        } else {
            format!("error converting fieldPath: unsupported pod version: {}", field.at("apiVersion").text())
        };
        return problems.invalid(&path, &why);
    }
    match subscript {
        Some(key) => {
            let key = if text == "metadata.annotations" { key.to_lowercase() } else { key.to_owned() };
            for message in formats::qualified_name(&key) {
                problems.invalid_value(field, &json!(key), &message);
            }
        }
        None if !known.contains(&renamed) => problems.not_supported_value(&path, &json!(renamed), known),
        None => {}
    }
}

/// A resource of a container.
pub(super) fn check_resource(resource: &FieldCursor, is_file: bool, problems: &mut ValidationErrors) {
    let name = resource.at("resource");
    let is_huge = ["requests.hugepages-", "limits.hugepages-"].iter().any(|one| name.text().starts_with(one));
    if is_file && resource.at("containerName").is_empty() {
        problems.required(&resource.at("containerName"), "");
    } else if name.is_empty() {
        problems.required(&name, "");
    } else if !RESOURCES.contains(&name.text()) && !is_huge {
        problems.not_supported(&name, RESOURCES);
    }
    check_divisor(resource, problems);
}

fn check_key(source: &FieldCursor, problems: &mut ValidationErrors) {
    let (name, key) = (source.at("name"), source.at("key"));
    for message in formats::dns_subdomain(name.text()) {
        problems.invalid_value(&name, &json!(name.text()), &message);
    }
    if key.is_empty() {
        problems.required(&key, "");
    } else {
        problems.invalid_each(&key, formats::config_key(key.text()));
    }
}

fn check_file(source: &FieldCursor, problems: &mut ValidationErrors) {
    let (key, volume, path) = (source.at("key"), source.at("volumeName"), source.at("path"));
    if key.is_empty() {
        problems.required(&key, "");
    } else {
        problems.invalid_each(&key, formats::variable_name(key.text()));
    }
    if volume.is_empty() {
        problems.required(&volume, "");
    } else {
        problems.invalid_each(&volume, formats::dns_label(volume.text()));
    }
    if path.is_empty() {
        problems.required(&path, "");
    } else {
        check_no_steps_back(&path, problems);
    }
}

fn check_from(list: &FieldCursor, problems: &mut ValidationErrors) {
    for from in list.items() {
        let prefix = from.at("prefix");
        if !prefix.is_empty() {
            problems.invalid_each(&prefix, formats::variable_name(prefix.text()));
        }
        let sources = ["configMapRef", "secretRef"];
        for source in sources {
            let (source, name) = (from.at(source), from.at(source));
            let name = name.at("name");
            if !source.is_set() {
                continue;
            }
            if name.is_empty() {
                problems.required(&name, "");
            } else {
                problems
                    .invalid_each(&name, formats::dns_subdomain(&super::super::names::masked(name.text())));
            }
        }
        let why = match sources.iter().filter(|source| from.has(source)).count() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        problems.invalid_value(list, &json!(""), why);
    }
}

/// Variables from files need a volume of the pod.
pub(super) fn check_file_volumes(pod: &PodValidation<'_, '_>, problems: &mut ValidationErrors) {
    for list in ["initContainers", "containers"] {
        for container in pod.spec.at(list).items() {
            for variable in container.at("env").items() {
                let name = variable.at("valueFrom.fileKeyRef.volumeName");
                if !variable.has("valueFrom.fileKeyRef") {
                    continue;
                }
                let volumes = pod.spec.at("volumes");
                match volumes.items().find(|volume| volume.at("name").text() == name.text()) {
                    None => problems.not_found(&name, name.value()),
                    Some(volume) if !volume.has("emptyDir") => {
                        problems.invalid(&name, "referenced volume must be of type emptyDir");
                    }
                    Some(_) => {}
                }
            }
        }
    }
}
