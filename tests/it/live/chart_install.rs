//! The chart on a real server, with Helm and the commands of `docs/install.md`: it creates the objects of `deploy/`, an upgrade leaves no gap,
//! and an uninstall removes all but what the page names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use live::LiveCluster;
use serde_json::{Value, json};

use super::charts::{remove_pointer, without_server_fields};
use super::installation::{
    NAMESPACE, REPLICAS, USER, assert_rolling_update, deployment, installed_objects, list_items, manifests,
    object_states_since, repository, tutti_object, until_available,
};
use super::support::LiveFixture;

/// Metadata that Helm and kubectl add to each object.
const TOOL_FIELDS: [&str; 4] = [
    "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
    "/metadata/annotations/meta.helm.sh~1release-name",
    "/metadata/annotations/meta.helm.sh~1release-namespace",
    "/metadata/labels/app.kubernetes.io~1managed-by",
];
/// Objects of every namespace.
const NAMESPACE_DEFAULTS: [&str; 2] = ["ConfigMap kube-root-ca.crt", "ServiceAccount default"];
/// Step 2 of the page, and the object of a leader: not part of the release.
const OTHER_OBJECTS: [&str; 2] = ["Lease tutti", "Secret tutti"];
/// A namespace beside that of the release.
const OTHER_NAMESPACE: &str = "default";

/// A release on a cluster.
struct InstalledChart {
    scene: LiveFixture,
    helm: PathBuf,
}

impl InstalledChart {
    fn cluster(&self) -> &'static LiveCluster {
        self.scene.cluster(1)
    }

    async fn kubectl(&self, arguments: &[&str]) -> String {
        self.cluster().kubectl(arguments).await.expect("kubectl")
    }

    /// A command of the page with these further values, in a checkout. Returns Helm's error.
    fn helm(&self, checkout: &Path, command: &str, values: &[&str]) -> Result<(), String> {
        let page = fs::read_to_string(repository().join("docs/install.md")).expect("a file");
        let (_, rest) = page.split_once(&format!("helm {command} ")).expect("a command of the page");
        let arguments = rest.split(['`', '\n']).next().expect("a line").split_whitespace();
        let mut helm = Command::new(&self.helm);
        helm.arg(command).args(arguments).args(values.iter().flat_map(|value| ["--set", *value]));
        helm.arg("--kubeconfig").arg(self.cluster().kubeconfig()).current_dir(checkout);
        for place in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            helm.env(place, self.scene.folder().join(place));
        }
        let ended = helm.output().expect("helm starts");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        if ended.status.success() { Ok(()) } else { Err(said) }
    }

    /// Helm refuses a command with these words, and no object changes.
    async fn assert_command_fails(&self, command: &str, value: &str, words: &str) {
        let before = self.namespace_objects().await;
        let said = self.helm(repository(), command, &[value]).expect_err("a refusal");
        assert!(said.contains("values don't meet the specifications of the schema"), "{said}");
        assert!(said.contains(words), "{said}");
        assert_eq!(self.namespace_objects().await, before);
    }

    /// All objects of each kind, except events.
    async fn list(&self, kinds: &[&str], of: &[&str]) -> Vec<Value> {
        let kinds = [&["api-resources", "--verbs=list", "-o", "name"], kinds].concat();
        let found = self.scene.eventually("a list of each kind", async || {
            // Other tests create and delete kinds meanwhile.
            let names = self.kubectl(&kinds).await.split_whitespace().collect::<Vec<_>>().join(",");
            let get = [&["get", &*names, "-o", "json"], of].concat();
            self.cluster().kubectl(&get).await.map_err(|error| error.to_string())
        });
        let mut found = list_items(&found.await);
        found.retain(|it| it["kind"] != "Event");
        found
    }

    async fn objects_in_namespace(&self) -> Vec<Value> {
        let mut found = self.list(&["--namespaced"], &["-n", NAMESPACE]).await;
        found.retain(|it| !NAMESPACE_DEFAULTS.contains(&&*name(it)));
        found
    }

    /// The objects of the namespace that no controller makes, without fields of servers and controllers.
    async fn namespace_objects(&self) -> BTreeMap<String, Value> {
        let mut found = self.objects_in_namespace().await;
        found.retain(|it| it["metadata"]["ownerReferences"].is_null() && it["kind"] != "Endpoints");
        found.iter().map(|it| (name(it), without_manager_fields(it))).collect()
    }

    /// All objects of the release, in any namespace or none.
    async fn release_objects(&self) -> BTreeSet<String> {
        let mut found = self.list(&[], &["-A", "-l", "app.kubernetes.io/managed-by=Helm"]).await;
        found.retain(|it| it["metadata"]["annotations"]["meta.helm.sh/release-name"] == "tutti");
        found.iter().map(name).collect()
    }
}

fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// An object without what differs between servers and managers.
fn without_manager_fields(object: &Value) -> Value {
    let mut object = object.clone();
    TOOL_FIELDS.iter().for_each(|pointer| remove_pointer(&mut object, pointer));
    without_server_fields(&object)
}

/// The objects of `deploy/`, without the namespace, which Helm creates itself.
async fn manifest_objects(cluster: &LiveCluster) -> BTreeMap<String, Value> {
    let mut found = installed_objects(cluster).await;
    found.retain(|it| it["kind"] != "Namespace");
    found.iter().map(|it| (name(it), without_manager_fields(it))).collect()
}

/// The rights of the pods' account, line by line.
async fn rights(cluster: &LiveCluster, namespace: &str) -> BTreeSet<String> {
    let list = ["auth", "can-i", "--list", "--as", USER, "-n", namespace];
    let said = cluster.kubectl(&list).await.expect("a table");
    said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// A checkout of a later version: another tag, and a value with an object that this version does not have.
fn next_version(folder: &Path) -> PathBuf {
    let (from, to) = (repository().join("charts/tutti"), folder.join("next/charts"));
    fs::create_dir_all(&to).expect("a folder");
    let copied = Command::new("cp").arg("-r").arg(from).arg(&to).status().expect("cp starts");
    assert!(copied.success());
    let edit = |file: &str, old: &str, new: &str| {
        let path = to.join("tutti").join(file);
        let text = fs::read_to_string(&path).expect("a file");
        let edited = text.replace(old, new);
        assert_ne!(text, edited, "{file}");
        fs::write(path, edited).expect("a file");
    };
    edit("Chart.yaml", concat!("ersion: ", env!("CARGO_PKG_VERSION"), "\n"), "ersion: 99.0.0\n");
    edit("values.yaml", "\nreplicas: 2\n", "\nreplicas: 2\n\nlater: {text: new}\n");
    edit("values.schema.json", r#""global": {"#, r#""later": {"type": "object"}, "global": {"#);
    let later = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: later}\ndata: {text: '{{ .Values.later.text }}'}\n";
    fs::write(to.join("tutti/templates/later.yaml"), later).expect("a file");
    folder.join("next")
}

#[tokio::test]
async fn chart_installs_upgrades_and_leaves_as_documented() {
    // Other tests install into the first and the last cluster.
    let Some(scene) = LiveFixture::new("chart-install", 3).await else { return };
    let helm = live::HelmPrograms::from_env().expect("the programs").expect("Helm is there").helm;
    let chart = InstalledChart { scene, helm };
    let (cluster, by_kubectl) = (chart.cluster(), chart.scene.cluster(2));
    chart.assert_command_fails("install", "replica=3", "additional properties 'replica' not allowed").await;
    let namespace = ["get", "namespace", NAMESPACE, "--ignore-not-found"];
    assert_eq!(chart.kubectl(&namespace).await, "");

    chart.helm(repository(), "install", &[]).expect("installed");
    until_available(cluster).await;
    let available = deployment(cluster).await["status"]["availableReplicas"].take();
    assert_eq!(available, REPLICAS);
    by_kubectl.kubectl(&["apply", "-f", &manifests().display().to_string()]).await.expect("applied");
    let expected = manifest_objects(by_kubectl).await;
    assert_eq!(manifest_objects(cluster).await, expected);
    let of_chart: BTreeSet<String> = expected.into_keys().collect();
    assert_eq!(chart.release_objects().await, of_chart);
    let release = |number: usize| format!("Secret sh.helm.release.v1.tutti.v{number}");
    let with = |more: &[String]| -> BTreeSet<String> { of_chart.iter().chain(more).cloned().collect() };
    let own = async || chart.namespace_objects().await.into_keys().collect::<BTreeSet<String>>();
    assert_eq!(own().await, with(&[release(1)]));

    // The account has the same rights as that of the manifests: it may take the Lease, and read nothing.
    for namespace in [NAMESPACE, OTHER_NAMESPACE] {
        let found = rights(cluster, namespace).await;
        assert_eq!(found, rights(by_kubectl, namespace).await);
        let of_lease = "leases.coordination.k8s.io [] [tutti] [get update]";
        assert_eq!(found.contains(of_lease), namespace == NAMESPACE, "{found:?}");
        assert!(!found.iter().any(|line| line.contains("secrets")), "{found:?}");
    }
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "tutti", "namespace": NAMESPACE},
    });
    let create = ["create", "--as", USER, "-f", "-"];
    cluster.kubectl_with_input(&create, &lease.to_string()).await.expect("a Lease");
    let secret = ["-n", NAMESPACE, "create", "secret", "generic", "tutti", "--from-literal=token=a"];
    chart.kubectl(&secret).await;

    // Another value, then another version with more values. Set values stay, and there are always enough pods.
    chart.assert_command_fails("upgrade", "replicas=many", "at '/replicas': got string, want integer").await;
    let next = next_version(&chart.scene.folder());
    let upgrades: [(&Path, &[&str]); 2] = [(repository(), &["resources.requests.cpu=200m"]), (&next, &[])];
    let budget = tutti_object(cluster, "policy/v1", "poddisruptionbudgets").await;
    for (checkout, values) in upgrades {
        let before = deployment(cluster).await;
        chart.helm(checkout, "upgrade", values).expect("upgraded");
        until_available(cluster).await;
        assert_rolling_update(cluster, &before).await;
        let container = deployment(cluster).await["spec"]["template"]["spec"]["containers"][0].take();
        assert_eq!(container["resources"]["requests"], json!({"cpu": "200m", "memory": "256Mi"}));
        let version = if checkout == next { "99.0.0" } else { env!("CARGO_PKG_VERSION") };
        assert_eq!(container["image"], format!("ghcr.io/tutti-dev/tutti:{version}"));
    }
    let budgets = object_states_since(cluster, "policy/v1", "poddisruptionbudgets", &budget).await;
    let healthy = |it: &Value, of: &str| it["status"][of].as_u64().unwrap_or_default();
    let counts: Vec<_> =
        budgets.iter().map(|it| ["currentHealthy", "desiredHealthy"].map(|of| healthy(it, of))).collect();
    assert!(
        !counts.is_empty() && counts.iter().all(|[current, desired]| *desired > 0 && current >= desired),
        "{counts:?}"
    );
    let later = "ConfigMap later".to_owned();
    let others = OTHER_OBJECTS.map(str::to_owned);
    let releases = [1, 2, 3].map(release);
    assert_eq!(own().await, with(&[&others[..], &releases, std::slice::from_ref(&later)].concat()));
    assert_eq!(chart.release_objects().await, with(&[later]));

    // By the page the namespace stays with its Secret and its Lease.
    chart.helm(repository(), "uninstall", &[]).expect("uninstalled");
    chart
        .scene
        .eventually("all but what others made is gone", async || {
            let left: BTreeSet<String> = chart.objects_in_namespace().await.iter().map(name).collect();
            if left == others.clone().into() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
    assert_eq!(chart.release_objects().await, BTreeSet::new());
    for cluster in [cluster, by_kubectl] {
        cluster.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]).await.expect("deleted");
    }
}
