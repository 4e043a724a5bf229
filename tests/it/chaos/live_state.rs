//! Compares clusters with the repository.

use base64::Engine as _;
use sandbox::Sandbox;
use serde_json::{Value, json};

use super::desired::DesiredRepository;
use super::direct_client;
use super::edit::ExternalChanges;
use super::object::{ChaosKind, ChaosObjectId, first_extra_path, first_missing_path};

/// Whether the cluster has an object as desired, field by field.
pub fn check_object(
    sandbox: &Sandbox,
    name: &ChaosObjectId,
    wanted: &Value,
    traces: &ExternalChanges,
) -> Result<(), String> {
    let live = direct_client::get(sandbox, &name.path()).ok_or_else(|| format!("{name} is not there"))?;
    let mut wanted = as_stored(wanted);
    let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
    if traces.autoscaled_uids.contains(uid)
        && let Some(spec) = wanted.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.remove("replicas");
    }
    if let Some(why) = first_missing_path(&wanted, &live, "") {
        return Err(format!("{name}: {why}"));
    }
    if !traces.lost_ownership.contains(uid)
        && let Some(why) = first_extra_path(&wanted, &live, "")
    {
        return Err(format!("{name}: {why}"));
    }
    Ok(())
}

/// Our objects in a namespace or of a definition.
pub fn managed_contents(sandbox: &Sandbox, name: &ChaosObjectId) -> Vec<(ChaosObjectId, Value)> {
    let Some(kind) = name.kind.contents() else { return Vec::new() };
    let live = direct_client::list(sandbox, kind.collection_path(), "tutti.dev/managed-by=main").into_iter();
    let named = live
        .map(|live| (ChaosObjectId::new(kind, live["metadata"]["name"].as_str().unwrap_or_default()), live));
    named
        .filter(|(name, live)| live["metadata"]["annotations"]["tutti.dev/origin"] == name.origin())
        .collect()
}

/// Secrets are written as text and stored in base64.
pub fn as_stored(wanted: &Value) -> Value {
    let mut wanted = wanted.clone();
    let texts = wanted.as_object_mut().and_then(|object| object.remove("stringData"));
    if let Some(texts) = texts {
        let encode = |text: &Value| {
            json!(base64::engine::general_purpose::STANDARD.encode(text.as_str().unwrap_or_default()))
        };
        let data = texts.as_object().into_iter().flatten().map(|(key, text)| (key.clone(), encode(text)));
        wanted["data"] = Value::Object(data.collect());
    }
    wanted
}

/// All differences between one cluster and the last commit.
pub fn differences(wanted: &DesiredRepository, sandbox: &Sandbox, traces: &ExternalChanges) -> Vec<String> {
    let cluster = sandbox.name();
    let mut found = Vec::new();
    for (id, _, name, body) in wanted.objects_on(cluster) {
        match check_object(sandbox, &name, &body, traces) {
            Err(why) => found.push(format!("{cluster}: {why}")),
            Ok(()) => {
                let live = direct_client::get(sandbox, &name.path()).unwrap_or_default();
                let app = &live["metadata"]["annotations"]["tutti.dev/app"];
                if *app != json!(format!("default/{id}")) {
                    found.push(format!("{cluster}: {name} is of {app}, not of {id}"));
                }
            }
        }
    }
    for kind in ChaosKind::ALL {
        for live in direct_client::list(sandbox, kind.collection_path(), "tutti.dev/managed-by=main") {
            let name = ChaosObjectId::new(kind, live["metadata"]["name"].as_str().unwrap_or_default());
            // It was kept because an app rendered it.
            let is_kept = live["metadata"]["annotations"]["tutti.dev/prune"] == "keep";
            let is_strange =
                is_kept || traces.unmanaged_objects.contains_key(&(cluster.to_owned(), name.path()));
            if !is_strange && wanted.owners(cluster, &name).next().is_none() {
                found.push(format!("{cluster}: {name} is there and nobody wants it"));
            }
        }
    }
    found.extend(changed_unmanaged(sandbox, traces));
    found
}

/// Objects and fields of others that were changed.
pub fn changed_unmanaged(sandbox: &Sandbox, traces: &ExternalChanges) -> Vec<String> {
    let cluster = sandbox.name();
    let mut found = Vec::new();
    for ((place, path), before) in &traces.unmanaged_objects {
        if place == cluster && direct_client::get(sandbox, path).as_ref() != Some(before) {
            found.push(format!("{cluster}: {path} is somebody else's and was changed"));
        }
    }
    for kind in ChaosKind::ALL {
        for live in direct_client::list(sandbox, kind.collection_path(), "") {
            let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
            let of_others = traces.foreign_fields.iter().filter(|((known, _), _)| known == uid);
            for (_, (pointer, value)) in of_others {
                if live.pointer(pointer) != Some(value) {
                    let name = &live["metadata"]["name"];
                    found.push(format!(
                        "{cluster}: {} {name} lost {pointer}, which is others'",
                        kind.kind_name()
                    ));
                }
            }
        }
    }
    found
}
