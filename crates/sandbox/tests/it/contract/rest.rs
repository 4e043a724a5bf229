//! Create, read and change: the basics of every resource.

use http::Method;
use serde_json::{Value, json};

use super::probe::{ContractProbe, MERGE_PATCH};

const CORE: &str = "/api/v1";

fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"x": "1"}})
}

pub async fn a_created_object_is_answered_whole(probe: &mut ContractProbe) {
    let path = probe.namespaced_path("/api/v1", "configmaps");
    probe
        .post(
            &format!("{path}?fieldManager=tester"),
            json!({"metadata": {"name": "one", "labels": {"a": "1"}}, "data": {"x": "1"}}),
        )
        .await;
    probe.get(&format!("{path}/one")).await;
}

pub async fn the_server_decides_about_metadata_of_a_new_object(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    probe
        .post(
            &path,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "name": "one", "uid": "00000000-0000-0000-0000-000000000001",
                "creationTimestamp": "2001-01-01T00:00:00Z", "deletionTimestamp": "2001-01-01T00:00:00Z",
                "deletionGracePeriodSeconds": 7, "generation": 12, "selfLink": "/nowhere",
                "labels": {}, "annotations": null, "finalizers": [], "managedFields": [],
                "ownerReferences": []}}),
        )
        .await;
    let revised = json!({"metadata": {"name": "two", "resourceVersion": "12"}});
    probe.post(&path, revised).await;
    let zero = json!({"metadata": {"name": "three", "resourceVersion": "0"}});
    probe.post(&path, zero).await;
}

pub async fn managers_are_named_by_parameter_or_agent(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    for (number, agent) in ["", "curl", "kubectl/v1.36 (linux) x", "a b/c", "/x"].into_iter().enumerate() {
        let headers = [("content-type", "application/json"), ("user-agent", agent)];
        let body = config_map(&format!("agent-{number}")).to_string();
        let made = probe.send(Method::POST, &path, &headers, &body).await;
        probe.start_recording().record_value(
            &format!("manager of {agent:?}"),
            &made.body["metadata"]["managedFields"][0]["manager"],
        );
    }
    let long = "m".repeat(129);
    for (number, manager) in ["", "a%20b", "%C3%A4", "a%00b", "a%0Ab", &long].into_iter().enumerate() {
        let at = format!("{path}?fieldManager={manager}");
        probe.post(&at, config_map(&format!("named-{number}"))).await;
    }
    let at = format!("{path}/agent-0?fieldManager={long}");
    probe.put(&at, config_map("agent-0")).await;
    probe.patch(MERGE_PATCH, &at, json!({"data": {"y": "2"}})).await;
}

