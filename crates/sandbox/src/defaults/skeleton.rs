//! What an object of a kind is before anything is said: the structs that the server's types always
//! write. A create is compared with it, so nobody owns these structs as such, only what is in them.

use serde_json::{Value, json};

use crate::registry::ResourceKind;
use crate::schema;

pub(crate) fn of(kind: &ResourceKind) -> Value {
    if kind.is_custom() {
        return json!({});
    }
    let template = || json!({"metadata": {}, "spec": {"containers": null}});
    match kind.kind.as_str() {
        "Deployment" => json!({"spec": {"selector": null, "strategy": {}, "template": template()}}),
        "StatefulSet" | "DaemonSet" => {
            json!({"spec": {"selector": null, "template": template(), "updateStrategy": {}}})
        }
        "ReplicaSet" => json!({"spec": {"selector": null, "template": template()}}),
        "Job" => json!({"spec": {"template": template()}}),
        "CronJob" => json!({"spec": {"jobTemplate": {"metadata": {}, "spec": {"template": template()}}}}),
        "Pod" => json!({"spec": {"containers": null}}),
        "PersistentVolumeClaim" => json!({"spec": {"resources": {}}}),
        "NetworkPolicy" => json!({"spec": {"podSelector": {}}}),
        "HorizontalPodAutoscaler" => json!({"spec": {"scaleTargetRef": {}}}),
        "Role" | "ClusterRole" => json!({"rules": null}),
        "RoleBinding" | "ClusterRoleBinding" => json!({"roleRef": {}}),
        "CustomResourceDefinition" => json!({"spec": {"names": {}, "versions": null}}),
        _ if has_spec(kind) => json!({"spec": {}}),
        _ => json!({}),
    }
}

fn has_spec(kind: &ResourceKind) -> bool {
    let declaration = schema::built_in().kind(&kind.group, &kind.version, &kind.kind);
    declaration.is_some_and(|declaration| declaration.field("spec").is_some())
}
