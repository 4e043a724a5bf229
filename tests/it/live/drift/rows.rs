//! The drift table: edits of our objects, and the requests that each may cost.

use serde_json::{Value, json};

use super::super::support::{configmap, deployment};
use super::admission::SOMEBODY;

/// One line of the table. Each has its own object, as repeated repairs wait longer.
pub struct Row {
    pub name: &'static str,
    /// As in paths: `configmaps`.
    pub kind: &'static str,
    pub edits: Vec<Edit>,
    /// tutti reads nothing before the last edit is made.
    pub at_once: bool,
    /// The requests that follow, in order.
    pub asks: &'static [&'static str],
}

/// One command of kubectl, without the namespace.
pub struct Edit {
    pub arguments: Vec<String>,
    pub input: String,
}

const PATCH: &str = "patch configmaps";
const PATCH_DEPLOYMENT: &str = "patch deployments.apps";

pub fn rows() -> Vec<Row> {
    let image = |image: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}});
    let level = |level: Value| json!({"data": {"level": level}});
    let arguments = json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "args": ["b"]}]}}}});
    let no_managers = json!({"metadata": {"managedFields": [{}]}});
    let no_label = json!({"metadata": {"labels": {"tutti.dev/managed-by": null}}});
    let password = json!({"data": {"password": "dHdv"}});
    let selector = json!({"spec": {"selector": {"app": "other"}}});
    let one = |name, kind, edit, asks| Row { name, kind, edits: vec![edit], at_once: false, asks };
    let two = |name, kind, edits, asks| Row { name, kind, edits, at_once: true, asks };
    vec![
        one("edited", "configmaps", merge(&level("debug".into())), &[PATCH]),
        one("taken-out", "configmaps", merge(&level(Value::Null)), &[PATCH]),
        one("edited-image", "deployments", strategic(&image("shop/web:9")), &[PATCH_DEPLOYMENT]),
        one("applied", "configmaps", apply("helm", configmap("", "level", "debug")), &[PATCH]),
        one("applied-image", "deployments", apply("helm", web("shop/web:8")), &[PATCH_DEPLOYMENT]),
        one(
            "scaled",
            "deployments",
            words(&["scale", "deployments", NAME, "--replicas=2"]),
            &[PATCH_DEPLOYMENT],
        ),
        one("scaled-by-autoscaler", "deployments", autoscale(), &[]),
        one("admitted", "configmaps", touch("configmaps"), &[PATCH]),
        one("admitted-image", "deployments", touch("deployments"), &[PATCH_DEPLOYMENT]),
        one("password", "secrets", merge(&password), &["patch secrets"]),
        one("selector", "services", merge(&selector), &["patch services"]),
        one("arguments", "deployments", strategic(&arguments), &[PATCH_DEPLOYMENT]),
        one("applied-plainly", "configmaps", plainly(configmap("", "level", "debug")), &[PATCH]),
        one("applied-image-plainly", "deployments", plainly(web("shop/web:8")), &[PATCH_DEPLOYMENT]),
        one("applied-password-plainly", "secrets", plainly(secret("two")), &["patch secrets"]),
        one("applied-selector-plainly", "services", plainly(service("other")), &["patch services"]),
        two(
            "set-back",
            "configmaps",
            vec![merge(&level("debug".into())), merge(&level("info".into()))],
            &[PATCH],
        ),
        two(
            "set-back-image",
            "deployments",
            vec![strategic(&image("shop/web:7")), strategic(&image("shop/web:1.0"))],
            &[PATCH_DEPLOYMENT],
        ),
        one("cleared", "configmaps", merge(&no_managers), &[PATCH]),
        one("cleared-fields", "deployments", merge(&no_managers), &[PATCH_DEPLOYMENT]),
        one("unlabelled", "configmaps", merge(&no_label), &["get configmaps", PATCH]),
        one("unlabelled-pods", "deployments", merge(&no_label), &["get deployments.apps", PATCH_DEPLOYMENT]),
        one("deleted", "configmaps", words(&["delete", "configmaps", NAME]), &["get configmaps", PATCH]),
        one(
            "deleted-pods",
            "deployments",
            words(&["delete", "deployments", NAME]),
            &["get deployments.apps", PATCH_DEPLOYMENT],
        ),
        one("noted", "deployments", words(&["annotate", "deployments", NAME, "example.com/note=1"]), &[]),
    ]
}

/// Replaced by the row's own name.
const NAME: &str = "<name>";

impl Row {
    /// The object as in Git.
    pub fn object(&self) -> Value {
        let mut object = match self.kind {
            "configmaps" => configmap(NAME, "level", "info"),
            "deployments" => web("shop/web:1.0"),
            "secrets" => secret("one"),
            _ => service("web"),
        };
        object["metadata"]["name"] = json!(NAME);
        serde_json::from_str(&object.to_string().replace(NAME, self.name)).expect("JSON")
    }
}

impl Edit {
    pub fn of(&self, row: &Row, namespace: &str) -> (Vec<String>, String) {
        let named = |text: &str| text.replace(NAME, row.name).replace("<kind>", row.kind);
        let arguments = self.arguments.iter().map(|it| named(it));
        (arguments.chain(["-n".to_owned(), namespace.to_owned()]).collect(), named(&self.input))
    }
}

fn web(image: &str) -> Value {
    let mut web = deployment(NAME, image, 1);
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

fn words(words: &[&str]) -> Edit {
    Edit { arguments: words.iter().map(|word| (*word).to_owned()).collect(), input: String::new() }
}

fn merge(patch: &Value) -> Edit {
    words(&["patch", "<kind>", NAME, "--type=merge", "--patch", &patch.to_string()])
}

fn strategic(patch: &Value) -> Edit {
    words(&["patch", "<kind>", NAME, "--patch", &patch.to_string()])
}

fn apply(manager: &str, mut object: Value) -> Edit {
    object["metadata"]["name"] = json!(NAME);
    let manager = format!("--field-manager={manager}");
    Edit {
        input: object.to_string(),
        ..words(&["apply", "--server-side", "--force-conflicts", &manager, "-f", "-"])
    }
}

/// A client-side apply: kubectl makes a patch, and stores the applied text.
fn plainly(mut object: Value) -> Edit {
    object["metadata"]["name"] = json!(NAME);
    Edit { input: object.to_string(), ..words(&["apply", "-f", "-"]) }
}

fn autoscale() -> Edit {
    let patch = json!({"spec": {"replicas": 3}}).to_string();
    let subresource = "--subresource=scale";
    words(&[
        "patch",
        "deployments",
        NAME,
        subresource,
        "--type=merge",
        "--patch",
        &patch,
        "--field-manager=keda-operator",
    ])
}

/// An edit of a foreign field; a webhook does the rest.
fn touch(kind: &str) -> Edit {
    let manager = format!("--field-manager={SOMEBODY}");
    words(&["annotate", kind, NAME, "example.com/touched=yes", &manager])
}
