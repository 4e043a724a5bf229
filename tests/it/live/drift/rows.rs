//! The drift table: edits of our objects, and the requests that each may cost.

use serde_json::{Value, json};

use super::super::support::{configmap, deployment};
use super::mutating_webhook::REWRITTEN_USER;

/// One line of the table. Each has its own object, as repeated repairs wait longer.
pub struct DriftRow {
    pub name: &'static str,
    /// As in paths: `configmaps`.
    pub kind: &'static str,
    pub edits: Vec<KubectlEdit>,
    /// tutti reads nothing before the last edit is made.
    pub before_tutti_reads: bool,
    /// The requests that follow, in order.
    pub expected_requests: &'static [&'static str],
}

/// One command of kubectl, without the namespace.
pub struct KubectlEdit {
    pub arguments: Vec<String>,
    pub input: String,
}

const PATCH: &str = "patch configmaps";
const PATCH_DEPLOYMENT: &str = "patch deployments.apps";

pub fn rows() -> Vec<DriftRow> {
    let image = |image: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}});
    let level = |level: Value| json!({"data": {"level": level}});
    let arguments = json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "args": ["b"]}]}}}});
    let no_managers = json!({"metadata": {"managedFields": [{}]}});
    let no_label = json!({"metadata": {"labels": {"tutti.dev/managed-by": null}}});
    let password = json!({"data": {"password": "dHdv"}});
    let selector = json!({"spec": {"selector": {"app": "other"}}});
    let one = |name, kind, edit, asks| DriftRow {
        name,
        kind,
        edits: vec![edit],
        before_tutti_reads: false,
        expected_requests: asks,
    };
    let two = |name, kind, edits, asks| DriftRow {
        name,
        kind,
        edits,
        before_tutti_reads: true,
        expected_requests: asks,
    };
    vec![
        one("edited", "configmaps", merge_patch(&level("debug".into())), &[PATCH]),
        one("taken-out", "configmaps", merge_patch(&level(Value::Null)), &[PATCH]),
        one("edited-image", "deployments", strategic_patch(&image("shop/web:9")), &[PATCH_DEPLOYMENT]),
        one("applied", "configmaps", server_side_apply("helm", configmap("", "level", "debug")), &[PATCH]),
        one(
            "applied-image",
            "deployments",
            server_side_apply("helm", web("shop/web:8")),
            &[PATCH_DEPLOYMENT],
        ),
        one(
            "scaled",
            "deployments",
            kubectl_command(&["scale", "deployments", NAME_PLACEHOLDER, "--replicas=2"]),
            &[PATCH_DEPLOYMENT],
        ),
        one("scaled-by-autoscaler", "deployments", create_autoscaler(), &[]),
        one("admitted", "configmaps", unrelated_edit("configmaps"), &[PATCH]),
        one("admitted-image", "deployments", unrelated_edit("deployments"), &[PATCH_DEPLOYMENT]),
        one("password", "secrets", merge_patch(&password), &["patch secrets"]),
        one("selector", "services", merge_patch(&selector), &["patch services"]),
        one("arguments", "deployments", strategic_patch(&arguments), &[PATCH_DEPLOYMENT]),
        one("applied-plainly", "configmaps", client_side_apply(configmap("", "level", "debug")), &[PATCH]),
        one(
            "applied-image-plainly",
            "deployments",
            client_side_apply(web("shop/web:8")),
            &[PATCH_DEPLOYMENT],
        ),
        one("applied-password-plainly", "secrets", client_side_apply(secret("two")), &["patch secrets"]),
        one("applied-selector-plainly", "services", client_side_apply(service("other")), &["patch services"]),
        two(
            "set-back",
            "configmaps",
            vec![merge_patch(&level("debug".into())), merge_patch(&level("info".into()))],
            &[PATCH],
        ),
        two(
            "set-back-image",
            "deployments",
            vec![strategic_patch(&image("shop/web:7")), strategic_patch(&image("shop/web:1.0"))],
            &[PATCH_DEPLOYMENT],
        ),
        one("cleared", "configmaps", merge_patch(&no_managers), &[PATCH]),
        one("cleared-fields", "deployments", merge_patch(&no_managers), &[PATCH_DEPLOYMENT]),
        one("unlabelled", "configmaps", merge_patch(&no_label), &["get configmaps", PATCH]),
        one(
            "unlabelled-pods",
            "deployments",
            merge_patch(&no_label),
            &["get deployments.apps", PATCH_DEPLOYMENT],
        ),
        one(
            "deleted",
            "configmaps",
            kubectl_command(&["delete", "configmaps", NAME_PLACEHOLDER]),
            &["get configmaps", PATCH],
        ),
        one(
            "deleted-pods",
            "deployments",
            kubectl_command(&["delete", "deployments", NAME_PLACEHOLDER]),
            &["get deployments.apps", PATCH_DEPLOYMENT],
        ),
        one(
            "noted",
            "deployments",
            kubectl_command(&["annotate", "deployments", NAME_PLACEHOLDER, "example.com/note=1"]),
            &[],
        ),
    ]
}

