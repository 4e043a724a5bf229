//! Reduces a live object to the fields that its authors set.

use serde_json::{Map, Value, json};

/// Annotations that controllers and tools write.
const TOOL_ANNOTATIONS: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/",
    "deprecated.daemonset.template.generation",
    "autoscaling.alpha.kubernetes.io/",
    "meta.helm.sh/",
];

/// Removes status, identity and bookkeeping; fields get the usual order.
pub fn without_bookkeeping(live: &Value) -> Value {
    let mut object = Map::new();
    for field in ["apiVersion", "kind"] {
        object.insert(field.to_owned(), live.get(field).cloned().unwrap_or_default());
    }
    let mut metadata = Map::new();
    for field in ["name", "namespace", "labels", "annotations"] {
        let Some(value) = live.get("metadata").and_then(|metadata| metadata.get(field)) else { continue };
        let mut value = value.clone();
        if let ("annotations", Value::Object(entries)) = (field, &mut value) {
            entries.retain(|key, _| !TOOL_ANNOTATIONS.iter().any(|noise| key.starts_with(noise)));
        }
        if !is_empty(&value) {
            metadata.insert(field.to_owned(), value);
        }
    }
    object.insert("metadata".to_owned(), Value::Object(metadata));
    for (field, value) in live.as_object().into_iter().flatten() {
        if !["apiVersion", "kind", "metadata", "status"].contains(&field.as_str()) {
            object.insert(field.clone(), value.clone());
        }
    }
    let mut object = Value::Object(object);
    for template in ["/spec/template", "/spec/volumeClaimTemplates"] {
        object.pointer_mut(template).into_iter().for_each(remove_nested_status);
    }
    if object["kind"] == "Service" {
        remove_assigned_addresses(&mut object);
    }
    object
}

/// In nested templates.
fn remove_nested_status(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(remove_nested_status),
        Value::Object(map) => {
            map.shift_remove("status");
            if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
                metadata.shift_remove("creationTimestamp");
            }
        }
        _ => {}
    }
}

/// Removes addresses that the cluster assigned; a headless Service stays headless.
fn remove_assigned_addresses(service: &mut Value) {
    let Some(Value::Object(spec)) = service.get_mut("spec") else { return };
    let is_headless = spec.get("clusterIP").is_some_and(|address| address == "None");
    for field in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
        if field != "clusterIP" || !is_headless {
            spec.shift_remove(field);
        }
    }
    if spec.get("ipFamilyPolicy").is_none_or(|policy| policy == "SingleStack") {
        spec.shift_remove("ipFamilies");
        spec.shift_remove("ipFamilyPolicy");
    }
}

/// Removes fields with the API server's defaults. A later dry run verifies that.
pub fn remove_defaults(object: &mut Value) {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(spec) = object.get_mut("spec") else { return };
    match kind.as_str() {
        "Deployment" => {
            remove_if_equal(spec, "progressDeadlineSeconds", &json!(600));
            remove_if_equal(spec, "revisionHistoryLimit", &json!(10));
            let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
            remove_if_equal(spec, "strategy", &rolling);
        }
        "StatefulSet" => {
            remove_if_equal(spec, "revisionHistoryLimit", &json!(10));
            remove_if_equal(spec, "podManagementPolicy", &json!("OrderedReady"));
            remove_if_equal(
                spec,
                "updateStrategy",
                &json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
            );
            let retained = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
            remove_if_equal(spec, "persistentVolumeClaimRetentionPolicy", &retained);
        }
        "DaemonSet" => {
            remove_if_equal(spec, "revisionHistoryLimit", &json!(10));
            let rolling =
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
            remove_if_equal(spec, "updateStrategy", &rolling);
        }
        "Service" => {
            remove_if_equal(spec, "internalTrafficPolicy", &json!("Cluster"));
            remove_if_equal(spec, "sessionAffinity", &json!("None"));
            remove_if_equal(spec, "type", &json!("ClusterIP"));
        }
        _ => {}
    }
    if let Some(pod) = spec.pointer_mut("/template/spec") {
        remove_pod_defaults(pod);
    }
}

