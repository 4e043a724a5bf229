//! Volumes. Answers with the names of those that have no mistake: only they can be mounted.

use std::collections::BTreeSet;

use serde_json::json;

use super::environment::{FILE_FIELDS, check_field, check_resource};
use super::path::{check_file_path, check_no_steps_back, check_relative};
use crate::quantity::Quantity;
use crate::validation::field_cursor::FieldCursor;
use crate::validation::validation_errors::ValidationErrors;
use crate::validation::{formats, metadata, storage};

/// In the order of the server's own list.
const SOURCES: &[&str] = &[
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

pub(super) fn check<'v>(
    volumes: &FieldCursor<'_, 'v>,
    pod_name: Option<&str>,
    problems: &mut ValidationErrors,
) -> BTreeSet<&'v str> {
    let mut names = BTreeSet::new();
    for volume in volumes.items() {
        let before = problems.len();
        check_sources(&volume, pod_name, problems);
        let name = volume.at("name");
        if name.is_empty() {
            problems.required(&name, "");
        } else {
            problems.invalid_each(&name, formats::dns_label(name.text()));
        }
        if names.contains(name.text()) {
            problems.duplicate(&name, &json!(name.text()));
        }
        if problems.len() == before {
            names.insert(name.text());
        }
    }
    names
}

/// Exactly one source; of several, the first is validated.
fn check_sources(volume: &FieldCursor, pod_name: Option<&str>, problems: &mut ValidationErrors) {
    let mut sources = SOURCES.iter().filter(|source| volume.has(source));
    match sources.next() {
        None => problems.required(volume, "must specify a volume type"),
        Some(source) => check_source(source, &volume.at(source), problems),
    }
    for another in sources {
        problems.forbidden(&volume.at(another), "may not specify more than 1 volume type");
    }
    let (name, pod_name) = (volume.at("name"), pod_name.unwrap_or(""));
    if volume.has("ephemeral") && !pod_name.is_empty() && !name.is_empty() {
        let claim = format!("{pod_name}-{}", name.text());
        for message in formats::dns_subdomain(&claim) {
            problems.invalid(&name, &format!("PVC name {claim:?}: {message}"));
        }
    }
}

fn check_source(kind: &str, source: &FieldCursor, problems: &mut ValidationErrors) {
    let mut required = |fields: &[&str]| {
        for field in fields.iter().filter(|field| source.at(field).is_empty()) {
            problems.required(&source.at(field), "");
        }
    };
    match kind {
        "emptyDir" => {
            let limit = source.at("sizeLimit");
            if Quantity::parse(limit.text()).is_ok_and(|size| size.is_negative()) {
                problems.forbidden(&limit, "SizeLimit field must be a valid resource quantity");
            }
        }
        "hostPath" => check_host_path(source, problems),
        "secret" => {
            required(&["secretName"]);
            check_files(source, problems);
        }
        "configMap" => {
            required(&["name"]);
            check_files(source, problems);
        }
        "nfs" => {
            required(&["server", "path"]);
            let path = source.at("path");
            if !path.text().starts_with('/') {
                problems.invalid_value(&path, &json!(path.text()), "must be an absolute path");
            }
        }
        "persistentVolumeClaim" => required(&["claimName"]),
        "glusterfs" => required(&["endpoints", "path"]),
        "gcePersistentDisk" => required(&["pdName"]),
        "awsElasticBlockStore" => required(&["volumeID"]),
        "cinder" => required(&["volumeID"]),
        "cephfs" => required(&["monitors"]),
        "rbd" => required(&["monitors", "image"]),
        "azureFile" => required(&["secretName", "shareName"]),
        "vsphereVolume" => required(&["volumePath"]),
        "photonPersistentDisk" => required(&["pdID"]),
        "portworxVolume" => required(&["volumeID"]),
        "scaleIO" => required(&["gateway", "system", "volumeName"]),
        "gitRepo" => {
            required(&["repository"]);
            check_relative(&source.at("directory"), problems);
        }
        "flexVolume" => required(&["driver"]),
        "downwardAPI" => {
            check_mode(&source.at("defaultMode"), problems);
            for file in source.at("items").items() {
                // the server forgets the index
                check_field_file(&source.called("", file.value()), problems);
            }
        }
        "projected" => check_projected(source, problems),
        "csi" => check_csi(source, problems),
        "ephemeral" => check_ephemeral(source, problems),
        "image" => {
            required(&["reference"]);
            problems.check_one_of(&source.at("pullPolicy"), &["Always", "IfNotPresent", "Never"]);
        }
        _ => {}
    }
}

fn check_host_path(source: &FieldCursor, problems: &mut ValidationErrors) {
    let path = source.at("path");
    if path.is_empty() {
        return problems.required(&path, "");
    }
    check_no_steps_back(&path, problems);
    let kinds =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    problems.check_if_one_of(&source.at("type"), &kinds);
}

