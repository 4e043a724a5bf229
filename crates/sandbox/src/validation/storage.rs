//! Claims and volumes, storage classes, drivers.

use serde_json::json;

use super::place::Place;
use super::pod::check_quantity_value;
use super::problems::Problems;
use super::{formats, selector};
use crate::quantity::Quantity;

const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) fn check_driver_name(name: &Place, problems: &mut Problems) {
    if name.is_empty() {
        return problems.required(name, "");
    }
    if name.len() > 63 {
        problems.too_long(name, 63);
    }
    problems.invalid_each(name, formats::dns_subdomain(&name.text().to_lowercase()));
}

/// The spec of a claim, or of the template of one.
pub(super) fn check_claim_spec(spec: &Place, problems: &mut Problems) {
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

pub(super) fn check_access_modes(modes: &Place, problems: &mut Problems) {
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

fn check_source(source: &Place, problems: &mut Problems) {
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
