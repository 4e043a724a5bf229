//! Volumes, claims, classes, drivers.

use serde_json::{Value, json};

use super::row_object::RowObject;
use crate::object;

pub(super) fn cell(view: &RowObject<'_>, plural: &str, column: &str) -> Option<Value> {
    match plural {
        "persistentvolumeclaims" => claim(view, column),
        "persistentvolumes" => volume(view, column),
        "storageclasses" => class(view, column),
        "csidrivers" => driver(view, column),
        "csinodes" if column == "Drivers" => Some(json!(view.size(&["spec", "drivers"]))),
        "volumeattachments" => attachment(view, column),
        "volumeattributesclasses" if column == "DriverName" => Some(json!(view.text(&["driverName"]))),
        _ => None,
    }
}

fn phase(view: &RowObject<'_>) -> Value {
    if object::is_deleting(view.object) {
        json!("Terminating")
    } else {
        json!(view.text(&["status", "phase"]))
    }
}

/// `RWO,ROX`, each once and in the order of the API.
fn modes(list: &[Value]) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let short: Vec<&str> =
        known.iter().filter(|(mode, _)| list.contains(&json!(mode))).map(|(_, short)| *short).collect();
    short.join(",")
}

fn claim(view: &RowObject<'_>, column: &str) -> Option<Value> {
    let bound = !view.text(&["spec", "volumeName"]).is_empty();
    Some(match column {
        "Status" => phase(view),
        "Volume" => json!(view.text(&["spec", "volumeName"])),
        "Capacity" if bound => view.text_or(&["status", "capacity", "storage"], "0"),
        "Access Modes" if bound => json!(modes(view.list(&["status", "accessModes"]))),
        "Capacity" | "Access Modes" => json!(""),
        "StorageClass" => json!(view.text(&["spec", "storageClassName"])),
        "VolumeAttributesClass" => view.text_or(&["spec", "volumeAttributesClassName"], "<unset>"),
        "VolumeMode" => view.text_or(&["spec", "volumeMode"], "<unset>"),
        _ => return None,
    })
}

fn volume(view: &RowObject<'_>, column: &str) -> Option<Value> {
    Some(match column {
        "Capacity" => view.text_or(&["spec", "capacity", "storage"], "0"),
        "Access Modes" => json!(modes(view.list(&["spec", "accessModes"]))),
        "Reclaim Policy" => json!(view.text(&["spec", "persistentVolumeReclaimPolicy"])),
        "Status" => phase(view),
        "Claim" => match view.at(&["spec", "claimRef"]) {
            None => json!(""),
            Some(claim) => {
                json!(format!("{}/{}", claim["namespace"].as_str().unwrap_or(""), object::name_of(claim)))
            }
        },
        "StorageClass" => json!(view.text(&["spec", "storageClassName"])),
        "VolumeAttributesClass" => view.text_or(&["spec", "volumeAttributesClassName"], "<unset>"),
        "Reason" => json!(view.text(&["status", "reason"])),
        "VolumeMode" => view.text_or(&["spec", "volumeMode"], "<unset>"),
        _ => return None,
    })
}

fn class(view: &RowObject<'_>, column: &str) -> Option<Value> {
    Some(match column {
        "Name" => {
            let marks = [
                "storageclass.kubernetes.io/is-default-class",
                "storageclass.beta.kubernetes.io/is-default-class",
            ];
            let default = marks.iter().any(|mark| object::annotation(view.object, mark) == Some("true"));
            let mark = if default { " (default)" } else { "" };
            json!(format!("{}{mark}", object::name(view.object)))
        }
        "Provisioner" => json!(view.text(&["provisioner"])),
        "ReclaimPolicy" => view.text_or(&["reclaimPolicy"], "Delete"),
        "VolumeBindingMode" => view.text_or(&["volumeBindingMode"], "Immediate"),
        "AllowVolumeExpansion" => view.flag(&["allowVolumeExpansion"], false),
        _ => return None,
    })
}

fn driver(view: &RowObject<'_>, column: &str) -> Option<Value> {
    Some(match column {
        "AttachRequired" => view.flag(&["spec", "attachRequired"], true),
        "PodInfoOnMount" => view.flag(&["spec", "podInfoOnMount"], false),
        "StorageCapacity" => view.flag(&["spec", "storageCapacity"], false),
        "TokenRequests" => match view.at(&["spec", "tokenRequests"]).and_then(Value::as_array) {
            None => json!("<unset>"),
            Some(all) => {
                json!(all.iter().filter_map(|one| one["audience"].as_str()).collect::<Vec<_>>().join(","))
            }
        },
        "RequiresRepublish" => view.flag(&["spec", "requiresRepublish"], false),
        "Modes" => {
            let all: Vec<&str> =
                view.list(&["spec", "volumeLifecycleModes"]).iter().filter_map(Value::as_str).collect();
            if all.is_empty() { json!("<none>") } else { json!(all.join(",")) }
        }
        _ => return None,
    })
}

fn attachment(view: &RowObject<'_>, column: &str) -> Option<Value> {
    Some(match column {
        "Attacher" => json!(view.text(&["spec", "attacher"])),
        "PV" => json!(view.text(&["spec", "source", "persistentVolumeName"])),
        "Node" => json!(view.text(&["spec", "nodeName"])),
        "Attached" => view.flag(&["status", "attached"], false),
        _ => return None,
    })
}
