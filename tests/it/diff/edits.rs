//! Random edits of a few objects, in Git and on the cluster.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::chaos::random::SeededRandom;

/// The objects that are edited.
pub const OBJECTS: [(&str, &str); 6] = [
    ("ConfigMap", "web"),
    ("Service", "web"),
    ("Deployment", "web"),
    ("Ingress", "web"),
    ("Secret", "web"),
    ("ConfigMap", OPTIONAL_OBJECT),
];

/// An object that is added and removed.
const OPTIONAL_OBJECT: &str = "guest";

/// The objects as in Git.
pub struct EditedObjects {
    objects: [Value; 6],
    has_guest: bool,
    count: usize,
}

impl EditedObjects {
    pub fn new(namespace: &str) -> Self {
        let meta = || json!({"name": "web", "namespace": namespace});
        let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
        let objects = [
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(), "data": {"a": "0", "b": "0"}}),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": meta(),
                   "spec": {"selector": {"app": "web"}, "ports": [{"name": "p0", "port": 80, "protocol": "TCP"}]}}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(), "spec": {
                "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                    {"name": "app", "image": "web:0", "args": ["--one", "--number=0"], "env": [{"name": "A", "value": "0"}]}]}}}}),
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta(), "spec": {
                "rules": [{"host": "web-0.example.com",
                           "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta(), "type": "Opaque",
                   "data": {"user": base64_text("me"), "password": base64_text("0")}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": OPTIONAL_OBJECT, "namespace": namespace},
                   "data": {"a": "0"}}),
        ];
        Self { objects, has_guest: true, count: 0 }
    }

    /// The desired objects by kind and name.
    pub fn desired(&self) -> impl Iterator<Item = ((&'static str, &'static str), &Value)> {
        let there = move |((_, name), _): &((&str, &str), &Value)| self.has_guest || *name != OPTIONAL_OBJECT;
        OBJECTS.into_iter().zip(&self.objects).filter(there)
    }

    pub fn manifests(&self) -> String {
        let texts: Vec<String> = self.desired().map(|(_, object)| object.to_string()).collect();
        texts.join("\n---\n")
    }

    /// A number that was not used before.
    fn next_number(&mut self) -> usize {
        self.count += 1;
        self.count
    }

    /// One change in Git.
    pub fn edit_in_git(&mut self, draw: &mut SeededRandom) {
        let number = self.next_number();
        let text = number.to_string();
        let [map, service, deployment, ingress, secret, guest] = &mut self.objects;
        let container = "/spec/template/spec/containers/0";
        match draw.in_range(0..13) {
            0 => map["data"][draw.choose(&["a", "b", "c", "d"])] = json!(text),
            1 => {
                map["data"].as_object_mut().expect("a map").remove(draw.choose(&["b", "c", "d"]));
            }
            2 => map["metadata"]["labels"]["number"] = json!(text),
            3 => {
                let ports = service["spec"]["ports"].as_array_mut().expect("ports");
                if ports.len() > 1 && draw.percent_chance(50) {
                    ports.pop();
                } else {
                    ports.push(
                        json!({"name": format!("p{number}"), "port": 8000 + number, "protocol": "TCP"}),
                    );
                }
            }
            4 => service["spec"]["selector"]["number"] = json!(text),
            5 => {
                deployment.pointer_mut(container).expect("a container")["image"] =
                    json!(format!("web:{number}"))
            }
            6 => {
                let env = deployment.pointer_mut(&format!("{container}/env")).and_then(Value::as_array_mut);
                let env = env.expect("variables");
                if env.len() > 1 && draw.percent_chance(50) {
                    env.remove(0);
                } else {
                    env.push(json!({"name": format!("V{number}"), "value": text}));
                }
            }
            7 => deployment["spec"]["replicas"] = json!(number % 3),
            8 => secret["data"][draw.choose(&["user", "password", "other"])] = json!(base64_text(&text)),
            9 => {
                // No manager owns an item of it alone.
                let arguments = deployment.pointer_mut(&format!("{container}/args"));
                let arguments = arguments.and_then(Value::as_array_mut).expect("arguments");
                if arguments.len() > 1 && draw.percent_chance(50) {
                    arguments.remove(0);
                } else {
                    arguments.push(json!(format!("--number={number}")));
                }
            }
            10 => self.has_guest = !self.has_guest,
            11 => guest["data"]["a"] = json!(text),
            _ => ingress["spec"]["rules"][0]["host"] = json!(format!("web-{number}.example.com")),
        }
    }

    /// One change on the cluster: kind, name, and merge patch.
    pub fn edit_on_cluster(&mut self, draw: &mut SeededRandom) -> (&'static str, &'static str, Value) {
        let text = format!("live-{}", self.next_number());
        let (object, patch) = match draw.in_range(0..9) {
            0 => (0, json!({"data": {draw.choose(&["a", "b", "z"]): text}})),
            1 => (0, json!({"metadata": {"labels": {"live": text}}})),
            2 => (1, json!({"spec": {"selector": {"live": text}}})),
            3 => (1, json!({"metadata": {"annotations": {"live": text}}})),
            4 => (2, json!({"spec": {"template": {"metadata": {"annotations": {"live": text}}}}})),
            5 => (2, json!({"spec": {"replicas": draw.in_range(4..7)}})),
            6 => (4, json!({"data": {draw.choose(&["user", "password", "theirs"]): base64_text(&text)}})),
            7 => {
                let mut containers = self.objects[2]["spec"]["template"]["spec"]["containers"].clone();
                containers[0]["args"] = json!(["--one", text]);
                (2, json!({"spec": {"template": {"spec": {"containers": containers}}}}))
            }
            _ => (3, json!({"spec": {"ingressClassName": text}})),
        };
        let (kind, name) = OBJECTS[object];
        (kind, name, patch)
    }
}

fn base64_text(text: &str) -> String {
    STANDARD.encode(text)
}

/// Paths of `wanted` that `live` lacks. A server may add fields, but no items.
pub fn missing_paths(wanted: &Value, live: &Value) -> Vec<String> {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            let of = |(key, wanted): (&String, &Value)| {
                let missing = missing_paths(wanted, live.get(key).unwrap_or(&Value::Null));
                missing.into_iter().map(|path| format!("/{key}{path}")).collect::<Vec<_>>()
            };
            wanted.iter().flat_map(of).collect()
        }
        (Value::Array(wanted), Value::Array(live)) if wanted.len() == live.len() => {
            let of = |(index, (wanted, live)): (usize, (&Value, &Value))| {
                let missing = missing_paths(wanted, live);
                missing.into_iter().map(|path| format!("/{index}{path}")).collect::<Vec<_>>()
            };
            wanted.iter().zip(live).enumerate().flat_map(of).collect()
        }
        (wanted, live) if wanted == live => Vec::new(),
        (wanted, live) => vec![format!(": {live}, not {wanted}")],
    }
}

/// A Secret as a diff shows it: whether values are equal, and never the values.
pub fn masked_secret(object: &Value, beside: &Value, word: &str) -> Value {
    let mut object = object.clone();
    if object["kind"] == "Secret"
        && let Some(data) = object.get_mut("data").and_then(Value::as_object_mut)
    {
        for (key, value) in data {
            let text = if beside["data"].get(key) == Some(value) { "***" } else { word };
            *value = json!(text);
        }
    }
    object
}