fn check_mode(mode: &FieldCursor, problems: &mut ValidationErrors) {
    if mode.integer().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        problems.invalid(mode, MODE);
    }
}

fn check_files(source: &FieldCursor, problems: &mut ValidationErrors) {
    check_mode(&source.at("defaultMode"), problems);
    for item in source.at("items").items() {
        check_key_file(&item, problems);
    }
}

fn check_key_file(item: &FieldCursor, problems: &mut ValidationErrors) {
    for field in ["key", "path"] {
        if item.at(field).is_empty() {
            problems.required(&item.at(field), "");
        }
    }
    check_file_path(&item.at("path"), problems);
    check_mode(&item.at("mode"), problems);
}

/// A file that holds a field of the pod, or a resource of a container.
fn check_field_file(file: &FieldCursor, problems: &mut ValidationErrors) {
    let path = file.at("path");
    if path.is_empty() {
        problems.required(&path, "");
    }
    check_file_path(&path, problems);
    if file.has("fieldRef") {
        check_field(&file.at("fieldRef"), FILE_FIELDS, problems);
        if file.has("resourceFieldRef") {
            let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
            problems.invalid_value(file, &json!("resource"), why);
        }
    } else if file.has("resourceFieldRef") {
        check_resource(&file.at("resourceFieldRef"), true, problems);
    } else {
        problems.required(file, "one of fieldRef and resourceFieldRef is required");
    }
    check_mode(&file.at("mode"), problems);
}

fn check_projected(source: &FieldCursor, problems: &mut ValidationErrors) {
    check_mode(&source.at("defaultMode"), problems);
    let mut paths = BTreeSet::new();
    for projection in source.at("sources").items() {
        for kind in ["secret", "configMap"] {
            let from = projection.at(kind);
            if !from.is_set() {
                continue;
            }
            if from.at("name").is_empty() {
                problems.required(&from.at("name"), "");
            }
            for item in from.at("items").items() {
                check_key_file(&item, problems);
                let path = item.at("path");
                if !path.is_empty() && !paths.insert(path.text().to_owned()) {
                    problems.invalid_value(
                        source,
                        &json!(from.at("name").text()),
                        "conflicting duplicate paths",
                    );
                }
            }
        }
        for file in projection.at("downwardAPI.items").items() {
            let named = projection.called("downwardAPI", file.value());
            check_field_file(&named, problems);
            let path = file.at("path");
            if !path.is_empty() && !paths.insert(path.text().to_owned()) {
                problems.invalid_value(source, path.value(), "conflicting duplicate paths");
            }
        }
        check_token(source, &projection, problems);
        let kinds = [
            "secret",
            "configMap",
            "downwardAPI",
            "serviceAccountToken",
            "clusterTrustBundle",
            "podCertificate",
        ];
        if kinds.iter().filter(|kind| projection.has(kind)).count() > 1 {
            problems.forbidden(&projection, "may not specify more than 1 volume type per source");
        }
    }
}

fn check_token(source: &FieldCursor, projection: &FieldCursor, problems: &mut ValidationErrors) {
    let token = projection.at("serviceAccountToken");
    if !token.is_set() {
        return;
    }
    let (seconds, path) = (token.at("expirationSeconds"), token.at("path"));
    if seconds.number() < 600 {
        problems.invalid(&seconds, "may not specify a duration less than 10 minutes");
    }
    if seconds.number() > 1 << 32 {
        problems.invalid(&seconds, "may not specify a duration larger than 2^32 seconds");
    }
    // the server forgets which source
    let path = source.called("path", path.value());
    if path.is_empty() {
        problems.required(&path, "");
    } else {
        check_file_path(&path, problems);
    }
}

fn check_csi(source: &FieldCursor, problems: &mut ValidationErrors) {
    storage::check_driver_name(&source.at("driver"), problems);
    let secret = source.at("nodePublishSecretRef");
    let name = secret.at("name");
    if secret.is_set() && name.is_empty() {
        problems.required(&name, "");
    } else if secret.is_set() {
        problems.invalid_each(&source.called("name", name.value()), formats::dns_subdomain(name.text()));
    }
}

fn check_ephemeral(source: &FieldCursor, problems: &mut ValidationErrors) {
    let template = source.at("volumeClaimTemplate");
    if !template.is_set() {
        return problems.required(&template, "");
    }
    let about = template.at("metadata");
    metadata::annotations(&about.at("annotations"), problems);
    metadata::labels(&about.at("labels"), problems);
    for (field, _) in about.entries() {
        if !matches!(field, "annotations" | "labels" | "creationTimestamp") {
            problems.forbidden(&about.at(field), "cannot be set");
        }
    }
    storage::check_claim_spec(&template.at("spec"), problems);
}
