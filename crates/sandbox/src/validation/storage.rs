//! Claims and volumes, storage classes, drivers.

use serde_json::json;

use super::field_cursor::FieldCursor;
use super::pod::check_quantity_value;
use super::validation_errors::{ValidationErrors, same, shown};
use super::{formats, selector};
use crate::quantity::Quantity;

const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) fn check_driver_name(name: &FieldCursor, problems: &mut ValidationErrors) {
    if name.is_empty() {
        return problems.required(name, "");
    }
    if name.len() > 63 {
        problems.too_long(name, 63);
    }
    problems.invalid_each(name, formats::dns_subdomain(&name.text().to_lowercase()));
}

/// The spec of a claim, or of the template of one.
pub(super) fn check_claim_spec(spec: &FieldCursor, problems: &mut ValidationErrors) {
    check_access_modes(&spec.at("accessModes"), problems);
    selector::check(&spec.at("selector"), problems);
    let requests = spec.at("resources.requests");
    let size = spec.at("resources");
    let size = size.key("storage");
    match Quantity::parse(requests.at("storage").text()) {
        Err(_) => problems.required(&size, ""),
        Ok(amount) if amount.is_negative() || amount.is_zero() => {
            problems.invalid_value(&size, &json!(amount.canonical()), "must be greater than zero");
        }
        Ok(_) => check_quantity_value("storage", &requests.at("storage"), problems),
    }
    let class = spec.at("storageClassName");
    if !class.is_empty() {
        problems.invalid_each(&class, formats::dns_subdomain(class.text()));
    }
    problems.check_if_one_of(&spec.at("volumeMode"), &["Block", "Filesystem"]);
    for field in ["dataSource", "dataSourceRef"] {
        if spec.has(field) {
            check_source(&spec.at(field), problems);
        }
    }
}

pub(super) fn check_access_modes(modes: &FieldCursor, problems: &mut ValidationErrors) {
    if modes.is_empty() {
        problems.required(modes, "at least 1 access mode is required");
    }
    for mode in modes.items() {
        if !ACCESS_MODES.contains(&mode.text()) {
            problems.not_supported_value(modes, mode.value(), ACCESS_MODES);
        }
    }
    let alone = modes.items().any(|mode| mode.is("ReadWriteOncePod"));
    if alone && modes.items().any(|mode| !mode.is("ReadWriteOncePod") && ACCESS_MODES.contains(&mode.text()))
    {
        problems.forbidden(modes, "may not use ReadWriteOncePod with other access modes");
    }
}

fn check_source(source: &FieldCursor, problems: &mut ValidationErrors) {
    for field in ["name", "kind"] {
        if source.at(field).is_empty() {
            problems.required(&source.at(field), "");
        }
    }
    let (group, kind) = (source.at("apiGroup"), source.at("kind"));
    if group.is_empty() {
        if !kind.is("PersistentVolumeClaim") {
            let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            problems.invalid_value(source, &json!(kind.text()), why);
        }
    } else {
        problems.invalid_each(&group, formats::dns_subdomain(group.text()));
    }
}

/// Only its size may change, and the bound volume may be set.
pub(super) fn check_claim_update(live: &FieldCursor, new: &FieldCursor, problems: &mut ValidationErrors) {
    let (before, after) = (live.at("spec"), new.at("spec"));
    let is_bound = new.at("status.phase").is("Bound");
    let closed = |spec: &FieldCursor| {
        let mut spec = spec.value().clone();
        if let Some(fields) = spec.as_object_mut() {
            if before.at("volumeName").is_empty() {
                fields.shift_remove("volumeName");
            }
            if !before.has("storageClassName") {
                fields.shift_remove("storageClassName");
            }
            if is_bound {
                fields.shift_remove("volumeAttributesClassName");
                fields.shift_remove("resources");
            }
        }
        spec
    };
    if !same(&closed(&before), &closed(&after)) {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        problems.forbidden(&after, why);
    }
    let size = |spec: &FieldCursor| Quantity::parse(spec.at("resources.requests.storage").text());
    let held = Quantity::parse(live.at("status.capacity.storage").text());
    if let (Ok(old), Ok(size)) = (size(&before), size(&after))
        && size.compare(&old).is_lt()
        && held.is_ok_and(|held| !size.compare(&held).is_gt())
    {
        let requests = after.at("resources.requests.storage");
        problems.forbidden(&requests, "field can not be less than status.capacity");
    }
    let (mode, kept) = (after.at("volumeMode"), before.at("volumeMode"));
    problems.check_unchanged(&kept, &new.called("volumeMode", mode.value()), "field is immutable");
}

/// The kinds of storage that a volume can be.
const SOURCES: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