pub async fn a_second_create_already_exists(probe: &mut ContractProbe) {
    let path = probe.namespaced_path("/api/v1", "configmaps");
    probe.stop_recording().post(&path, json!({"metadata": {"name": "one"}})).await;
    probe.start_recording().post(&path, json!({"metadata": {"name": "one"}})).await;
    let namespace = probe.namespace().to_owned();
    probe.post("/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
    let roles = probe.namespaced_path("/apis/rbac.authorization.k8s.io/v1", "roles");
    probe.stop_recording().post(&roles, json!({"metadata": {"name": "one"}})).await;
    probe.start_recording().post(&roles, json!({"metadata": {"name": "one"}})).await;
}

pub async fn a_missing_object_is_not_found(probe: &mut ContractProbe) {
    probe.get(&probe.namespaced_path("/api/v1", "configmaps/none")).await;
    probe.get(&probe.namespaced_path("/apis/apps/v1", "deployments/none")).await;
}

pub async fn missing_objects_by_every_verb(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps/none");
    probe.put(&path, config_map("none")).await;
    probe.patch(MERGE_PATCH, &path, json!({})).await;
    probe.delete(&path, None).await;
    probe.get("/api/v1/namespaces/no-such-namespace").await;
    probe.get("/api/v1/namespaces/no-such-namespace/secrets/none").await;
    probe.get("/api/v1/namespaces/no-such-namespace/secrets").await;
    probe.delete("/api/v1/namespaces/no-such-namespace", None).await;
    probe.get("/api/v1/nodes/none").await;
    probe.get(&probe.namespaced_path("/apis/apps/v1", "deployments/none/scale")).await;
    probe.get(&probe.namespaced_path("/apis/apps/v1", "deployments/none/status")).await;
    probe.get(&probe.namespaced_path(CORE, "pods/none/log")).await;
    let scale = probe.namespaced_path("/apis/apps/v1", "deployments/none/scale");
    probe.put(&scale, json!({"metadata": {"name": "none"}, "spec": {"replicas": 1}})).await;
    let status = probe.namespaced_path("/apis/apps/v1", "deployments/none/status");
    probe.patch(MERGE_PATCH, &status, json!({"status": {"replicas": 1}})).await;
}

/// Responses of an API server without a kubelet.
pub async fn logs_that_no_server_gives(probe: &mut ContractProbe) {
    let pods = probe.namespaced_path(CORE, "pods");
    let nowhere = json!({"no-such": "node"});
    let (first, main, side) = (
        json!({"name": "first", "image": "a:1"}),
        json!({"name": "main", "image": "b:1"}),
        json!({"name": "side", "image": "c:1"}),
    );
    for (name, containers) in [("one", json!([main])), ("two", json!([main, side]))] {
        let spec = json!({"nodeSelector": nowhere, "initContainers": [first], "containers": containers});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
        probe.stop_recording().post(&pods, pod).await;
    }
    let probe = probe.start_recording();
    for query in [
        "one/log",
        "one/log?container=first&previous=true&tailLines=1&limitBytes=10",
        "one/log?container=other",
        "two/log",
        "one/log?tailLines=-1",
        "one/log?tailLines=-1&limitBytes=0",
        "none/log?tailLines=-1",
        "one/log?tailLines=some",
    ] {
        probe.get(&format!("{pods}/{query}")).await;
    }
}

/// Kinds with a minimal body that each accepts.
fn minimal_objects() -> Vec<(&'static str, &'static str, Value)> {
    let template = json!({"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]}});
    let workload = json!({"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    let lease = json!({"holderIdentity": "me"});
    vec![
        ("/api/v1", "configmaps", json!({})),
        ("/api/v1", "secrets", json!({})),
        ("/api/v1", "serviceaccounts", json!({})),
        ("/api/v1", "services", json!({"spec": {"ports": [{"port": 80}]}})),
        ("/api/v1", "endpoints", json!({})),
        ("/api/v1", "limitranges", json!({"spec": {"limits": []}})),
        ("/api/v1", "resourcequotas", json!({"spec": {}})),
        ("/apis/apps/v1", "deployments", json!({"spec": workload})),
        ("/apis/apps/v1", "replicasets", json!({"spec": workload})),
        (
            "/apis/batch/v1",
            "cronjobs",
            json!({"spec": {"schedule": "1 1 1 1 *", "suspend": true,
            "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never",
                "containers": [{"name": "main", "image": "nginx"}]}}}}}}),
        ),
        ("/apis/networking.k8s.io/v1", "networkpolicies", json!({"spec": {"podSelector": {}}})),
        (
            "/apis/networking.k8s.io/v1",
            "ingresses",
            json!({"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}}),
        ),
        (
            "/apis/policy/v1",
            "poddisruptionbudgets",
            json!({"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
        ),
        ("/apis/rbac.authorization.k8s.io/v1", "roles", json!({"rules": []})),
        (
            "/apis/rbac.authorization.k8s.io/v1",
            "rolebindings",
            json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}}),
        ),
        ("/apis/coordination.k8s.io/v1", "leases", json!({"spec": lease})),
        ("/apis/discovery.k8s.io/v1", "endpointslices", json!({"addressType": "IPv4", "endpoints": []})),
    ]
}

pub async fn a_put_creates_objects_of_some_kinds_only(probe: &mut ContractProbe) {
    for (group_version, plural, mut body) in minimal_objects() {
        body["metadata"] = json!({"name": "put"});
        let path = probe.namespaced_path(group_version, &format!("{plural}/put"));
        let answer = probe.stop_recording().put(&path, body).await;
        probe.start_recording().record_value(plural, &json!([answer.code, answer.body["message"]]));
    }
}

pub async fn a_put_without_a_revision_is_unconditional_for_most_kinds(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    probe.stop_recording().post(&path, config_map("one")).await;
    probe
        .start_recording()
        .put(&format!("{path}/one"), json!({"metadata": {"name": "one"}, "data": {"y": "2"}}))
        .await;
    for (group_version, plural, mut body) in minimal_objects() {
        body["metadata"] = json!({"name": "put"});
        let path = probe.namespaced_path(group_version, plural);
        probe.stop_recording().post(&path, body.clone()).await;
        body["metadata"]["labels"] = json!({"changed": "yes"});
        let answer = probe.put(&format!("{path}/put"), body).await;
        probe.start_recording().record_value(plural, &json!([answer.code, answer.body["message"]]));
    }
}

pub async fn a_put_with_a_stale_revision_conflicts(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    let made = probe.post(&path, config_map("one")).await;
    let mut changed = made.body.clone();
    changed["data"] = json!({"x": "2"});
    probe.put(&format!("{path}/one"), changed.clone()).await;
    changed["data"] = json!({"x": "3"});
    probe.put(&format!("{path}/one"), changed.clone()).await;
    let status = probe.namespaced_path("/apis/networking.k8s.io/v1", "ingresses");
    let backend = json!({"service": {"name": "a", "port": {"number": 80}}});
    let body = json!({"metadata": {"name": "one"}, "spec": {"defaultBackend": backend}});
    probe.stop_recording().post(&status, body.clone()).await;
    let mut stale = body;
    stale["metadata"]["resourceVersion"] = json!("1");
    probe.start_recording().put(&format!("{status}/one"), stale.clone()).await;
    probe.put(&format!("{status}/one/status"), stale).await;
    for revision in ["abc", "-1", "0", "99999999999999999999999"] {
        let body = json!({"metadata": {"name": "one", "resourceVersion": revision}, "data": {"r": revision}});
        probe.put(&format!("{path}/one"), body).await;
    }
}

pub async fn a_put_with_another_uid_conflicts(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    probe.stop_recording().post(&path, config_map("one")).await;
    let uid = "00000000-0000-0000-0000-000000000009";
    let body = json!({"metadata": {"name": "one", "uid": uid}, "data": {"x": "2"}});
    probe.start_recording().put(&format!("{path}/one"), body).await;
    probe.patch(MERGE_PATCH, &format!("{path}/one"), json!({"metadata": {"uid": uid}})).await;
    let roles = probe.namespaced_path("/apis/rbac.authorization.k8s.io/v1", "roles");
    probe.put(&format!("{roles}/none"), json!({"metadata": {"name": "none", "uid": uid}, "rules": []})).await;
    let revised = json!({"metadata": {"name": "none", "resourceVersion": "7"}, "rules": []});
    probe.put(&format!("{roles}/none"), revised).await;
}

pub async fn names_in_body_and_path_must_agree(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    probe.stop_recording().post(&path, config_map("one")).await;
    probe.start_recording().put(&format!("{path}/one"), config_map("two")).await;
    probe.put(&format!("{path}/one"), json!({"data": {}})).await;
    probe.put(&format!("{path}/one"), json!({"metadata": {"name": ""}})).await;
    let elsewhere = json!({"metadata": {"name": "one", "namespace": "default"}});
    probe.put(&format!("{path}/one"), elsewhere.clone()).await;
    probe.post(&path, elsewhere.clone()).await;
    probe.patch(MERGE_PATCH, &format!("{path}/one"), elsewhere).await;
    probe.patch(MERGE_PATCH, &format!("{path}/one"), json!({"metadata": {"name": "two"}})).await;
    probe.post("/api/v1/configmaps", config_map("nowhere")).await;
    let here = probe.namespace().to_owned();
    probe.post("/api/v1/configmaps", json!({"metadata": {"name": "here", "namespace": here}})).await;
    let name = probe.unique_name("placed");
    let placed = json!({"metadata": {"name": name, "namespace": "default"}, "rules": []});
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    probe.post(roles, placed).await;
    probe.stop_recording().delete(&format!("{roles}/{name}"), None).await;
    probe.start_recording();
}

pub async fn a_create_needs_its_namespace(probe: &mut ContractProbe) {
    probe.post("/api/v1/namespaces/no-such-namespace/configmaps", config_map("one")).await;
    let bad = json!({"metadata": {"name": "one"}, "spec": {}});
    probe.post("/apis/apps/v1/namespaces/no-such-namespace/deployments", bad).await;
    probe.put("/api/v1/namespaces/no-such-namespace/configmaps/one", config_map("one")).await;
    let put = json!({"metadata": {"name": "one"}, "rules": []});
    probe.put("/apis/rbac.authorization.k8s.io/v1/namespaces/no-such-namespace/roles/one", put).await;
    probe
        .apply(
            "tester",
            "/api/v1/namespaces/no-such-namespace/configmaps/one",
            json!({"apiVersion": "v1",
        "kind": "ConfigMap", "metadata": {"name": "one"}}),
        )
        .await;
}

pub async fn bad_names_are_invalid(probe: &mut ContractProbe) {
    let long = "a".repeat(254);
    for name in ["Bad_Name", "-x", "a..b", "ä", "", &long] {
        let path = probe.namespaced_path(CORE, "configmaps");
        probe.post(&path, json!({"metadata": {"name": name}})).await;
    }
    let service = json!({"metadata": {"name": "9a.b"}, "spec": {"ports": [{"port": 80}]}});
    probe.post(&probe.namespaced_path(CORE, "services"), service).await;
    probe.post("/api/v1/namespaces", json!({"metadata": {"name": "a.b"}})).await;
    for name in ["a/b", "a%b", "..", "."] {
        let role = json!({"metadata": {"name": name}, "rules": []});
        probe.post(&probe.namespaced_path("/apis/rbac.authorization.k8s.io/v1", "roles"), role).await;
    }
    let prefix = json!({"metadata": {"generateName": "Bad_"}});
    let path = probe.namespaced_path(CORE, "configmaps");
    let refused = probe.stop_recording().post(&path, prefix).await;
    let name = refused.text("/details/name");
    probe.alias(&name, "GENERATED");
    probe.start_recording().record_value("a bad prefix", &refused.body);
}

pub async fn bad_metadata_is_invalid(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    let uid = "00000000-0000-0000-0000-000000000001";
    let owner = |controller: bool| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid, "controller": controller});
    for metadata in [
        json!({"labels": {"-bad": "x"}}),
        json!({"labels": {"a/b/c": "x"}}),
        json!({"labels": {"a": "not valid"}}),
        json!({"labels": {"a": "v".repeat(64)}}),
        json!({"labels": {"": "x"}}),
        json!({"annotations": {"-bad": "x"}}),
        json!({"annotations": {"big": "x".repeat(262_145)}}),
        json!({"finalizers": ["nodomain"]}),
        json!({"finalizers": ["example.com/ok", "not valid/x"]}),
        json!({"finalizers": ["orphan", "foregroundDeletion"]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": ""}]}),
        json!({"ownerReferences": [{"apiVersion": "", "kind": "", "name": "o", "uid": uid}]}),
        json!({"ownerReferences": [owner(true), owner(true)]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "o", "uid": uid}]}),
    ] {
        let mut object = json!({"metadata": metadata});
        object["metadata"]["name"] = json!("bad");
        probe.post(&path, object).await;
    }
}

