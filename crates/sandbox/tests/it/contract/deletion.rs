//! Deletion: finalizers, preconditions, dependents, namespaces.

use http::Method;
use serde_json::{Value, json};

use super::probe::{ContractProbe, JSON_PATCH, MERGE_PATCH};

const CORE: &str = "/api/v1";

async fn create_map(probe: &mut ContractProbe, name: &str, metadata: Value) -> String {
    let path = probe.namespaced_path(CORE, "configmaps");
    let mut object = json!({"metadata": metadata});
    object["metadata"]["name"] = json!(name);
    let made = probe.stop_recording().post(&path, object).await;
    assert_eq!(made.code, 201, "{:?}", made.body);
    probe.start_recording();
    format!("{path}/{name}")
}

pub async fn a_delete_answers_what_is_gone(probe: &mut ContractProbe) {
    let one = create_map(probe, "one", json!({})).await;
    probe.delete(&one, None).await;
    probe.delete(&one, None).await;
    let claims = probe.namespaced_path("/apis/rbac.authorization.k8s.io/v1", "roles");
    probe.stop_recording().post(&claims, json!({"metadata": {"name": "one"}, "rules": []})).await;
    probe.start_recording().delete(&format!("{claims}/one"), None).await;
    let services = probe.namespaced_path(CORE, "services");
    let spec = json!({"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]});
    probe.stop_recording().post(&services, json!({"metadata": {"name": "one"}, "spec": spec})).await;
    probe.start_recording().delete(&format!("{services}/one"), None).await;
}

pub async fn a_finalizer_holds_an_object(probe: &mut ContractProbe) {
    let one = create_map(probe, "one", json!({"finalizers": ["example.com/a", "example.com/b"]})).await;
    probe.delete(&one, None).await;
    probe.delete(&one, None).await;
    probe.get(&one).await;
    let more = json!({"metadata": {"finalizers": ["example.com/a", "example.com/b", "example.com/c"]}});
    probe.patch(MERGE_PATCH, &one, more).await;
    probe.patch(MERGE_PATCH, &one, json!({"metadata": {"finalizers": ["example.com/new"]}})).await;
    probe.patch(MERGE_PATCH, &one, json!({"data": {"may": "change"}})).await;
    probe.patch(MERGE_PATCH, &one, json!({"metadata": {"deletionTimestamp": null}})).await;
    probe.patch(JSON_PATCH, &one, json!([{"op": "remove", "path": "/metadata/finalizers/0"}])).await;
    probe.patch(MERGE_PATCH, &one, json!({"metadata": {"finalizers": null}})).await;
    probe.get(&one).await;
}

pub async fn the_last_finalizer_goes_by_put(probe: &mut ContractProbe) {
    let one = create_map(probe, "one", json!({"finalizers": ["example.com/a"]})).await;
    let path = probe.namespaced_path(CORE, "configmaps");
    let query = "watch=1&fieldSelector=metadata.name=one";
    let first = probe.stop_recording().get(&one).await.revision();
    let mut watch = probe.watch(&format!("{path}?{query}&resourceVersion={first}")).await;
    let marked = probe.start_recording().delete(&one, Some(json!({"gracePeriodSeconds": 10}))).await;
    let mut last = marked.body;
    last["metadata"]["finalizers"] = json!([]);
    probe.put(&format!("{one}?dryRun=All"), last.clone()).await;
    probe.put(&one, last).await;
    probe.get(&one).await;
    watch.record(probe, 2).await;
}

pub async fn preconditions_must_hold(probe: &mut ContractProbe) {
    let one = create_map(probe, "one", json!({})).await;
    let live = probe.stop_recording().get(&one).await;
    let other = "00000000-0000-0000-0000-000000000009";
    probe.start_recording();
    probe.delete(&one, Some(json!({"preconditions": {"uid": other}}))).await;
    probe.delete(&one, Some(json!({"preconditions": {"resourceVersion": "1"}}))).await;
    let both = json!({"preconditions": {"uid": live.text("/metadata/uid"), "resourceVersion": "1"}});
    probe.delete(&one, Some(both)).await;
    probe.delete(&one, Some(json!({"preconditions": {}, "gracePeriodSeconds": 0}))).await;
    let two = create_map(probe, "two", json!({})).await;
    let live = probe.stop_recording().get(&two).await;
    let good =
        json!({"preconditions": {"uid": live.text("/metadata/uid"), "resourceVersion": live.revision()}});
    probe.start_recording().delete(&two, Some(good)).await;
    probe.delete(&two, Some(json!({"preconditions": {"uid": other}}))).await;
    let roles = probe.namespaced_path("/apis/rbac.authorization.k8s.io/v1", "roles");
    probe.stop_recording().post(&roles, json!({"metadata": {"name": "one"}, "rules": []})).await;
    probe
        .start_recording()
        .delete(&format!("{roles}/one"), Some(json!({"preconditions": {"uid": other}})))
        .await;
}

pub async fn options_of_a_delete(probe: &mut ContractProbe) {
    let one = create_map(probe, "one", json!({"finalizers": ["example.com/hold"]})).await;
    for options in [
        json!({"propagationPolicy": "Nope"}),
        json!({"propagationPolicy": ""}),
        json!({"propagationPolicy": 1}),
        json!({"gracePeriodSeconds": -1}),
        json!({"gracePeriodSeconds": "x"}),
        json!({"gracePeriodSeconds": 1.5}),
        json!({"orphanDependents": true, "propagationPolicy": "Background"}),
        json!({"dryRun": "All"}),
        json!({"dryRun": ["All", "Nope"]}),
        json!({"kind": "Nope", "apiVersion": "v1"}),
        json!({"kind": "ConfigMap", "apiVersion": "v1"}),
        json!({"kind": "DeleteOptions", "apiVersion": "nope.example/v1"}),
        json!({"preconditions": {"uid": 1}}),
        json!({"nope": true, "dryRun": ["All"]}),
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}),
        json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}),
        json!({"kind": "DeleteOptions", "apiVersion": "apps/v1", "dryRun": ["All"]}),
    ] {
        probe.delete(&one, Some(options)).await;
    }
    for query in [
        "propagationPolicy=Nope",
        "gracePeriodSeconds=x",
        "gracePeriodSeconds=-1",
        "dryRun=All&orphanDependents=nope",
        "orphanDependents=true&propagationPolicy=Orphan",
        "dryRun=All&propagationPolicy=Foreground",
        "dryRun=All&gracePeriodSeconds=",
        "dryRun=All&gracePeriodSeconds=1.5",
    ] {
        probe.delete(&format!("{one}?{query}"), None).await;
    }
    probe.record_note("a body beside the query");
    probe.delete(&format!("{one}?propagationPolicy=Nope"), Some(json!({"dryRun": ["All"]}))).await;
    probe.delete(&format!("{one}?dryRun=All"), Some(json!({"propagationPolicy": "Foreground"}))).await;
    probe.stop_recording().patch(MERGE_PATCH, &one, json!({"metadata": {"finalizers": null}})).await;
    probe.delete(&one, None).await;
    probe.start_recording();
}

