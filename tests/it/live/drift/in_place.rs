//! Somebody changes a key by which a server merges a list, or another variant of a choice: ours is restored, and the
//! replacement is removed. Each list of the built-in schemas has a row.

use std::collections::BTreeSet;
use std::time::Duration;

use live::LiveCluster;
use serde_json::{Map, Value, json};

use super::super::support::{LiveFixture, print_uncaptured};
use super::table::{AuditedCluster, is_about, request_names};
use super::until_restored;

const ROWS: &str = include_str!("../../../fixtures/foreign_edits/rows.yaml");
const DEFINITION: &str = include_str!("../../../fixtures/foreign_edits/definition.yaml");

/// Long enough for all further requests.
const QUIET_TIME: Duration = Duration::from_secs(5);

/// Kind, name in paths, API path, whether it is namespaced, and whether only its metadata is watched.
const KINDS: [(&str, &str, &str, bool, bool); 14] = [
    ("Account", "accounts", "apis/example.com/v1", true, false),
    ("DaemonSet", "daemonsets", "apis/apps/v1", true, false),
    ("Deployment", "deployments", "apis/apps/v1", true, false),
    ("Ingress", "ingresses", "apis/networking.k8s.io/v1", true, false),
    ("MutatingAdmissionPolicy", "mutatingadmissionpolicies", ADMISSION, false, true),
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", ADMISSION, false, true),
    ("PodDisruptionBudget", "poddisruptionbudgets", "apis/policy/v1", true, false),
    (
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        "apis/flowcontrol.apiserver.k8s.io/v1",
        false,
        false,
    ),
    ("Service", "services", "api/v1", true, false),
    ("ServiceAccount", "serviceaccounts", "api/v1", true, true),
    ("StatefulSet", "statefulsets", "apis/apps/v1", true, false),
    ("ValidatingAdmissionPolicy", "validatingadmissionpolicies", ADMISSION, false, true),
    ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", ADMISSION, false, true),
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", ADMISSION, false, true),
];

const ADMISSION: &str = "apis/admissionregistration.k8s.io/v1";

/// Lists of the schemas without a row, with the reason.
const LISTS_WITHOUT_ROW: [(&str, &str); 5] = [
    ("CSINodeSpec.drivers", "kubelets write it"),
    ("JSONSchemaProps.x-kubernetes-validations", "it lies in `versions`, which a definition says as a whole"),
    ("ObjectMeta.ownerReferences", "Git says no owners"),
    ("PodSpec.ephemeralContainers", "not in templates of pods"),
    ("ServiceSpec.ports", "has rows; of the load balancer's status there are none"),
];

struct ListDriftRow {
    schema_name: String,
    is_list: bool,
    /// The oldest minor version that accepts it.
    oldest_version: u64,
    kind: &'static (&'static str, &'static str, &'static str, bool, bool),
    name: String,
    object: Value,
    /// A JSON patch.
    edit: Vec<Value>,
    /// Verbs, with the status of refused requests.
    expected_requests: Vec<String>,
}

fn merge_into(into: &mut Value, more: &Value) {
    for (name, value) in more.as_object().into_iter().flatten() {
        into[name] = value.clone();
    }
}

fn rows(scene: &str) -> Vec<ListDriftRow> {
    let all: Vec<Value> = serde_yaml::from_str(ROWS).expect("YAML");
    all.into_iter().enumerate().map(|(index, row)| self::row(scene, index, &row)).collect()
}

