//! Random edits of a handful of objects, in Git and behind its back.

use serde_json::{Value, json};

use crate::chaos::draw::Draw;

/// What edits are of.
pub const OBJECTS: [(&str, &str); 4] =
    [("ConfigMap", "web"), ("Service", "web"), ("Deployment", "web"), ("Ingress", "web")];

/// The objects as Git has them.
pub struct State {
    objects: [Value; 4],
    count: usize,
}

impl State {
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
                    {"name": "app", "image": "web:0", "env": [{"name": "A", "value": "0"}]}]}}}}),
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta(), "spec": {
                "rules": [{"host": "web-0.example.com",
                           "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]}}),
        ];
        Self { objects, count: 0 }
    }

    pub fn manifests(&self) -> String {
        let texts: Vec<String> = self.objects.iter().map(Value::to_string).collect();
        texts.join("\n---\n")
    }

    /// A number that was never used.
    fn fresh(&mut self) -> usize {
        self.count += 1;
        self.count
    }

    /// One change in Git.
    pub fn edit(&mut self, draw: &mut Draw) {
        let number = self.fresh();
        let text = number.to_string();
        let [map, service, deployment, ingress] = &mut self.objects;
        let container = "/spec/template/spec/containers/0";
        match draw.within(0..9) {
            0 => map["data"][draw.of(&["a", "b", "c", "d"])] = json!(text),
            1 => {
                map["data"].as_object_mut().expect("a map").remove(draw.of(&["b", "c", "d"]));
            }
            2 => map["metadata"]["labels"]["number"] = json!(text),
            3 => {
                let ports = service["spec"]["ports"].as_array_mut().expect("ports");
                if ports.len() > 1 && draw.chance(50) {
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
                if env.len() > 1 && draw.chance(50) {
                    env.remove(0);
                } else {
                    env.push(json!({"name": format!("V{number}"), "value": text}));
                }
            }
            7 => deployment["spec"]["replicas"] = json!(number % 3),
            _ => ingress["spec"]["rules"][0]["host"] = json!(format!("web-{number}.example.com")),
        }
    }

    /// One change behind Git's back: kind, name, and a merge patch.
    pub fn live_edit(&mut self, draw: &mut Draw) -> (&'static str, &'static str, Value) {
        let text = format!("live-{}", self.fresh());
        let (object, patch) = match draw.within(0..7) {
            0 => (0, json!({"data": {draw.of(&["a", "b", "z"]): text}})),
            1 => (0, json!({"metadata": {"labels": {"live": text}}})),
            2 => (1, json!({"spec": {"selector": {"live": text}}})),
            3 => (1, json!({"metadata": {"annotations": {"live": text}}})),
            4 => (2, json!({"spec": {"template": {"metadata": {"annotations": {"live": text}}}}})),
            5 => (2, json!({"spec": {"replicas": draw.within(4..7)}})),
            _ => (3, json!({"spec": {"ingressClassName": text}})),
        };
        let (kind, name) = OBJECTS[object];
        (kind, name, patch)
    }
}
