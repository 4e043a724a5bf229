//! Validates the volume mounts of containers.

use std::collections::BTreeSet;

use serde_json::json;

use super::path;
use super::pod_validation::PodValidation;
use crate::validation::field_cursor::FieldCursor;
use crate::validation::validation_errors::ValidationErrors;

pub(super) fn check(pod: &PodValidation<'_, '_>, container: &FieldCursor, problems: &mut ValidationErrors) {
    let (mounts, devices) = (container.at("volumeMounts"), container.at("volumeDevices"));
    let mut paths = BTreeSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.at("name"), mount.at("mountPath"));
        if name.is_empty() {
            problems.required(&name, "");
        }
        if !pod.volumes.contains(name.text()) {
            problems.not_found(&name, &json!(name.text()));
        }
        if path.is_empty() {
            problems.required(&path, "");
        }
        if !paths.insert(path.text()) {
            problems.invalid_value(&path, &json!(path.text()), "must be unique");
        }
        if devices.items().any(|device| device.at("name").text() == name.text()) {
            problems.invalid(&name, "must not already exist in volumeDevices");
        }
        if devices.items().any(|device| device.at("devicePath").text() == path.text()) {
            problems.invalid(&path, "must not already exist as a path in volumeDevices");
        }
        check_options(container, &mounts, &mount, problems);
    }
    check_devices(pod, &mounts, &devices, problems);
}

fn check_options(
    container: &FieldCursor,
    mounts: &FieldCursor,
    mount: &FieldCursor,
    problems: &mut ValidationErrors,
) {
    // the server forgets the index in these paths
    let (within, expression) = (mount.at("subPath"), mount.at("subPathExpr"));
    if !within.is_empty() {
        path::check_relative(&mounts.called("subPath", within.value()), problems);
    }
    if !expression.is_empty() {
        if !within.is_empty() {
            problems.invalid(&expression, "subPathExpr and subPath are mutually exclusive");
        }
        path::check_relative(&mounts.called("subPathExpr", expression.value()), problems);
    }
    let propagation = mounts.called("mountPropagation", mount.at("mountPropagation").value());
    problems.check_if_one_of(&propagation, &["Bidirectional", "HostToContainer", "None"]);
    if propagation.is("Bidirectional") && !container.at("securityContext.privileged").is_true() {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        problems.forbidden(&propagation, why);
    }
    let recursive = mounts.called("recursiveReadOnly", mount.at("recursiveReadOnly").value());
    match recursive.text() {
        "Enabled" | "IfPossible" => {
            if !mount.at("readOnly").is_true() {
                problems.forbidden(&recursive, "may only be specified when readOnly is true");
            }
            if propagation.is_set() && !propagation.is("None") {
                let why = "may only be specified when mountPropagation is None or not specified";
                problems.forbidden(&recursive, why);
            }
        }
        _ => problems.check_if_one_of(&recursive, &["Disabled", "Enabled", "IfPossible"]),
    }
}

fn check_devices(
    pod: &PodValidation<'_, '_>,
    mounts: &FieldCursor,
    devices: &FieldCursor,
    problems: &mut ValidationErrors,
) {
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for device in devices.items() {
        let (name, path) = (device.at("name"), device.at("devicePath"));
        if name.is_empty() {
            problems.required(&name, "");
        }
        if names.contains(name.text()) {
            problems.invalid(&name, "must be unique");
        }
        match pod.volume(name.text()) {
            Some(volume)
                if volume.get("persistentVolumeClaim").is_none() && volume.get("ephemeral").is_none() =>
            {
                let why =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                problems.invalid(&name, why);
            }
            Some(_) => {}
            None => problems.not_found(&name, &json!(name.text())),
        }
        if path.is_empty() {
            problems.required(&path, "");
        }
        if paths.contains(path.text()) {
            problems.invalid(&path, "must be unique");
        }
        if path.text().split('/').any(|part| part == "..") {
            problems.invalid(&path, "can not contain backsteps ('..')");
        } else {
            paths.insert(path.text());
        }
        if mounts.items().any(|mount| mount.at("name").text() == name.text()) {
            problems.invalid(&name, "must not already exist in volumeMounts");
        }
        if mounts.items().any(|mount| mount.at("mountPath").text() == path.text()) {
            problems.invalid(&path, "must not already exist as a path in volumeMounts");
        }
        if !name.is_empty() {
            names.insert(name.text());
        }
    }
}