fn row(scene: &str, index: usize, row: &Value) -> ListDriftRow {
    let (is_list, of) = match (row["list"].as_str(), row["choice"].as_str()) {
        (Some(list), None) => (true, list),
        (None, Some(choice)) => (false, choice),
        _ => panic!("a list or a choice: {row}"),
    };
    let (mut object, prefix) = match row.get("object") {
        Some(object) => (object.clone(), ""),
        None => {
            let mut pods = json!({"containers": [{"name": "main", "image": "web:1"}]});
            merge_into(&mut pods["containers"][0], &row["pod"]);
            merge_into(&mut pods, &row["more"]);
            let labels = json!({"a": "b"});
            let spec = json!({"replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pods}});
            (json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}), "spec/template/spec/")
        }
    };
    let kind = KINDS.iter().find(|(kind, ..)| object["kind"] == *kind).expect("a kind of the table");
    let name = format!("{scene}-{index}");
    object["metadata"] = json!({"name": name});
    let path = |path: &str| format!("/{prefix}{path}");
    let none = Map::new();
    let of_field = |field: &str| row[field].as_object().unwrap_or(&none).clone();
    let mut edit: Vec<Value> = Vec::new();
    for (place, value) in of_field("edit") {
        edit.push(json!({"op": "replace", "path": path(&place), "value": value}));
    }
    for (place, change) in of_field("switch") {
        let field = |index: usize| path(&format!("{place}/{}", change[index].as_str().expect("a field")));
        edit.push(json!({"op": "remove", "path": field(0)}));
        edit.push(json!({"op": "add", "path": field(1), "value": change[2]}));
    }
    let usual: &[&str] = if kind.4 { &["get", "patch", "patch"] } else { &["patch", "patch"] };
    let asks = match row["asks"].as_array() {
        Some(asks) => asks.iter().map(|it| it.as_str().expect("words").to_owned()).collect(),
        None => usual.iter().map(|it| (*it).to_owned()).collect(),
    };
    let since = row["since"].as_u64().unwrap_or_default();
    ListDriftRow {
        schema_name: of.to_owned(),
        is_list,
        oldest_version: since,
        kind,
        name,
        object,
        edit,
        expected_requests: asks,
    }
}

impl ListDriftRow {
    fn is_on(&self, cluster: &LiveCluster) -> bool {
        let minor = cluster.version().split('.').nth(1).and_then(|minor| minor.parse().ok());
        minor.is_some_and(|minor: u64| minor >= self.oldest_version)
    }

    fn path(&self, scene: &LiveFixture) -> String {
        let (_, plural, served, is_namespaced, _) = self.kind;
        let namespace = if *is_namespaced { format!("namespaces/{}/", scene.name()) } else { String::new() };
        format!("/{served}/{namespace}{plural}/{}", self.name)
    }

    async fn edit(&self, scene: &LiveFixture, cluster: &LiveCluster) {
        let patch = Value::from(self.edit.clone()).to_string();
        let kind = self.kind.1;
        let mut arguments = vec!["patch", kind, &self.name, "--type=json", "--patch", &patch];
        if self.kind.3 {
            arguments.extend(["-n", scene.name()]);
        }
        let done = cluster.kubectl(&arguments).await;
        done.unwrap_or_else(|error| panic!("{} on {}: {error}", self.schema_name, cluster.version()));
    }
}

/// The fields that Git sets, with what the server made of them.
fn spec_and_metadata(object: &Value) -> Value {
    let mut object = object.clone();
    let map = object.as_object_mut().expect("an object");
    let labels = map["metadata"]["labels"].clone();
    map.retain(|name, _| !["metadata", "status"].contains(&name.as_str()));
    json!([object, labels])
}

#[test]
fn every_keyed_list_has_a_row() {
    let packed = &include_bytes!("../../../../crates/sandbox/schema/kubernetes-1.36.json.gz")[..];
    let schema: Value = serde_json::from_reader(flate2::read::GzDecoder::new(packed)).expect("a schema");
    let rows = rows("keys");
    let known: BTreeSet<&str> = rows.iter().filter(|row| row.is_list).map(|row| &*row.schema_name).collect();
    let mut missing = BTreeSet::new();
    let (mut lists, mut of_status) = (0, 0);
    for (name, definition) in schema["definitions"].as_object().expect("definitions") {
        let kind = name.rsplit('.').next().unwrap_or(name);
        for (field, schema) in definition["properties"].as_object().into_iter().flatten() {
            if schema["x-kubernetes-list-type"] != "map" {
                continue;
            }
            lists += 1;
            let is_of_container = kind == "EphemeralContainer";
            if name.contains("Status") || is_of_container {
                of_status += 1;
                continue;
            }
            let list = format!("{kind}.{field}");
            if !known.contains(&*list) && !LISTS_WITHOUT_ROW.iter().any(|(known, _)| *known == list) {
                missing.insert(list);
            }
        }
    }
    assert!(missing.is_empty(), "no row: {missing:?}");
    let volume =
        schema["definitions"]["io.k8s.api.core.v1.Volume"]["properties"].as_object().expect("fields");
    let is_source = |field: &&String| *field != "name";
    for source in volume.keys().filter(is_source) {
        assert!(
            rows.iter().any(|row| row.schema_name == format!("Volume.{source}")),
            "no row: volume {source}"
        );
    }
    assert!(lists > 50 && of_status > 20, "{lists} lists, {of_status} of statuses");
}

