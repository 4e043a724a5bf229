//! Invariants of a cluster at rest.

use std::collections::BTreeSet;

use serde_json::Value;

/// The first managed field that does not exist.
pub fn missing_managed_field(object: &Value) -> Option<String> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    // a binding removes the message that the scheduler owns, on real servers too
    let tracked = |entry: &&Value| entry["manager"] != "kube-scheduler";
    entries.iter().filter(tracked).find_map(|entry| {
        let fields = entry["fieldsV1"].as_object();
        let Some(fields) = fields else { return Some(format!("no fieldsV1 in {entry}")) };
        let missing = first_missing_field(&Value::Object(fields.clone()), object)?;
        Some(format!("{} owns {missing}", entry["manager"]))
    })
}

fn first_missing_field(fields: &Value, value: &Value) -> Option<String> {
    fields.as_object()?.iter().find_map(|(key, below)| {
        let Some((kind, name)) = key.split_once(':') else {
            return (key != ".").then(|| format!("{key}, which is no path"));
        };
        let items = || value.as_array().into_iter().flatten();
        let found = match kind {
            "f" => value.get(name),
            "v" => {
                let wanted: Value = serde_json::from_str(name).ok()?;
                return items().all(|item| *item != wanted).then(|| key.clone());
            }
            "k" => {
                let keys: Value = serde_json::from_str(name).ok()?;
                let fits =
                    |item: &&Value| keys.as_object().unwrap().iter().all(|(key, one)| item[key] == *one);
                items().find(fits)
            }
            _ => return Some(format!("{key}, which is no path")),
        };
        match found {
            None => Some(key.clone()),
            Some(found) => first_missing_field(below, found).map(|rest| format!("{key} {rest}")),
        }
    })
}

/// An object whose owner does not exist.
pub fn orphaned_object(objects: &[Value]) -> Option<String> {
    let uids: BTreeSet<&str> = objects.iter().filter_map(|one| one["metadata"]["uid"].as_str()).collect();
    objects.iter().find_map(|one| {
        let owners = one["metadata"]["ownerReferences"].as_array()?;
        let lost = owners.iter().all(|owner| !uids.contains(owner["uid"].as_str().unwrap_or("")));
        lost.then(|| format!("{} {}", one["kind"], one["metadata"]["name"]))
    })
}

/// A deployment whose status does not match its spec.
pub fn incomplete_deployment(deployment: &Value) -> Option<String> {
    let (spec, status) = (&deployment["spec"], &deployment["status"]);
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let wanted = spec["replicas"].as_i64().unwrap_or(0);
    let done = count("observedGeneration") == deployment["metadata"]["generation"].as_i64().unwrap_or(0)
        && ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|field| count(field) == wanted);
    (!done).then(|| format!("{}: {wanted} wanted, {status}", deployment["metadata"]["name"]))
}