pub async fn metadata_of_an_object_is_immutable(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    probe.stop_recording().post(&path, config_map("one")).await;
    probe.start_recording();
    for metadata in [
        json!({"creationTimestamp": "2001-01-01T00:00:00Z"}),
        json!({"creationTimestamp": null}),
        json!({"deletionTimestamp": "2001-01-01T00:00:00Z"}),
        json!({"deletionGracePeriodSeconds": 5}),
        json!({"generation": 12}),
        json!({"selfLink": "/nowhere"}),
        json!({"generateName": "on"}),
        json!({"uid": null}),
        json!({"resourceVersion": null}),
        json!({"namespace": null}),
        json!({"name": null}),
        json!({"labels": {"-": "x"}}),
    ] {
        probe.patch(MERGE_PATCH, &format!("{path}/one"), json!({"metadata": metadata})).await;
    }
}

pub async fn generated_names_are_a_prefix_and_five_characters(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    for prefix in ["one-", "a", &"p".repeat(80)] {
        let made = probe.stop_recording().post(&path, json!({"metadata": {"generateName": prefix}})).await;
        let name = made.text("/metadata/name");
        let kept = made.text("/metadata/generateName");
        let cut: String = prefix.chars().take(58.min(prefix.len())).collect();
        let rest = name.strip_prefix(&cut).unwrap_or("?").to_owned();
        let known = rest.chars().all(|letter| "bcdfghjklmnpqrstvwxz2456789".contains(letter));
        probe
            .start_recording()
            .record_value("generated", &json!([made.code, kept, name.len(), rest.len(), known]));
    }
    let both = json!({"metadata": {"name": "named", "generateName": "other-"}});
    probe.post(&path, both).await;
    probe.post(&path, json!({"metadata": {}})).await;
    probe.post(&path, json!({})).await;
}