fn owned_map(owner: &Value, block: bool) -> Value {
    json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": block}])
}

pub async fn background_deletion_takes_dependents_later(probe: &mut ContractProbe) {
    let owner = create_map(probe, "owner", json!({})).await;
    let live = probe.stop_recording().get(&owner).await.body;
    let child = create_map(probe, "child", json!({"ownerReferences": owned_map(&live, true)})).await;
    let grandchild = {
        let live = probe.stop_recording().get(&child).await.body;
        create_map(probe, "grandchild", json!({"ownerReferences": owned_map(&live, true)})).await
    };
    probe.delete(&owner, Some(json!({"propagationPolicy": "Background"}))).await;
    probe.wait_until_gone(&child).await;
    probe.wait_until_gone(&grandchild).await;
    probe.record_note("child and grandchild are gone");
}

pub async fn foreground_deletion_takes_dependents_first(probe: &mut ContractProbe) {
    let owner = create_map(probe, "owner", json!({})).await;
    let live = probe.stop_recording().get(&owner).await.body;
    let held = json!({"ownerReferences": owned_map(&live, true), "finalizers": ["example.com/hold"]});
    let child = create_map(probe, "child", held).await;
    let free = create_map(probe, "free", json!({"ownerReferences": owned_map(&live, false)})).await;
    probe.delete(&owner, Some(json!({"propagationPolicy": "Foreground"}))).await;
    probe.wait_until_gone(&free).await;
    probe.wait_until(&child, |object| object["metadata"]["deletionTimestamp"].is_string()).await;
    probe.record_note("the child is marked, the one that does not block is gone, the owner waits");
    probe.get(&owner).await;
    probe.stop_recording().patch(MERGE_PATCH, &child, json!({"metadata": {"finalizers": null}})).await;
    probe.wait_until_gone(&child).await;
    probe.wait_until_gone(&owner).await;
    probe.start_recording().record_note("then both are gone");
}

