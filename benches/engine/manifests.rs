//! Apps of four objects each.

use crate::support::manifests::objects_app;

pub fn app_path(app: usize) -> String {
    format!("apps/app-{app:04}/app.yaml")
}

pub fn objects_path(app: usize) -> String {
    format!("apps/app-{app:04}/objects/all.yaml")
}

pub fn app(app: usize) -> String {
    objects_app("default", &format!("app-{app:04}"))
}

/// Of an app, `times` over; the number is in the images.
pub fn four_objects_each(app: usize, times: usize, number: usize) -> String {
    let name = |time| if time == 0 { format!("app-{app:04}") } else { format!("app-{app:04}-{time}") };
    (0..times).map(|time| four_objects_of(&name(time), number)).collect::<Vec<_>>().join("---\n")
}

pub fn four_objects(app: usize, number: usize) -> String {
    four_objects_each(app, 1, number)
}

/// ServiceAccount, Service, Deployment without pods, Ingress.
fn four_objects_of(name: &str, number: usize) -> String {
    format!(
        "apiVersion: v1
kind: ServiceAccount
metadata: {{name: {name}}}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec: {{selector: {{app: {name}}}, ports: [{{name: http, port: 80, protocol: TCP}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: 0
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      serviceAccountName: {name}
      containers: [{{name: app, image: 'registry.example.com/{name}:{number}', ports: [{{containerPort: 8080}}]}}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {name}}}
spec:
  rules:
  - host: {name}.example.com
    http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: {name}, port: {{number: 80}}}}}}}}]}}
"
    )
}
