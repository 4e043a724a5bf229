//! Defaults of pods and pod templates that the table cannot express.

use serde_json::{Map, Value, json};

use super::default_rules;
use crate::object::{self, set_default};

pub(super) fn fill_spec(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    default_rules::apply_rules(default_rules::POD_SPEC, spec);
    // the deprecated name follows the new one
    match object::value_at(spec, &["serviceAccountName"])
        .or_else(|| object::value_at(spec, &["serviceAccount"]))
        .cloned()
    {
        Some(account) => {
            spec["serviceAccount"] = account.clone();
            spec["serviceAccountName"] = account;
        }
        None => {
            object::take(spec, &["serviceAccount"]);
        }
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            fill_container(container);
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        fill_volume(volume);
    }
}

pub(super) fn fill_template(new: &mut Value, path: &str) {
    default_rules::for_each_at(new, path, &mut |template| {
        if let Some(spec) = template.get_mut("spec") {
            fill_spec(spec);
        }
    });
}

/// A volume without a source is an empty directory.
fn fill_volume(volume: &mut Value) {
    if let Some(fields) = volume.as_object_mut()
        && !fields.keys().any(|field| field != "name")
    {
        fields.insert("emptyDir".to_owned(), json!({}));
    }
    if let Some(reference) = object::value_at(volume, &["image"]).map(|image| image["reference"].clone()) {
        let policy = pull_policy(reference.as_str().unwrap_or(""));
        set_default(volume, &["image", "pullPolicy"], policy);
    }
}

fn fill_container(container: &mut Value) {
    let policy = pull_policy(object::text(container, &["image"]).unwrap_or(""));
    set_default(container, &["imagePullPolicy"], policy);
    default_rules::apply_rules(default_rules::CONTAINER, container);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            default_rules::apply_rules(default_rules::PROBE, probe);
        }
    }
}

/// Images tagged `latest` or without a tag are always pulled. An invalid reference has no tag.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image.split_once('@').map_or((image, false), |(name, _)| (name, true));
    let (path, last) = name.rsplit_once('/').unwrap_or(("", name));
    let (last, tag) = last.split_once(':').map_or((last, None), |(last, tag)| (last, Some(tag)));
    let (host, path) = match path.split_once('/').unwrap_or((path, "")) {
        (host, path) if host.contains(['.', ':']) || host == "localhost" => (host, path),
        _ => ("", path),
    };
    let is_part = |part: &str| {
        let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        part.starts_with(is_letter)
            && part.ends_with(is_letter)
            && part.chars().all(|letter| is_letter(letter) || "._-".contains(letter))
    };
    let parts_hold = path.split('/').filter(|_| !path.is_empty()).all(is_part) && is_part(last);
    let name_of_host = host.split_once(':').map_or(host, |(name, _)| name);
    let is_label =
        |label: &str| !label.is_empty() && label.chars().all(|one| one.is_ascii_alphanumeric() || one == '-');
    let host_holds = host.is_empty() || name_of_host.split('.').all(is_label);
    // the host and the library that a short name means count too
    let full = name.len() + if host.is_empty() { "docker.io/library/".len() } else { 0 };
    match tag {
        _ if !parts_hold || !host_holds || full > 255 => "IfNotPresent",
        Some("latest") => "Always",
        None if !digest => "Always",
        _ => "IfNotPresent",
    }
}

/// Defaults of pods that templates do not have.
pub(super) fn fill_pod(new: &mut Value) {
    default_rules::apply_rules(default_rules::POD, new);
    let Some(spec) = new.get_mut("spec") else { return };
    fill_spec(spec);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        spec["terminationGracePeriodSeconds"] = json!(1);
    }
    let host_network = spec["hostNetwork"] == true;
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            request_limits(container);
            let ports = container.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().filter(|_| host_network) {
                let number = port["containerPort"].clone();
                set_default(port, &["hostPort"], number);
            }
        }
    }
}

/// Requests default to limits.
fn request_limits(container: &mut Value) {
    let limits = object::value_at(container, &["resources", "limits"]).and_then(Value::as_object).cloned();
    for (resource, limit) in limits.as_ref().map(Map::iter).into_iter().flatten() {
        let requests = object::value_mut(container, &["resources", "requests"]);
        set_default(requests, &[resource], limit.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_latest_is_always_pulled() {
        for (image, expected) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("reg.io:5000/nginx", "Always"),
            ("reg.io:5000/nginx:1.2", "IfNotPresent"),
            ("a@sha256:1234", "IfNotPresent"),
            ("Bad_Name!", "IfNotPresent"),
            ("", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), expected, "{image}");
        }
    }
}