pub async fn orphans_lose_their_owner(probe: &mut ContractProbe) {
    let owner = create_map(probe, "owner", json!({})).await;
    let live = probe.stop_recording().get(&owner).await.body;
    let child = create_map(probe, "child", json!({"ownerReferences": owned_map(&live, true)})).await;
    probe.delete(&owner, Some(json!({"propagationPolicy": "Orphan"}))).await;
    probe.wait_until_gone(&owner).await;
    let kept = probe.wait_until(&child, |object| object["metadata"]["ownerReferences"].is_null()).await;
    probe
        .record_value("the child", &json!([kept["metadata"]["name"], kept["metadata"]["deletionTimestamp"]]));
    let old = create_map(probe, "old", json!({})).await;
    let live = probe.stop_recording().get(&old).await.body;
    let other = create_map(probe, "other", json!({"ownerReferences": owned_map(&live, true)})).await;
    probe.delete(&old, Some(json!({"orphanDependents": true}))).await;
    probe.wait_until_gone(&old).await;
    probe.wait_until(&other, |object| object["metadata"]["ownerReferences"].is_null()).await;
    probe.record_note("and by the old option");
}

pub async fn dangling_owners_are_collected(probe: &mut ContractProbe) {
    let owner = create_map(probe, "owner", json!({})).await;
    let live = probe.stop_recording().get(&owner).await.body;
    let gone = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "never",
        "uid": "00000000-0000-0000-0000-000000000009"}]);
    let dangling = create_map(probe, "dangling", json!({"ownerReferences": gone})).await;
    probe.wait_until_gone(&dangling).await;
    probe.record_note("an owner that never was");
    let mut reused = owned_map(&live, true);
    reused[0]["uid"] = json!("00000000-0000-0000-0000-000000000008");
    let mistaken = create_map(probe, "mistaken", json!({"ownerReferences": reused})).await;
    probe.wait_until_gone(&mistaken).await;
    probe.record_note("an owner of the name with another uid");
    let mut two = owned_map(&live, true);
    two.as_array_mut().unwrap().push(gone[0].clone());
    let shared = create_map(probe, "shared", json!({"ownerReferences": two})).await;
    let kept = probe
        .wait_until(&shared, |object| {
            object["metadata"]["ownerReferences"].as_array().is_some_and(|all| all.len() == 1)
        })
        .await;
    probe.record_value("one of two owners is left", &kept["metadata"]["ownerReferences"]);
}

