//! Compares clusters with the repository.

use base64::Engine as _;
use sandbox::Sandbox;
use serde_json::{Value, json};

use super::edit::Traces;
use super::hands;
use super::object::{Kind, Name, left_over, missing};
use super::wanted::Wanted;

/// Whether the cluster has an object as desired, field by field.
pub fn holds(sandbox: &Sandbox, name: &Name, wanted: &Value, traces: &Traces) -> Result<(), String> {
    let live = hands::get(sandbox, &name.path()).ok_or_else(|| format!("{name} is not there"))?;
    let mut wanted = as_stored(wanted);
    let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
    if traces.autoscaled.contains(uid)
        && let Some(spec) = wanted.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.remove("replicas");
    }
    if let Some(why) = missing(&wanted, &live, "") {
        return Err(format!("{name}: {why}"));
    }
    if !traces.loosened.contains(uid)
        && let Some(why) = left_over(&wanted, &live, "")
    {
        return Err(format!("{name}: {why}"));
    }
    Ok(())
}

/// Our objects in a namespace or of a definition.
pub fn inside(sandbox: &Sandbox, name: &Name) -> Vec<(Name, Value)> {
    let Some(kind) = name.kind.contents() else { return Vec::new() };
    let live = hands::list(sandbox, kind.folder(), "tutti.dev/managed-by=main").into_iter();
    let named =
        live.map(|live| (Name::new(kind, live["metadata"]["name"].as_str().unwrap_or_default()), live));
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
pub fn differences(wanted: &Wanted, sandbox: &Sandbox, traces: &Traces) -> Vec<String> {
    let cluster = sandbox.name();
    let mut found = Vec::new();
    for (id, _, name, body) in wanted.on(cluster) {
        match holds(sandbox, &name, &body, traces) {
            Err(why) => found.push(format!("{cluster}: {why}")),
            Ok(()) => {
                let live = hands::get(sandbox, &name.path()).unwrap_or_default();
                let app = &live["metadata"]["annotations"]["tutti.dev/app"];
                if *app != json!(format!("default/{id}")) {
                    found.push(format!("{cluster}: {name} is of {app}, not of {id}"));
                }
            }
        }
    }
    for kind in Kind::ALL {
        for live in hands::list(sandbox, kind.folder(), "tutti.dev/managed-by=main") {
            let name = Name::new(kind, live["metadata"]["name"].as_str().unwrap_or_default());
            // It was kept because an app rendered it.
            let is_kept = live["metadata"]["annotations"]["tutti.dev/prune"] == "keep";
            let is_strange = is_kept || traces.strangers.contains_key(&(cluster.to_owned(), name.path()));
            if !is_strange && wanted.owners(cluster, &name).next().is_none() {
                found.push(format!("{cluster}: {name} is there and nobody wants it"));
            }
        }
    }
    found.extend(touched(sandbox, traces));
    found
}

/// Objects and fields of others that were changed.
pub fn touched(sandbox: &Sandbox, traces: &Traces) -> Vec<String> {
    let cluster = sandbox.name();
    let mut found = Vec::new();
    for ((place, path), before) in &traces.strangers {
        if place == cluster && hands::get(sandbox, path).as_ref() != Some(before) {
            found.push(format!("{cluster}: {path} is somebody else's and was changed"));
        }
    }
    for kind in Kind::ALL {
        for live in hands::list(sandbox, kind.folder(), "") {
            let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
            let of_others = traces.foreign.iter().filter(|((known, _), _)| known == uid);
            for (_, (pointer, value)) in of_others {
                if live.pointer(pointer) != Some(value) {
                    let name = &live["metadata"]["name"];
                    found.push(format!("{cluster}: {} {name} lost {pointer}, which is others'", kind.word()));
                }
            }
        }
    }
    found
}
