//! Pods and pod templates.

use serde_json::{Value, json};

use super::quantity;
use crate::object::{self, set_default};

pub(super) fn fill_pod(new: &mut Value) {
    set_default(new, &["spec", "enableServiceLinks"], true);
    fill_spec(object::place(new, &["spec"]));
    set_default(new, &["status", "phase"], "Pending");
    // this type writes the field also when it is empty
    for condition in new.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten()
    {
        set_default(condition, &["lastProbeTime"], Value::Null);
    }
}

pub(super) fn fill_template(new: &mut Value, path: &[&str]) {
    if object::at(new, path).is_some() {
        set_default(new, &[path, &["metadata"]].concat(), json!({}));
        let spec = [path, &["spec"]].concat();
        fill_spec(object::place(new, &spec));
    }
}

fn fill_spec(spec: &mut Value) {
    set_default(spec, &["restartPolicy"], "Always");
    set_default(spec, &["dnsPolicy"], "ClusterFirst");
    set_default(spec, &["terminationGracePeriodSeconds"], 30);
    set_default(spec, &["securityContext"], json!({}));
    set_default(spec, &["schedulerName"], "default-scheduler");
    // the deprecated name is filled from the new one
    if let Some(account) = object::at(spec, &["serviceAccountName"]).cloned() {
        set_default(spec, &["serviceAccount"], account);
    }
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            fill_container(container);
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        for source in ["configMap", "secret", "projected"] {
            if volume.get(source).is_some() {
                set_default(volume, &[source, "defaultMode"], 420);
            }
        }
    }
}

fn fill_container(container: &mut Value) {
    let policy = if pulls_always(object::text(container, &["image"]).unwrap_or("")) {
        "Always"
    } else {
        "IfNotPresent"
    };
    set_default(container, &["imagePullPolicy"], policy);
    set_default(container, &["terminationMessagePath"], "/dev/termination-log");
    set_default(container, &["terminationMessagePolicy"], "File");
    set_default(container, &["resources"], json!({}));
    for list in ["limits", "requests"] {
        quantity::canonicalise_map(container["resources"].get_mut(list));
    }
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        set_default(port, &["protocol"], "TCP");
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            fill_probe(probe);
        }
    }
    for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
        if variable["valueFrom"]["fieldRef"].is_object() {
            set_default(variable, &["valueFrom", "fieldRef", "apiVersion"], "v1");
        }
    }
}

fn fill_probe(probe: &mut Value) {
    set_default(probe, &["timeoutSeconds"], 1);
    set_default(probe, &["periodSeconds"], 10);
    set_default(probe, &["successThreshold"], 1);
    set_default(probe, &["failureThreshold"], 3);
    if probe["httpGet"].is_object() {
        set_default(probe, &["httpGet", "scheme"], "HTTP");
        set_default(probe, &["httpGet", "path"], "/");
    }
}

/// `latest`, or no tag at all.
fn pulls_always(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}
