//! Patches other than apply, and the subresources `status` and `scale`.

use serde_json::{Value, json};

use super::probe::{ContractProbe, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH};

const CORE: &str = "/api/v1";
const APPS: &str = "/apis/apps/v1";
const NETWORKING: &str = "/apis/networking.k8s.io/v1";

async fn config_map(probe: &mut ContractProbe) -> String {
    let path = probe.namespaced_path(CORE, "configmaps");
    let object = json!({"metadata": {"name": "one", "labels": {"l": "1"}}, "data": {"a": "1", "b": "2"}});
    probe.stop_recording().post(&path, object).await;
    probe.start_recording();
    format!("{path}/one")
}

pub async fn a_merge_patch_deletes_with_null(probe: &mut ContractProbe) {
    let one = config_map(probe).await;
    let named = format!("{one}?fieldManager=patcher");
    probe.patch(MERGE_PATCH, &named, json!({"data": {"a": null, "c": "3"}})).await;
    probe.patch(MERGE_PATCH, &named, json!({"data": null})).await;
    probe.patch(MERGE_PATCH, &named, json!({"metadata": {"labels": {"none": null}}})).await;
    probe.patch(MERGE_PATCH, &one, json!({"data": {"x": "y"}, "binaryData": {"z": "AAAA"}})).await;
}

pub async fn merge_patches_that_do_not_fit(probe: &mut ContractProbe) {
    let one = config_map(probe).await;
    for patch in [
        json!([]),
        json!("text"),
        json!(null),
        json!({"data": "text"}),
        json!({"data": {"a": 1}}),
        json!({"data": {"a": {"b": "c"}}}),
        json!({"data": ["a"]}),
        json!({"metadata": null}),
        json!({"metadata": []}),
        json!({"metadata": {"labels": {"a": 1}}}),
        json!({"kind": "Secret"}),
        json!({"apiVersion": null, "kind": null}),
        json!({"metadata": {"resourceVersion": "1"}}),
        json!({"metadata": {"resourceVersion": "x"}}),
        json!({"nope": true}),
    ] {
        probe.patch(MERGE_PATCH, &one, patch).await;
    }
}