#[tokio::test]
async fn replaced_list_items_are_restored_within_their_requests() {
    let Some(scene) = LiveFixture::new("drift-keys", 4).await else { return };
    let rows = rows(scene.name());
    let clusters = [
        AuditedCluster::new(&scene, scene.cluster(0)).await,
        AuditedCluster::new(&scene, scene.cluster(3)).await,
    ];
    let definition: Value = serde_yaml::from_str(DEFINITION).expect("YAML");
    let is_on_all = |row: &&ListDriftRow| clusters.iter().all(|counted| row.is_on(counted.cluster));
    let objects: Vec<Value> =
        [definition].into_iter().chain(rows.iter().filter(is_on_all).map(|row| row.object.clone())).collect();
    scene.write_app("rows", &objects);
    // Objects that the older cluster does not know are applied to the newer one only.
    let newer: Vec<Value> = rows.iter().filter(|row| !is_on_all(row)).map(|row| row.object.clone()).collect();
    scene.write_app("newer", &newer);
    scene.write_spec(
        "newer",
        &[&format!("placement: {{clusters: {{names: [{}]}}}}", clusters[0].cluster.name())],
    );
    let commit = scene.worktree.publish("first");
    scene.start(&["--cluster", &clusters[0].cluster_option, "--cluster", &clusters[1].cluster_option]).await;
    scene.until_succeeded(&commit).await;
    tokio::time::sleep(QUIET_TIME).await;

    let mut wrong = Vec::new();
    for counted in &clusters {
        let cluster = counted.cluster;
        let on_it: Vec<&ListDriftRow> = rows.iter().filter(|row| row.is_on(cluster)).collect();
        let asked_before = counted.counted_requests().len();
        let mut before = Vec::new();
        for row in &on_it {
            before.push(cluster.get(&row.path(&scene)).await.expect("an object"));
            row.edit(&scene, cluster).await;
        }
        for (row, before) in on_it.iter().zip(&before) {
            let what =
                format!("{} on {}, by {}", row.schema_name, cluster.version(), Value::from(row.edit.clone()));
            let get = async || cluster.get(&row.path(&scene)).await.map_err(|error| error.to_string());
            until_restored(&scene, &what, before, spec_and_metadata, get).await;
        }
        tokio::time::sleep(QUIET_TIME).await;
        let mut asked = counted.counted_requests().split_off(asked_before);
        let mut lost = 0;
        for row in &on_it {
            let (about, others) = asked.into_iter().partition(|it| is_about(it, row.kind.1, &row.name));
            asked = others;
            let verbs: Vec<String> = request_names(&about)
                .iter()
                .map(|it| {
                    let words: Vec<&str> = it.split(' ').collect();
                    [&words[..1], &words[2..]].concat().join(" ")
                })
                .collect();
            // A controller wrote it between read and write: one more round.
            let rest = verbs.strip_prefix(&["patch 422".to_owned(), "get".to_owned()][..]);
            lost += usize::from(verbs != row.expected_requests && rest == Some(&row.expected_requests[..]));
            if verbs != row.expected_requests && rest != Some(&row.expected_requests[..]) {
                wrong.push(format!(
                    "{} on {}: {verbs:?}, not {:?}",
                    row.schema_name,
                    cluster.version(),
                    row.expected_requests
                ));
            }
        }
        assert!(lost * 2 < on_it.len(), "{lost} of {} needed a round more", on_it.len());
        let lists = on_it.iter().filter(|row| row.is_list).count();
        print_uncaptured(&format!(
            "drift of keys and choices on Kubernetes {}: {lists} rows of lists, {} of choices, {lost} with a round more",
            cluster.version(),
            on_it.len() - lists
        ));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