pub async fn a_namespace_ends_with_what_is_in_it(probe: &mut ContractProbe) {
    let name = probe.unique_name("ending");
    let namespace = format!("/api/v1/namespaces/{name}");
    probe.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
    probe.wait_until(&format!("{namespace}/serviceaccounts/default"), |_| true).await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    probe.stop_recording().post(&format!("{namespace}/configmaps"), held).await;
    probe.post(&format!("{namespace}/configmaps"), json!({"metadata": {"name": "free"}})).await;
    probe.start_recording().delete(&namespace, None).await;
    probe.post(&format!("{namespace}/configmaps"), json!({"metadata": {"name": "late"}})).await;
    probe.post(&format!("{namespace}/secrets?dryRun=All"), json!({"metadata": {"name": "late"}})).await;
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}});
    probe.apply("tester", &format!("{namespace}/configmaps/late"), config).await;
    // the real controller waits five seconds before it checks: held objects have their marks by then
    probe.wait_until_gone(&format!("{namespace}/configmaps/free")).await;
    probe
        .patch(MERGE_PATCH, &format!("{namespace}/configmaps/held"), json!({"data": {"may": "change"}}))
        .await;
    let waiting = probe
        .wait_until(&namespace, |object| {
            let conditions = object["status"]["conditions"].as_array();
            conditions.is_some_and(|all| {
                all.iter().any(|one| one["type"] == "NamespaceFinalizersRemaining" && one["status"] == "True")
            })
        })
        .await;
    probe.record_value("status", &waiting["status"]);
    probe.delete(&namespace, None).await;
    probe
        .stop_recording()
        .patch(
            MERGE_PATCH,
            &format!("{namespace}/configmaps/held"),
            json!({"metadata": {"finalizers": null}}),
        )
        .await;
    probe.wait_until_gone(&namespace).await;
    probe.start_recording().record_note("the last finalizer is removed");
    probe.get(&namespace).await;
}

pub async fn namespaces_that_may_not_be_deleted(probe: &mut ContractProbe) {
    for name in ["default", "kube-system", "kube-public"] {
        probe.delete(&format!("/api/v1/namespaces/{name}"), None).await;
    }
}

pub async fn namespaces_are_finalized(probe: &mut ContractProbe) {
    let name = probe.unique_name("finalized");
    let namespace = format!("/api/v1/namespaces/{name}");
    let spec = json!({"finalizers": ["kubernetes", "example.com/hold"]});
    probe.post("/api/v1/namespaces", json!({"metadata": {"name": name}, "spec": spec})).await;
    probe.patch(MERGE_PATCH, &namespace, json!({"spec": {"finalizers": []}})).await;
    probe
        .patch(
            MERGE_PATCH,
            &namespace,
            json!({"metadata": {"labels": {"kubernetes.io/metadata.name": "other"}}}),
        )
        .await;
    probe.delete(&namespace, None).await;
    probe
        .wait_until(&namespace, |object| {
            object["spec"]["finalizers"].as_array().is_some_and(|all| all.len() == 1)
        })
        .await;
    probe
        .put(
            &format!("{namespace}/finalize"),
            json!({"metadata": {"name": name}, "spec": {"finalizers": ["bad"]}}),
        )
        .await;
    let done = json!({"metadata": {"name": name}, "spec": {"finalizers": []}});
    let finalized = probe.stop_recording().put(&format!("{namespace}/finalize"), done.clone()).await;
    probe.start_recording().record_value(
        "finalized",
        &json!([finalized.code, finalized.body["spec"], finalized.body["status"]["phase"]]),
    );
    probe.wait_until_gone(&namespace).await;
    probe.put(&format!("{namespace}/finalize"), done).await;
    probe.get(&format!("{namespace}/finalize")).await;
}

async fn create_three_maps(probe: &mut ContractProbe) -> String {
    let path = probe.namespaced_path(CORE, "secrets");
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        let object = json!({"metadata": {"name": name, "labels": {"color": color}}});
        probe.stop_recording().post(&path, object).await;
    }
    probe.start_recording();
    path
}

pub async fn a_collection_is_deleted_by_selector(probe: &mut ContractProbe) {
    let path = create_three_maps(probe).await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    probe.stop_recording().patch(MERGE_PATCH, &format!("{path}/c"), hold).await;
    probe.start_recording().delete(&format!("{path}?labelSelector=color=red"), None).await;
    probe.get(&path).await;
    probe.delete(&format!("{path}?labelSelector=color=none"), None).await;
    probe.delete(&format!("{path}?fieldSelector=metadata.name=b"), None).await;
    probe
        .stop_recording()
        .patch(MERGE_PATCH, &format!("{path}/c"), json!({"metadata": {"finalizers": null}}))
        .await;
    probe.start_recording();
    probe.get(&path).await;
}

