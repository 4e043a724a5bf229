//! Apps of four objects each.

use crate::support::manifests::objects;

pub fn app_path(app: usize) -> String {
    format!("apps/app-{app:04}/app.yaml")
}

pub fn objects_path(app: usize) -> String {
    format!("apps/app-{app:04}/objects/all.yaml")
}

pub fn app(app: usize) -> String {
    objects("default", &format!("app-{app:04}"))
}

/// ServiceAccount, Service, Deployment without pods, Ingress. The number is in the image.
pub fn four_objects(app: usize, number: usize) -> String {
    let name = format!("app-{app:04}");
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