pub async fn json_patches(probe: &mut ContractProbe) {
    let one = config_map(probe).await;
    for patch in [
        json!([{"op": "add", "path": "/data/c", "value": "3"}]),
        json!([{"op": "replace", "path": "/data/a", "value": "4"}]),
        json!([{"op": "remove", "path": "/data/b"}]),
        json!([{"op": "move", "from": "/data/a", "path": "/data/d"}]),
        json!([{"op": "copy", "from": "/data/d", "path": "/data/e"}]),
        json!([{"op": "test", "path": "/data/d", "value": "4"}, {"op": "add", "path": "/data/f", "value": "5"}]),
        json!([{"op": "test", "path": "/data/none", "value": null}]),
        json!([{"op": "test", "path": "/none/deeper", "value": null}]),
        json!([{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/a"]},
            {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/c"},
            {"op": "add", "path": "/metadata/finalizers/1", "value": "example.com/b"}]),
        json!([{"op": "remove", "path": "/metadata/finalizers/0"}, {"op": "remove", "path": "/metadata/finalizers"}]),
        json!([{"op": "add", "path": "/metadata/annotations", "value": {}},
            {"op": "add", "path": "/metadata/annotations/example.com~1x~0y", "value": "z"}]),
        json!([{"op": "replace", "path": "/data", "value": null}]),
        json!([]),
    ] {
        probe.patch(JSON_PATCH, &one, patch).await;
    }
}

pub async fn json_patches_that_do_not_fit(probe: &mut ContractProbe) {
    let one = config_map(probe).await;
    for patch in [
        json!([{"op": "test", "path": "/data/a", "value": "wrong"}]),
        json!([{"op": "test", "path": "/data/a", "value": null}]),
        json!([{"op": "test", "path": "/data/none", "value": "x"}]),
        json!([{"op": "test", "path": "/data/a"}]),
        json!([{"op": "remove", "path": "/data/none"}]),
        json!([{"op": "remove", "path": "/none/deeper"}]),
        json!([{"op": "replace", "path": "/data/none", "value": "x"}]),
        json!([{"op": "add", "path": "/none/deeper", "value": "x"}]),
        json!([{"op": "move", "from": "/data/none", "path": "/data/x"}]),
        json!([{"op": "copy", "from": "/data/none", "path": "/data/x"}]),
        json!([{"op": "copy", "path": "/data/x"}]),
        json!([{"op": "add", "path": "/data/x"}]),
        json!([{"op": "add", "value": "x"}]),
        json!([{"op": "add", "path": "data/x", "value": "x"}]),
        json!([{"op": "add", "path": "", "value": {}}]),
        json!([{"op": "add", "path": "/", "value": "x"}]),
        json!([{"op": "nope", "path": "/data/x", "value": "x"}]),
        json!([{"path": "/data/x", "value": "x"}]),
        json!([{"op": 1, "path": "/data/x"}]),
        json!([1]),
        json!([null]),
        json!([{}]),
        json!({}),
        json!("text"),
        json!({"op": "add", "path": "/data/x", "value": "x"}),
        json!([{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/a"}]),
        json!([{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/a"]},
            {"op": "add", "path": "/metadata/finalizers/7", "value": "example.com/b"}]),
        json!([{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/a"]},
            {"op": "remove", "path": "/metadata/finalizers/x"}]),
        json!([{"op": "add", "path": "/data/x", "value": 1}]),
        json!([{"op": "replace", "path": "/metadata/name", "value": "two"}]),
        json!([{"op": "remove", "path": "/metadata"}]),
    ] {
        probe.patch(JSON_PATCH, &one, patch).await;
    }
    let many: Vec<Value> =
        (0..10_001).map(|_| json!({"op": "test", "path": "/data/a", "value": "1"})).collect();
    probe.patch(JSON_PATCH, &one, json!(many)).await;
}

/// A CronJob with two containers that no controller changes.
async fn cron_job(probe: &mut ContractProbe) -> String {
    let path = probe.namespaced_path("/apis/batch/v1", "cronjobs");
    let containers = json!([
        {"name": "one", "image": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]},
        {"name": "two", "image": "b", "args": ["1", "2"]}]);
    let spec = json!({"schedule": "1 1 1 1 *", "suspend": true, "jobTemplate": {"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": containers}}}}});
    probe
        .stop_recording()
        .post(&path, json!({"metadata": {"name": "one", "finalizers": ["example.com/a"]}, "spec": spec}))
        .await;
    probe.start_recording();
    format!("{path}/one")
}

fn pod_template_patch(pod: Value) -> Value {
    json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": pod}}}}})
}

async fn show_strategic_patch(probe: &mut ContractProbe, one: &str, patch: Value) {
    let answer = probe.stop_recording().patch(STRATEGIC_PATCH, one, patch.clone()).await;
    let pod = &answer.body["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    probe.start_recording().record_note(&patch.to_string());
    match answer.code {
        200 => probe.record_value(
            "containers",
            &json!([
                pod["containers"],
                pod["nodeSelector"],
                pod["tolerations"],
                answer.body["metadata"]["finalizers"],
                answer.body["metadata"]["labels"]
            ]),
        ),
        _ => probe.record_value("refused", &answer.body),
    }
}

pub async fn strategic_patches_merge_lists_by_key(probe: &mut ContractProbe) {
    let one = cron_job(probe).await;
    for patch in [
        pod_template_patch(json!({"containers": [{"name": "two", "image": "c"}]})),
        pod_template_patch(json!({"containers": [{"name": "three", "image": "d"}]})),
        pod_template_patch(
            json!({"containers": [{"name": "one", "env": [{"name": "Y", "$patch": "delete"}, {"name": "Z", "value": "3"}]}]}),
        ),
        pod_template_patch(json!({"containers": [{"name": "two", "$patch": "delete"}]})),
        pod_template_patch(
            json!({"containers": [{"name": "one", "args": ["x"]}], "nodeSelector": {"a": "b", "c": null}}),
        ),
        pod_template_patch(json!({"$setElementOrder/containers": [{"name": "three"}, {"name": "one"}],
            "containers": [{"name": "one", "image": "e"}]})),
        pod_template_patch(json!({"containers": [{"$patch": "replace"}, {"name": "four", "image": "f"}]})),
        pod_template_patch(json!({"nodeSelector": {"$patch": "replace", "z": "y"}})),
        pod_template_patch(json!({"nodeSelector": {"$patch": "delete"}})),
        json!({"metadata": {"finalizers": ["example.com/b"]}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}),
        json!({"metadata": {"labels": {"x": "y"}}}),
        json!({"metadata": {"labels": null, "finalizers": null}}),
    ] {
        show_strategic_patch(probe, &one, patch).await;
    }
}

pub async fn strategic_patches_that_do_not_fit(probe: &mut ContractProbe) {
    let one = cron_job(probe).await;
    for patch in [
        pod_template_patch(json!({"containers": [{"image": "nameless"}]})),
        pod_template_patch(json!({"containers": "text"})),
        pod_template_patch(json!({"containers": ["text"]})),
        pod_template_patch(json!({"containers": [{"name": "one", "$patch": "nope"}]})),
        pod_template_patch(json!({"containers": [{"name": "none", "$patch": "delete"}]})),
        pod_template_patch(json!({"nope": 1})),
        json!({"$patch": "nope"}),
        json!({"$patch": 1}),
        json!({"metadata": {"name": "two"}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": "text"}}),
        pod_template_patch(
            json!({"$setElementOrder/containers": [{"name": "one"}], "containers": [{"name": "two", "image": "x"}]}),
        ),
        pod_template_patch(json!({"$retainKeys": ["containers"], "restartPolicy": "Never"})),
        json!([]),
        json!("text"),
        json!(null),
    ] {
        show_strategic_patch(probe, &one, patch).await;
    }
}

/// A custom kind with `status` and `scale`; its definition is named after the check.
async fn define_gadgets(probe: &mut ContractProbe) -> (String, String) {
    let group = probe.unique_name("rest");
    let group = format!("{group}.example.com");
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector"});
    let definition = json!({"metadata": {"name": format!("gadgets.{group}")}, "spec": {"group": group,
        "scope": "Namespaced", "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}, "scale": scale}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = probe.stop_recording().post(definitions, definition).await;
    assert!(matches!(made.code, 201), "{:?}", made.body);
    let path = probe.namespaced_path(&format!("/apis/{group}/v1"), "gadgets");
    probe.wait_until(&path, |_| true).await;
    probe.start_recording();
    (path, format!("{definitions}/gadgets.{group}"))
}

pub async fn custom_kinds_take_no_strategic_patch(probe: &mut ContractProbe) {
    let (path, definition) = define_gadgets(probe).await;
    let version =
        path.trim_start_matches("/apis/").split("/namespaces").next().unwrap_or_default().to_owned();
    let object = json!({"apiVersion": version, "kind": "Gadget", "metadata": {"name": "one"}, "spec": {"replicas": 1}});
    probe.post(&path, object.clone()).await;
    probe.patch(STRATEGIC_PATCH, &format!("{path}/one"), json!({"spec": {"replicas": 2}})).await;
    probe.patch(MERGE_PATCH, &format!("{path}/one"), json!({"spec": {"replicas": 2}})).await;
    probe.post(&path, json!({"metadata": {"name": "typeless"}})).await;
    probe.put(&format!("{path}/one"), object.clone()).await;
    probe
        .put(
            &format!("{path}/none"),
            json!({"apiVersion": version, "kind": "Gadget", "metadata": {"name": "none"}}),
        )
        .await;
    probe.get(&format!("{path}/one/scale")).await;
    let patch = json!({"status": {"replicas": 3, "selector": "a=b"}, "spec": {"replicas": 9}});
    probe.patch(MERGE_PATCH, &format!("{path}/one/status"), patch).await;
    probe.patch(MERGE_PATCH, &format!("{path}/one/scale"), json!({"spec": {"replicas": 4}})).await;
    probe.get(&format!("{path}/one")).await;
    probe.delete(&format!("{path}/one"), None).await;
    probe.stop_recording().delete(&definition, None).await;
    probe.start_recording();
}

fn ingress() -> Value {
    json!({"metadata": {"name": "one"}, "spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}})
}

pub async fn status_and_spec_are_written_apart(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(NETWORKING, "ingresses");
    let one = format!("{path}/one");
    probe.post(&path, ingress()).await;
    let mut changed = ingress();
    changed["spec"]["ingressClassName"] = json!("other");
    changed["metadata"]["labels"] = json!({"by": "status"});
    changed["metadata"]["annotations"] = json!({"by": "status"});
    changed["metadata"]["finalizers"] = json!(["example.com/by-status"]);
    probe.put(&format!("{one}/status?fieldManager=kubelet"), changed.clone()).await;
    probe.get(&format!("{one}/status")).await;
    changed["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}});
    changed["metadata"]["finalizers"] = json!([]);
    probe.put(&one, changed).await;
    let patch = json!({"spec": {"ingressClassName": "third"}, "status": {"loadBalancer": {"ingress": null}}});
    probe.patch(MERGE_PATCH, &format!("{one}/status"), patch).await;
    probe
        .patch(
            STRATEGIC_PATCH,
            &format!("{one}/status"),
            json!({"status": {"loadBalancer": {"ingress": [{"hostname": "h.example"}]}}}),
        )
        .await;
    probe
        .patch(
            JSON_PATCH,
            &format!("{one}/status"),
            json!([{"op": "remove", "path": "/status/loadBalancer/ingress"}]),
        )
        .await;
    probe.put(&format!("{one}/status"), json!({"metadata": {"name": "one"}})).await;
    probe.put(&format!("{one}/status"), json!({"metadata": {"name": "two"}})).await;
}

fn deployment(replicas: u32) -> Value {
    json!({"metadata": {"name": "one"}, "spec": {"replicas": replicas, "paused": true,
        "selector": {"matchLabels": {"a": "b", "c": "d"}},
        "template": {"metadata": {"labels": {"a": "b", "c": "d"}},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "nginx"}]}}}})
}

/// The deployment's controller writes too: only fields that it never changes are shown.
pub async fn a_scale_changes_replicas_and_generation(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(APPS, "deployments");
    let one = format!("{path}/one");
    probe.stop_recording().post(&path, deployment(0)).await;
    probe.wait_until(&one, |object| object["status"]["observedGeneration"] == 1).await;
    probe.start_recording().get(&format!("{one}/scale")).await;
    for (replicas, body) in [
        (2, json!({"metadata": {"name": "one"}, "spec": {"replicas": 2}})),
        (0, json!({"metadata": {"name": "one"}, "spec": {}})),
        (-1, json!({"metadata": {"name": "one"}, "spec": {"replicas": -1}})),
        (0, json!({"metadata": {"name": "two"}, "spec": {"replicas": 1}})),
        (0, json!({"metadata": {"name": "one", "resourceVersion": "1"}, "spec": {"replicas": 1}})),
        (0, json!({"metadata": {"name": "one"}, "kind": "Deployment", "apiVersion": "apps/v1"})),
        (0, json!({"spec": {"replicas": 3}})),
    ] {
        let answer =
            probe.stop_recording().put(&format!("{one}/scale?fieldManager=scaler"), body.clone()).await;
        probe.start_recording().record_note(&body.to_string());
        match answer.code {
            200 => probe.record_value(&format!("scaled to {replicas}"), &answer.body["spec"]),
            _ => probe.record_value("refused", &answer.body),
        }
    }
    for (media, patch) in [
        (MERGE_PATCH, json!({"spec": {"replicas": 1}})),
        (STRATEGIC_PATCH, json!({"spec": {"replicas": 0}})),
        (JSON_PATCH, json!([{"op": "replace", "path": "/spec/replicas", "value": 1}])),
        (MERGE_PATCH, json!({"spec": {"replicas": "x"}})),
        (MERGE_PATCH, json!({"spec": {"replicas": -2}})),
        (JSON_PATCH, json!([{"op": "remove", "path": "/none"}])),
    ] {
        let answer = probe
            .stop_recording()
            .patch(media, &format!("{one}/scale?fieldManager=scaler"), patch.clone())
            .await;
        probe.start_recording().record_note(&patch.to_string());
        match answer.code {
            200 => probe.record_value("patched", &json!([answer.body["kind"], answer.body["spec"]])),
            _ => probe.record_value("refused", &answer.body),
        }
    }
    let after = probe.stop_recording().get(&one).await;
    probe.start_recording().record_value("generation", &after.body["metadata"]["generation"]);
    let managers = after.body["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let scaler: Vec<Value> = managers.into_iter().filter(|entry| entry["manager"] == "scaler").collect();
    probe.record_value("the scaler's fields", &json!(scaler));
}

pub async fn workloads_keep_their_selector(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(APPS, "deployments");
    probe.stop_recording().post(&path, deployment(0)).await;
    let one = format!("{path}/one");
    probe.start_recording();
    probe.patch(MERGE_PATCH, &one, json!({"spec": {"selector": {"matchLabels": {"a": "x"}}, "template": {"metadata": {"labels": {"a": "x"}}}}})).await;
    probe.patch(MERGE_PATCH, &one, json!({"spec": {"template": {"metadata": {"labels": {"a": "x"}}}}})).await;
    let mut without = deployment(0);
    without["metadata"]["name"] = json!("two");
    for (field, value) in [
        ("/spec/template/spec/containers", json!([])),
        ("/spec/template/spec", json!({})),
        ("/spec/template/metadata", json!({})),
        ("/spec/selector", json!({})),
        ("/spec/selector", json!(null)),
        ("/spec/replicas", json!(-1)),
        ("/spec/template/spec/containers/0/image", json!("")),
        ("/spec/template/spec/containers/0/name", json!("Bad_Name")),
        ("/spec/template/spec/restartPolicy", json!("Never")),
        ("/spec", json!({})),
    ] {
        let mut object = without.clone();
        if let Some((parent, last)) = field.rsplit_once('/')
            && let Some(parent) = object.pointer_mut(parent)
        {
            match last.parse::<usize>() {
                Ok(at) => parent[at] = value,
                Err(_) => parent[last] = value,
            }
        }
        probe.post(&path, object).await;
    }
    let sets = probe.namespaced_path(APPS, "statefulsets");
    let mut set = deployment(0);
    set["spec"].as_object_mut().unwrap().remove("paused");
    probe.stop_recording().post(&sets, set).await;
    probe
        .start_recording()
        .patch(MERGE_PATCH, &format!("{sets}/one"), json!({"spec": {"serviceName": "x"}}))
        .await;
}