fn remove_pod_defaults(pod: &mut Value) {
    for (field, value) in [
        ("dnsPolicy", json!("ClusterFirst")),
        ("restartPolicy", json!("Always")),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
        ("terminationGracePeriodSeconds", json!(30)),
    ] {
        remove_if_equal(pod, field, &value);
    }
    // Deprecated alias of the field.
    if let Some(account) = pod.get("serviceAccountName").cloned() {
        remove_if_equal(pod, "serviceAccount", &account);
    }
    for list in ["containers", "initContainers"] {
        for container in items(pod, list) {
            remove_if_equal(container, "resources", &json!({}));
            remove_if_equal(container, "terminationMessagePath", &json!("/dev/termination-log"));
            remove_if_equal(container, "terminationMessagePolicy", &json!("File"));
            let newest = container.get("image").and_then(Value::as_str).is_none_or(|image| {
                crate::model::image_tag(image).is_none_or(|tag| tag == "latest") && !image.contains('@')
            });
            let policy = if newest { "Always" } else { "IfNotPresent" };
            remove_if_equal(container, "imagePullPolicy", &json!(policy));
            for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
                let Some(probe) = container.get_mut(probe) else { continue };
                for (field, value) in [
                    ("failureThreshold", 3),
                    ("periodSeconds", 10),
                    ("successThreshold", 1),
                    ("timeoutSeconds", 1),
                ] {
                    remove_if_equal(probe, field, &json!(value));
                }
                if let Some(request) = probe.get_mut("httpGet") {
                    remove_if_equal(request, "scheme", &json!("HTTP"));
                }
            }
            for variable in items(container, "env") {
                if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
                    remove_if_equal(field, "apiVersion", &json!("v1"));
                }
            }
        }
    }
    for volume in items(pod, "volumes") {
        for source in ["configMap", "secret", "projected", "downwardAPI"] {
            if let Some(source) = volume.get_mut(source) {
                remove_if_equal(source, "defaultMode", &json!(420));
            }
        }
    }
}

fn items<'a>(value: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

fn remove_if_equal(value: &mut Value, field: &str, default: &Value) {
    if let Value::Object(map) = value
        && map.get(field) == Some(default)
    {
        map.shift_remove(field);
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_cluster_are_removed() {
        let live = json!({
            "kind": "Deployment", "apiVersion": "apps/v1", "status": {"replicas": 1},
            "metadata": {
                "uid": "1", "resourceVersion": "2", "managedFields": [], "name": "web", "namespace": "shop",
                "annotations": {"deployment.kubernetes.io/revision": "3", "team": "pay"},
            },
            "spec": {
                "progressDeadlineSeconds": 600, "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"creationTimestamp": null, "labels": {"app": "web"},
                        "annotations": {"kubectl.kubernetes.io/restartedAt": "now"}},
                    "spec": {"dnsPolicy": "Default", "restartPolicy": "Always", "securityContext": {},
                        "containers": [{"name": "web", "image": "shop/web:1", "imagePullPolicy": "IfNotPresent",
                            "readinessProbe": {"httpGet": {"port": 80, "scheme": "HTTP"}, "timeoutSeconds": 5}}]},
                },
            },
        });
        let mut object = without_bookkeeping(&live);
        remove_defaults(&mut object);
        let expected = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "annotations": {"team": "pay"}},
            "spec": {
                "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}, "annotations": {"kubectl.kubernetes.io/restartedAt": "now"}},
                    "spec": {"dnsPolicy": "Default", "containers": [{"name": "web", "image": "shop/web:1",
                        "readinessProbe": {"httpGet": {"port": 80}, "timeoutSeconds": 5}}]},
                },
            },
        });
        assert_eq!(object, expected);
    }

    #[test]
    fn a_headless_service_stays_headless() {
        let service = |address: &str| {
            let live = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
                "spec": {"clusterIP": address, "clusterIPs": [address], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}});
            without_bookkeeping(&live)["spec"].clone()
        };
        assert_eq!(service("None"), json!({"clusterIP": "None"}));
        assert_eq!(service("10.0.0.1"), json!({}));
    }
}
