//! Health rules of the repository: objects of custom kinds are judged by them, from the watch to the overview.

use std::time::Duration;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::discovery::ApiResource;
use serde_json::{Value, json};
use tutti::report::{Overview, Phase};

use crate::support::fleet::{Fleet, target};
use crate::support::live;
use crate::support::manifests::objects;

const BY_EXPRESSION: &str = "
apiVersion: tutti.dev/v1alpha1
kind: HealthRule
spec:
  failed: has(status.phase) && status.phase == 'Broken'
  current: has(status.phase) && status.phase == 'Up'
";

const BY_SCRIPT: &str = r#"
hs = {}
if obj.status ~= nil and obj.status.phase == "Broken" then
  hs.status = "Degraded"
  hs.message = "phase " .. obj.status.phase
  return hs
end
if obj.status ~= nil and obj.status.phase == "Up" then
  hs.status = "Healthy"
  return hs
end
hs.status = "Progressing"
hs.message = "Waiting for a phase"
return hs
"#;

fn definition(kind: &str, plural: &str) -> String {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
    .to_string()
}
