//! Releases an object that stays in the cluster: removes our labels, annotations and `managedFields` entries. All
//! values stay.
//!
//! The next applier has no conflict, and no watch of ours lists the object any more.

use serde_json::{Map, Value, json};

use tokio_util::sync::CancellationToken;

use super::managed_fields::{entry_text, managed_entries};
use super::step_errors::superseded_error;
use crate::cluster::{Catalog, Client, Error};
use crate::model::labels;
use crate::plan::PruneCandidate;

/// `live` is the object, or its metadata, as just read. The write is refused if the object changed since.
pub async fn release_object(
    client: &Client,
    catalog: &Catalog,
    manager: &str,
    candidate: &PruneCandidate,
    live: &Value,
    cancelled: &CancellationToken,
) -> Result<(), Error> {
    let Some(resource) = catalog.get(&candidate.kind) else {
        return Err(Error::NotServed { cluster: client.name().clone(), kind: candidate.kind.to_string() });
    };
    if let Some(error) = superseded_error(cancelled, &candidate.object) {
        return Err(error);
    }
    client.set_metadata(resource, &candidate.object, &release_patch(live, manager), manager).await?;
    Ok(())
}

/// The merge patch of metadata that removes everything of ours.
fn release_patch(live: &Value, manager: &str) -> Value {
    let others: Vec<&Value> =
        managed_entries(live).iter().filter(|entry| entry_text(entry, "manager") != manager).collect();
    // Servers ignore an empty list, as from a client that does not know the field.
    let others = if others.is_empty() { json!([{}]) } else { json!(others) };
    // Also annotations that others wrote for us, and `keep` of an app that never prunes: the next owner sets its own.
    let nulls = |pointer: &str| {
        let names = live.pointer(pointer).and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let ours = names.filter(|name| name.starts_with(labels::PREFIX));
        ours.map(|name| (name.clone(), Value::Null)).collect::<Map<_, _>>()
    };
    let mut metadata = json!({
        "uid": live.pointer("/metadata/uid"),
        "resourceVersion": live.pointer("/metadata/resourceVersion"),
        "labels": nulls("/metadata/labels"),
        "annotations": nulls("/metadata/annotations"),
    });
    // Some servers of aggregated APIs neither store nor accept entries.
    if !managed_entries(live).is_empty() {
        metadata["managedFields"] = others;
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_entries_go_and_others_stay() {
        let check = |managers: &[&str], expected: Value| {
            let entries: Vec<Value> = managers.iter().map(|manager| json!({"manager": manager})).collect();
            let live = json!({"metadata": {"uid": "u", "resourceVersion": "7", "managedFields": entries}});
            assert_eq!(release_patch(&live, "tutti-main")["managedFields"], expected);
        };
        check(
            &["kubectl", "tutti-main", "tutti-other"],
            json!([{"manager": "kubectl"}, {"manager": "tutti-other"}]),
        );
        check(&["tutti-main", "tutti-main"], json!([{}]));
    }

    #[test]
    fn our_metadata_is_removed_and_other_metadata_stays() {
        let live = json!({"metadata": {
            "labels": {"tutti.dev/managed-by": "main", "tutti.dev/app": "shop.pay", "app": "pay"},
            "annotations": {"tutti.dev/hash": "1", "tutti.dev/prune": "keep", "tutti.dev/force": "true",
                "tutti.dev/replace": "true", "helm.sh/resource-policy": "keep", "example.com/tutti.dev": "x"},
        }});
        let patch = release_patch(&live, "tutti-main");
        let none = Value::Null;
        assert_eq!(patch["labels"], json!({"tutti.dev/managed-by": none, "tutti.dev/app": none}));
        let expected = json!({"tutti.dev/hash": none, "tutti.dev/prune": none, "tutti.dev/force": none,
            "tutti.dev/replace": none});
        assert_eq!(patch["annotations"], expected);
    }

    #[test]
    fn server_without_entries_is_sent_none() {
        let live = json!({"metadata": {"uid": "u", "resourceVersion": "7"}});
        assert_eq!(release_patch(&live, "tutti-main").get("managedFields"), None);
    }
}