fn policy(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"podSelector": {"matchLabels": {"a": "b"}}}})
}

pub async fn a_generation_counts_changes_of_the_spec(probe: &mut ContractProbe) {
    let path = probe.namespaced_path("/apis/networking.k8s.io/v1", "networkpolicies");
    let one = format!("{path}/one");
    let mut sent = policy("one");
    sent["metadata"]["generation"] = json!(7);
    probe.post(&path, sent.clone()).await;
    sent["metadata"]["labels"] = json!({"new": "label"});
    probe.put(&one, sent.clone()).await;
    sent["spec"]["podSelector"] = json!({});
    sent["metadata"]["generation"] = json!(9);
    probe.put(&one, sent).await;
    probe.patch(MERGE_PATCH, &one, json!({"metadata": {"annotations": {"a": "b"}}})).await;
    probe.patch(MERGE_PATCH, &one, json!({"spec": {"policyTypes": ["Egress"]}})).await;
}

pub async fn generations_of_kinds(probe: &mut ContractProbe) {
    for (group_version, plural, mut body) in minimal_objects() {
        body["metadata"] = json!({"name": "one"});
        let path = probe.namespaced_path(group_version, plural);
        let made = probe.stop_recording().post(&path, body).await;
        probe.start_recording().record_value(plural, &made.body["metadata"]["generation"]);
    }
}

