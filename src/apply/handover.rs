//! A server that has learnt to say who set what: from then on it keeps our entry, and the annotation that held it goes.
//!
//! Without this it would take everything that is there for somebody else's, as of before the first apply: what Git changes would
//! be in conflict, and what Git drops would stay.

use serde_json::{Map, Value, json};

use super::owned::{NOBODY, entries, entry_of, fields, is_ours, text};
use crate::cluster::{Client, Conflict, Error, Resource};
use crate::model::{ObjectId, labels};

/// It still carries our entry in an annotation.
pub fn is_due(live: &Value) -> bool {
    kept(live).is_some()
}

/// So it looks where the server took our fields for those of a write that was no apply.
pub fn may_be_due(conflicts: &[Conflict], manager: &str) -> bool {
    conflicts.iter().any(|conflict| [NOBODY, manager].contains(&conflict.manager.as_str()))
}

fn kept(live: &Value) -> Option<&str> {
    live.pointer("/metadata/annotations")?.get(labels::FIELDS)?.as_str()
}

/// Gives the entry to the server. `live` is the object as it was just read; who was quicker is read again, once.
pub async fn hand_over(
    client: &Client,
    resource: &Resource,
    manager: &str,
    id: &ObjectId,
    live: &Value,
) -> Result<Value, Error> {
    match client.set_metadata(resource, id, &handed_over(live, manager), manager).await {
        Err(error @ Error::Rejected { code: 409, .. }) => match client.get(resource, id).await? {
            Some(live) if is_due(&live) => {
                client.set_metadata(resource, id, &handed_over(&live, manager), manager).await
            }
            _ => Err(error),
        },
        result => result,
    }
}

fn handed_over(live: &Value, manager: &str) -> Value {
    let parsed = kept(live).and_then(|text| serde_json::from_str::<Value>(text).ok());
    // Another instance may have had it before us: what was its own is not ours.
    let parsed = parsed.filter(|entry| is_ours(entry, manager));
    let mut ours = parsed.as_ref().map(fields).unwrap_or_default();
    let mut others: Vec<Value> = Vec::new();
    for entry in entries(live) {
        let is_update = text(entry, "operation") == "Update" && text(entry, "subresource").is_empty();
        if is_ours(entry, manager) {
            ours.add(&fields(entry));
        } else if !(is_update && [NOBODY, manager].contains(&text(entry, "manager"))) {
            others.push(entry.clone());
        }
    }
    ours.forget(&["metadata", "annotations", labels::FIELDS]);
    // Else a map that the schema does not have would be left as null when Git drops all that is in it.
    ours.own_maps(&["f:metadata"]);
    others.push(entry_of(manager, live, &ours));
    let annotations: Map<String, Value> = [(labels::FIELDS.to_owned(), Value::Null)].into_iter().collect();
    json!({
        "uid": live.pointer("/metadata/uid"),
        "resourceVersion": live.pointer("/metadata/resourceVersion"),
        "annotations": annotations,
        "managedFields": others,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_ours_is_ours_and_what_was_nobodys_is_nobodys() {
        let entry = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "fieldsV1": fields});
        let known = entry("tutti-main", "Apply", json!({"f:spec": {"f:owner": {}}}));
        let kubectl = entry("kubectl-edit", "Update", json!({"f:spec": {"f:note": {}}}));
        let managed = json!([
            entry(NOBODY, "Update", json!({"f:spec": {"f:owner": {}, "f:note": {}}})),
            kubectl,
            entry("tutti-main", "Update", json!({"f:spec": {"f:owner": {}}})),
            entry("tutti-main", "Apply", json!({"f:spec": {"f:size": {}}})),
        ]);
        let live = json!({"apiVersion": "example.com/v1", "metadata": {"uid": "u1", "resourceVersion": "7",
            "annotations": {labels::FIELDS: known.to_string()}, "managedFields": managed}});
        let metadata = handed_over(&live, "tutti-main");
        let after = metadata["managedFields"].as_array().expect("entries");
        assert_eq!(after.len(), 2);
        assert_eq!(after[0], kubectl);
        assert_eq!(after[1]["fieldsV1"], json!({"f:spec": {".": {}, "f:owner": {}, "f:size": {}}}));
        assert_eq!(metadata["annotations"], json!({labels::FIELDS: null}));
        assert!(is_due(&live));
        let theirs = handed_over(&live, "tutti-other");
        let after = theirs["managedFields"].as_array().expect("entries");
        let ours = after.iter().find(|entry| is_ours(entry, "tutti-other")).expect("ours");
        assert_eq!(ours["fieldsV1"], json!({}), "of another instance");
    }
}