pub async fn a_collection_is_deleted_whole(probe: &mut ContractProbe) {
    let path = create_three_maps(probe).await;
    probe.delete(&format!("{path}?limit=1"), None).await;
    probe.get(&path).await;
    probe.delete(&path, Some(json!({"propagationPolicy": "Background"}))).await;
    probe.delete(&path, None).await;
}

pub async fn bad_options_of_a_collection_delete(probe: &mut ContractProbe) {
    let path = create_three_maps(probe).await;
    for query in [
        "labelSelector=%29",
        "fieldSelector=nope=x",
        "limit=x",
        "continue=x",
        "resourceVersion=abc",
        "propagationPolicy=Nope",
        "gracePeriodSeconds=-1",
        "resourceVersionMatch=Exact",
        "labelSelector=none&timeoutSeconds=abc",
    ] {
        probe.delete(&format!("{path}?{query}"), None).await;
    }
    probe.delete(&path, Some(json!({"propagationPolicy": "Nope"}))).await;
    probe
        .delete(&path, Some(json!({"preconditions": {"uid": "00000000-0000-0000-0000-000000000009"}})))
        .await;
    probe.send(Method::DELETE, &path, &[("content-type", "application/json")], "{").await;
    probe.get(&path).await;
    probe.delete("/apis/apps/v1/deployments", None).await;
    probe.delete("/api/v1/namespaces/no-such-namespace/secrets", None).await;
    let services = probe.namespaced_path(CORE, "services");
    probe.delete(&format!("{services}?labelSelector=none"), None).await;
}

/// A pod on a node that does not exist: no kubelet ends it.
pub async fn running_pods_are_given_time(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "pods");
    let node = probe.unique_name("no-such-node");
    let pod = |name: &str, node: Option<&str>| {
        let mut pod = json!({"metadata": {"name": name}, "spec": {"schedulerName": "nobody",
            "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 21,
            "containers": [{"name": "main", "image": "nginx"}]}});
        if let Some(node) = node {
            pod["spec"]["nodeName"] = json!(node);
        }
        pod
    };
    let marks = |pod: &Value| {
        json!([
            pod["kind"],
            pod["metadata"]["deletionTimestamp"],
            pod["metadata"]["deletionGracePeriodSeconds"],
            pod["metadata"]["generation"],
            pod["status"]
        ])
    };
    probe.stop_recording().post(&path, pod("waiting", None)).await;
    let gone = probe.delete(&format!("{path}/waiting"), None).await;
    probe.start_recording().record_value("not scheduled", &marks(&gone.body));
    let one = format!("{path}/one");
    probe.stop_recording().post(&path, pod("one", Some(&node))).await;
    for options in [
        json!({"gracePeriodSeconds": -5, "dryRun": ["All"]}),
        json!({"dryRun": ["All"]}),
        json!({}),
        json!({}),
        json!({"gracePeriodSeconds": 60}),
        json!({"gracePeriodSeconds": 5}),
        json!({"gracePeriodSeconds": 0}),
    ] {
        let marked = probe.stop_recording().delete(&one, Some(options.clone())).await;
        probe.start_recording().record_note(&options.to_string());
        probe.record_value("marked", &marks(&marked.body));
    }
    probe.get(&one).await;
    probe.stop_recording().post(&path, pod("two", Some(&node))).await;
    let marked = probe.stop_recording().delete(&format!("{path}/two?gracePeriodSeconds=3"), None).await;
    probe.start_recording().record_value("by the query", &marks(&marked.body));
    probe.stop_recording().delete(&format!("{path}/two?gracePeriodSeconds=0"), None).await;
    probe.start_recording();
}