pub async fn a_write_that_changes_nothing_is_none(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    let one = format!("{path}/one");
    let made = probe.stop_recording().post(&path, config_map("one")).await;
    let revision = made.revision();
    let since = format!("{path}?watch=1&fieldSelector=metadata.name=one&resourceVersion={revision}");
    let mut watch = probe.watch(&since).await;
    let same = probe.put(&one, made.body.clone()).await.revision();
    probe.start_recording().record_value("a put leaves the revision", &json!(same == revision));
    let same = probe.stop_recording().put(&one, config_map("one")).await.revision();
    probe.start_recording().record_value("a bare put leaves the revision", &json!(same == revision));
    let same = probe.stop_recording().patch(MERGE_PATCH, &one, json!({"data": {"x": "1"}})).await.revision();
    probe.start_recording().record_value("a patch leaves the revision", &json!(same == revision));
    let same = probe.stop_recording().patch(MERGE_PATCH, &one, json!({})).await.revision();
    probe.start_recording().record_value("an empty patch leaves the revision", &json!(same == revision));
    let config =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"x": "1"}});
    let first = probe.stop_recording().apply("applier", &one, config.clone()).await.revision();
    probe.start_recording().record_value("a first apply leaves the revision", &json!(first == revision));
    let second = probe.stop_recording().apply("applier", &one, config).await.revision();
    probe.start_recording().record_value("a second apply leaves the revision", &json!(second == first));
    probe.patch(MERGE_PATCH, &one, json!({"data": {"x": "2"}})).await;
    watch.record(probe, 2).await;
}

pub async fn secrets_take_plain_text(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "secrets");
    probe
        .post(
            &path,
            json!({"metadata": {"name": "one"}, "stringData": {"a": "plain"}, "data": {"a": "eA==",
        "b": "eQ=="}}),
        )
        .await;
    probe.patch(MERGE_PATCH, &format!("{path}/one"), json!({"stringData": {"b": "more"}})).await;
    probe.patch(MERGE_PATCH, &format!("{path}/one"), json!({"type": "other"})).await;
    probe.post(&path, json!({"metadata": {"name": "bad"}, "data": {"a": "%%%"}})).await;
    probe.post(&path, json!({"metadata": {"name": "bad"}, "data": {"no good": "eA=="}})).await;
    probe.post(&path, json!({"metadata": {"name": "tls"}, "type": "kubernetes.io/tls"})).await;
}

pub async fn immutable_objects_stay_as_they_are(probe: &mut ContractProbe) {
    for plural in ["configmaps", "secrets"] {
        let path = probe.namespaced_path(CORE, plural);
        let one = format!("{path}/one");
        probe
            .stop_recording()
            .post(
                &path,
                json!({"metadata": {"name": "one"}, "immutable": true,
            "data": {"x": "eA=="}}),
            )
            .await;
        probe.start_recording().patch(MERGE_PATCH, &one, json!({"data": {"x": "eQ=="}})).await;
        probe.patch(MERGE_PATCH, &one, json!({"immutable": false})).await;
        probe.patch(MERGE_PATCH, &one, json!({"immutable": null, "data": {"y": "eA=="}})).await;
        probe.patch(MERGE_PATCH, &one, json!({"metadata": {"labels": {"may": "change"}}})).await;
        probe.delete(&one, None).await;
    }
}
