//! Example manifests.

pub const INSTANCE: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Instance
metadata: {name: main}
spec: {}
";

/// One ring over all clusters with the label `environment: prod`.
pub const RINGS: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Rings
metadata: {name: rings}
spec: {rings: [{name: prod, clusters: {matchLabels: {environment: prod}}}]}
";

pub fn cluster(name: &str) -> String {
    format!(
        "\
apiVersion: tutti.dev/v1alpha1
kind: Cluster
metadata: {{name: {name}, labels: {{environment: prod}}}}
spec: {{connection: {{kubeconfig: {{path: {name}.kubeconfig}}}}}}
"
    )
}

/// A python server, which renders to a Deployment and a Service.
pub fn component(name: &str, image: &str) -> String {
    format!(
        "\
apiVersion: tutti.dev/v1alpha1
kind: Component
metadata: {{name: {name}}}
spec:
  workloadType: Deployment
  developLanguage: python
  runType: server
  image: {image}
  port: 8080
"
    )
}

/// An Objects app with plain objects in its folder `objects/`.
pub fn objects_app(namespace: &str, name: &str) -> String {
    format!(
        "\
apiVersion: tutti.dev/v1alpha1
kind: Objects
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{files: [objects/*.yaml]}}
"
    )
}

pub fn config_map(namespace: &str, name: &str, value: &str) -> String {
    format!(
        "\
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: {namespace}}}
data: {{value: {value:?}}}
"
    )
}

/// A definition of a namespaced kind with one version and without a schema.
pub fn definition(group: &str, version: &str, kind: &str) -> String {
    let singular = kind.to_lowercase();
    format!(
        "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {singular}s.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: {singular}s, singular: {singular}, kind: {kind}}}
  versions:
    - name: {version}
      served: true
      storage: true
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
    )
}

pub fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n")
}

pub fn deployment(namespace: &str, name: &str, app: &str, image: &str) -> String {
    format!(
        "\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: {app}}}}}
  template:
    metadata: {{labels: {{app: {app}}}}}
    spec: {{containers: [{{name: main, image: {image:?}}}]}}
"
    )
}

/// A StorageClass that binds claims when a pod uses them.
pub const LATE_BINDING_CLASS: &str = "\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late}
provisioner: example.com/disks
allowVolumeExpansion: true
volumeBindingMode: WaitForFirstConsumer
";