/// Replaced by the row's own name.
const NAME_PLACEHOLDER: &str = "<name>";

impl DriftRow {
    /// The object as in Git.
    pub fn object(&self) -> Value {
        let mut object = match self.kind {
            "configmaps" => configmap(NAME_PLACEHOLDER, "level", "info"),
            "deployments" => web("shop/web:1.0"),
            "secrets" => secret("one"),
            _ => service("web"),
        };
        object["metadata"]["name"] = json!(NAME_PLACEHOLDER);
        serde_json::from_str(&object.to_string().replace(NAME_PLACEHOLDER, self.name)).expect("JSON")
    }
}

impl KubectlEdit {
    pub fn for_row(&self, row: &DriftRow, namespace: &str) -> (Vec<String>, String) {
        let named = |text: &str| text.replace(NAME_PLACEHOLDER, row.name).replace("<kind>", row.kind);
        let arguments = self.arguments.iter().map(|it| named(it));
        (arguments.chain(["-n".to_owned(), namespace.to_owned()]).collect(), named(&self.input))
    }
}

fn web(image: &str) -> Value {
    let mut web = deployment(NAME_PLACEHOLDER, image, 1);
    web["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["a"]);
    web
}

fn secret(password: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {}, "stringData": {"password": password}})
}

fn service(app: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {},
        "spec": {"selector": {"app": app}, "ports": [{"port": 80}]}})
}

fn kubectl_command(words: &[&str]) -> KubectlEdit {
    KubectlEdit { arguments: words.iter().map(|word| (*word).to_owned()).collect(), input: String::new() }
}

fn merge_patch(patch: &Value) -> KubectlEdit {
    kubectl_command(&["patch", "<kind>", NAME_PLACEHOLDER, "--type=merge", "--patch", &patch.to_string()])
}

fn strategic_patch(patch: &Value) -> KubectlEdit {
    kubectl_command(&["patch", "<kind>", NAME_PLACEHOLDER, "--patch", &patch.to_string()])
}

fn server_side_apply(manager: &str, mut object: Value) -> KubectlEdit {
    object["metadata"]["name"] = json!(NAME_PLACEHOLDER);
    let manager = format!("--field-manager={manager}");
    KubectlEdit {
        input: object.to_string(),
        ..kubectl_command(&["apply", "--server-side", "--force-conflicts", &manager, "-f", "-"])
    }
}

/// A client-side apply: kubectl makes a patch, and stores the applied text.
fn client_side_apply(mut object: Value) -> KubectlEdit {
    object["metadata"]["name"] = json!(NAME_PLACEHOLDER);
    KubectlEdit { input: object.to_string(), ..kubectl_command(&["apply", "-f", "-"]) }
}

fn create_autoscaler() -> KubectlEdit {
    let patch = json!({"spec": {"replicas": 3}}).to_string();
    let subresource = "--subresource=scale";
    kubectl_command(&[
        "patch",
        "deployments",
        NAME_PLACEHOLDER,
        subresource,
        "--type=merge",
        "--patch",
        &patch,
        "--field-manager=keda-operator",
    ])
}

/// An edit of a foreign field; a webhook does the rest.
fn unrelated_edit(kind: &str) -> KubectlEdit {
    let manager = format!("--field-manager={REWRITTEN_USER}");
    kubectl_command(&["annotate", kind, NAME_PLACEHOLDER, "example.com/touched=yes", &manager])
}