pub(super) fn check_volume(object: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = object.at("spec");
    let modes = spec.at("accessModes");
    if modes.is_empty() {
        problems.required(&modes, "");
    } else {
        check_access_modes(&modes, problems);
    }
    let capacity = spec.at("capacity");
    if capacity.is_empty() {
        problems.required(&capacity, "");
    }
    if capacity.len() != 1 || !capacity.key("storage").is_set() {
        let shown = format!("Unsupported value: {}: supported values: \"storage\"", shown(capacity.value()));
        problems.add(&capacity, "FieldValueNotSupported", shown);
    }
    for (resource, amount) in capacity.entries() {
        check_quantity_value(resource, &amount, problems);
        let is_positive =
            Quantity::parse(amount.text()).is_ok_and(|one| !one.is_negative() && !one.is_zero());
        if !is_positive {
            problems.invalid(&amount, "must be greater than zero");
        }
    }
    problems.check_if_one_of(&spec.at("persistentVolumeReclaimPolicy"), &["Delete", "Recycle", "Retain"]);
    let required = spec.at("nodeAffinity.required");
    if required.is_set() {
        super::pod::node_selector(&required, problems);
    }
    check_volume_source(&spec, problems);
    let class = spec.at("storageClassName");
    if !class.is_empty() {
        problems.invalid_each(&class, formats::dns_subdomain(class.text()));
    }
    problems.check_if_one_of(&spec.at("volumeMode"), &["Block", "Filesystem"]);
}

fn check_volume_source(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let mut sources = SOURCES.iter().filter(|source| spec.has(source));
    match sources.next() {
        None => problems.required(spec, "must specify a volume type"),
        Some(kind) => {
            let source = spec.at(kind);
            let required: &[&str] = match *kind {
                "hostPath" | "local" => &["path"],
                "nfs" => &["server", "path"],
                _ => &[],
            };
            for field in required.iter().filter(|field| source.at(field).is_empty()) {
                problems.required(&source.at(field), "");
            }
            if *kind == "nfs" && !source.at("path").text().starts_with('/') {
                let path = source.at("path");
                problems.invalid_value(&path, &json!(path.text()), "must be an absolute path");
            }
            if *kind == "csi" {
                check_driver_name(&source.at("driver"), problems);
                if source.at("volumeHandle").is_empty() {
                    problems.required(&source.at("volumeHandle"), "");
                }
            }
        }
    }
    for another in sources {
        problems.forbidden(&spec.at(another), "may not specify more than 1 volume type");
    }
}

/// The storage behind a volume stays, and so does its mode.
pub(super) fn check_volume_update(live: &FieldCursor, new: &FieldCursor, problems: &mut ValidationErrors) {
    let (before, after) = (live.at("spec"), new.at("spec"));
    if SOURCES.iter().any(|source| !same(before.at(source).value(), after.at(source).value())) {
        let why = "spec.persistentvolumesource is immutable after creation";
        problems.forbidden(&new.called("spec.persistentvolumesource", after.value()), why);
    }
    problems.check_unchanged(
        &before.at("volumeMode"),
        &new.called("volumeMode", after.at("volumeMode").value()),
        "field is immutable",
    );
}

pub(super) fn check_class(object: &FieldCursor, problems: &mut ValidationErrors) {
    let provisioner = object.at("provisioner");
    if provisioner.is_empty() {
        problems.required(&provisioner, "");
    } else {
        for message in formats::qualified_name(&provisioner.text().to_lowercase()) {
            problems.invalid(&provisioner, &message);
        }
    }
    let parameters = object.at("parameters");
    for _ in parameters.entries().filter(|(key, _)| key.is_empty()) {
        problems.invalid_value(&parameters, &json!(""), "field can not be empty.");
    }
    let policy = object.at("reclaimPolicy");
    problems.check_if_one_of(&policy, &["Delete", "Retain"]);
    let mode = object.at("volumeBindingMode");
    if mode.is_set() {
        problems.check_if_one_of(&mode, &["Immediate", "WaitForFirstConsumer"]);
    }
}

/// Nothing that volumes were made by may change.
pub(super) fn check_class_update(live: &FieldCursor, new: &FieldCursor, problems: &mut ValidationErrors) {
    if !same(live.at("parameters").value(), new.at("parameters").value()) {
        problems.forbidden(&new.at("parameters"), "updates to parameters are forbidden.");
    }
    if !same(live.at("provisioner").value(), new.at("provisioner").value()) {
        problems.forbidden(&new.at("provisioner"), "updates to provisioner are forbidden.");
    }
    let policy = new.at("reclaimPolicy");
    if !same(live.at("reclaimPolicy").value(), policy.value()) {
        problems.forbidden(&policy, "updates to reclaimPolicy are forbidden.");
    }
    let mode = "volumeBindingMode";
    problems.check_unchanged(&live.at(mode), &new.at(mode), "field is immutable");
}
