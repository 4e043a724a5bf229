//! Deletes an object that must be created again, because an immutable field changes.
//!
//! The object is certainly ours, and a dry run showed that the cluster accepts the new one. The next plan creates it,
//! in this process or in a later one.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::managed_fields;
use super::step_errors::superseded_error;
use crate::cluster::{Client, DeleteOutcome, Error, Resource};
use crate::model::{ObjectId, foreign_annotation, labels};

/// `body`: the object that will be created. `uid`: of the object that is meant.
pub async fn delete_for_replacement(
    client: &Client,
    resource: &Resource,
    manager: &str,
    id: &ObjectId,
    body: &Value,
    uid: &str,
    cancelled: &CancellationToken,
) -> Result<DeleteOutcome, Error> {
    let Some(live) = client.get(resource, id).await? else { return Ok(DeleteOutcome::Gone) };
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/metadata/uid") != uid {
        return Ok(DeleteOutcome::Changed);
    }
    check_replacement(client, resource, manager, id, body, &live).await?;
    if let Some(error) = superseded_error(cancelled, id) {
        return Err(error);
    }
    client.delete(resource, id, uid, text("/metadata/resourceVersion")).await
}

/// Whether the object could be deleted and created again, by a dry run.
pub async fn check_replacement(
    client: &Client,
    resource: &Resource,
    manager: &str,
    id: &ObjectId,
    body: &Value,
    live: &Value,
) -> Result<(), Error> {
    if let Some(why) = live_replacement_objection(live, manager) {
        let (code, reason) = (400, "Invalid".to_owned());
        return Err(Error::Rejected { action: "replace", object: id.clone(), code, reason, detail: why });
    }
    client.dry_run_create(resource, id, body, manager).await
}

/// Why the object is never deleted.
fn live_replacement_objection(live: &Value, manager: &str) -> Option<String> {
    let instance =
        live.pointer("/metadata/labels").and_then(|labels| labels.get(labels::MANAGED_BY)?.as_str());
    if instance.map(labels::field_manager).as_deref() != Some(manager) {
        Some("its label tutti.dev/managed-by is missing".to_owned())
    } else if live.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()) {
        Some("it is being deleted".to_owned())
    } else if let Some(mark) = foreign_annotation::keep_reason(live) {
        Some(format!("its mark {mark}"))
    } else if !managed_fields::managed_entries(live)
        .iter()
        .any(|entry| managed_fields::is_apply_entry(entry, manager))
    {
        Some("tutti manages none of its fields".to_owned())
    } else if ObjectId::deletes_volume_claims(live) {
        Some("its volume claims would be deleted with it".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kept_foreign_and_data_objects_are_not_replaced() {
        let live = |annotations: Value, manager: &str, policy: &str| {
            json!({
                "metadata": {"annotations": annotations, "labels": {"tutti.dev/managed-by": "main"}, "managedFields": [
                    {"manager": manager, "operation": "Apply", "fieldsV1": {}}]},
                "spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy}},
            })
        };
        let check = |live: &Value, expected: Option<&str>| {
            let found = live_replacement_objection(live, "tutti-main");
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()));
        };
        check(&live(json!({}), "tutti-main", "Retain"), None);
        check(&live(json!({"tutti.dev/prune": "keep"}), "tutti-main", "Retain"), Some("is keep"));
        check(&live(json!({}), "tutti-other", "Retain"), Some("none of its fields"));
        check(&live(json!({}), "tutti-main", "Delete"), Some("volume claims"));
    }
}
