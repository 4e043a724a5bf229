//! Custom resources, discovery, and tables.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use super::apply_records::{applied_object, apply_and_show, own_fields, show_answer};
use super::probe::{ContractProbe, MERGE_PATCH};

pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TABLE_MEDIA_TYPE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// A definition of widgets in a group of this run; returns the group, the definition's name and the definition.
pub fn definition(probe: &mut ContractProbe) -> (String, String, Value) {
    let group = format!("{}.example.com", probe.namespace());
    let name = format!("widgets.{group}");
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 5},
            "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
            "replicas": {"type": "integer", "default": 1},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "count": {"type": "integer", "default": 2}}}},
            "any": {"x-kubernetes-int-or-string": true}}},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "said": {"type": "string"}}}}});
    let columns = json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "description": "Its color.", "priority": 1},
        {"name": "Said", "type": "string", "jsonPath": ".status.said"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]);
    let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    let object = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name}, "spec": {"group": group, "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": scale}, "additionalPrinterColumns": columns}]}});
    (group, name, object)
}

async fn define_widgets(probe: &mut ContractProbe) -> (String, String) {
    let (group, name, object) = definition(probe);
    probe.stop_recording().post(DEFINITIONS, object).await;
    let served = probe.namespaced_path(&format!("/apis/{group}/v1"), "widgets");
    probe.wait_until(&served, |_| true).await;
    probe.start_recording();
    (served, format!("{DEFINITIONS}/{name}"))
}

pub fn widget(group: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{group}.example.com/v1"), "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

pub async fn a_definition_is_served_until_it_goes(probe: &mut ContractProbe) {
    let (group, name, object) = definition(probe);
    probe.start_recording().get(&format!("/apis/{group}/v1")).await;
    let made = probe.stop_recording().post(DEFINITIONS, object).await;
    probe.start_recording().record_value(
        "created",
        &json!([
            made.code,
            made.body["spec"]["conversion"],
            made.body["spec"]["names"],
            made.body["status"]["conditions"]
        ]),
    );
    let path = format!("{DEFINITIONS}/{name}");
    let is_established = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == "Established" && one["status"] == "True")
    };
    let established = probe.wait_until(&path, is_established).await;
    probe.record_value("established", &established["status"]);
    let widgets = probe.namespaced_path(&format!("/apis/{group}/v1"), "widgets");
    probe.wait_until(&widgets, |_| true).await;
    let served = probe.wait_until(&format!("/apis/{group}/v1"), |_| true).await;
    // the hash is of the group's name
    probe.alias(served["resources"][0]["storageVersionHash"].as_str().unwrap_or("-"), "HASH");
    probe.get(&format!("/apis/{group}/v1")).await;
    probe.get(&widgets).await;
    let here = probe.namespace().to_owned();
    probe.stop_recording().post(&widgets, widget(&here, "one", json!({"size": 1}))).await;
    let gone = probe.stop_recording().delete(&path, None).await;
    probe.start_recording().record_value("deleted", &json!([gone.code, gone.body["kind"]]));
    probe.wait_until_gone(&path).await;
    probe.wait_until_gone(&widgets).await;
    probe.get(&format!("{widgets}/one")).await;
}

pub async fn custom_objects_are_pruned_and_filled(probe: &mut ContractProbe) {
    let (widgets, path) = define_widgets(probe).await;
    let group = probe.namespace().to_owned();
    let told = |probe: &mut ContractProbe, what: &str, code: u16, body: &Value| match code {
        200 | 201 => probe.record_value(
            what,
            &json!([code, own_fields(body), body["status"], body["metadata"]["generation"]]),
        ),
        _ => probe.record_value(what, body),
    };
    for spec in [
        json!({"size": 2, "unknown": 1, "open": {"kept": {"deep": true}}, "parts": [{"name": "a", "lost": 1}], "any": "x"}),
        json!({"size": 9, "color": "green"}),
        json!({"color": "blue"}),
        json!({"size": "two"}),
        json!({"size": 1, "parts": [{"name": "a"}, {"name": "a"}]}),
        json!({"size": 1, "parts": [{"count": 1}]}),
        json!({"size": 1, "any": true}),
        json!({"size": 1, "color": null, "replicas": null}),
    ] {
        let at = format!("{widgets}?dryRun=All");
        let answer = probe.stop_recording().post(&at, widget(&group, "one", spec.clone())).await;
        told(probe.start_recording(), &spec.to_string(), answer.code, &answer.body);
    }
    let mut sent = widget(&group, "one", json!({"size": 1}));
    sent["status"] = json!({"said": "at first"});
    let made = probe.stop_recording().post(&widgets, sent).await;
    told(probe.start_recording(), "a status in a create", made.code, &made.body);
    let one = format!("{widgets}/one");
    let patch = json!({"spec": {"size": 4}, "status": {"said": "hello", "replicas": 3, "unknown": 1}});
    let after = probe.stop_recording().patch(MERGE_PATCH, &format!("{one}/status"), patch.clone()).await;
    told(probe.start_recording(), "a patch of its status", after.code, &after.body);
    let after = probe.stop_recording().patch(MERGE_PATCH, &one, patch).await;
    told(probe.start_recording(), "a patch of itself", after.code, &after.body);
    probe.get(&format!("{one}/scale")).await;
    let after = probe
        .stop_recording()
        .patch(MERGE_PATCH, &format!("{one}/scale"), json!({"spec": {"replicas": 7}}))
        .await;
    probe
        .start_recording()
        .record_value("scaled", &json!([after.code, after.body["spec"], after.body["status"]]));
    probe
        .post(
            &format!("{widgets}?fieldValidation=Strict"),
            widget(&group, "two", json!({"size": 1, "unknown": 1})),
        )
        .await;
    probe.stop_recording().delete(&path, None).await;
    probe.start_recording();
}

pub async fn schemas_of_definitions_are_checked(probe: &mut ContractProbe) {
    let (_, _, object) = definition(probe);
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    for (pointer, value) in [
        ("/metadata/name", json!("other.example.com")),
        ("/spec/scope", json!("Everywhere")),
        ("/spec/names/kind", json!("wid get")),
        ("/spec/versions", json!([])),
        ("/spec/versions/0/storage", json!(false)),
        ("/spec/versions/0/schema", Value::Null),
        (schema, json!({"properties": {"spec": {"type": "object"}}})),
        (schema, json!({"type": "object", "properties": {"spec": {"properties": {}}}})),
        (schema, json!({"type": "object", "properties": {"spec": {"type": "array"}}})),
        (schema, json!({"type": "object", "properties": {"spec": {"type": "string", "default": 5}}})),
        (schema, json!({"type": "object", "properties": {"spec": {"type": "string", "pattern": "("}}})),
        ("/spec/versions/0/subresources/scale/specReplicasPath", json!(".status.x")),
        ("/spec/versions/0/additionalPrinterColumns/0/jsonPath", json!("spec[")),
    ] {
        let mut sent = object.clone();
        *sent.pointer_mut(pointer).unwrap() = value.clone();
        let answer = probe.stop_recording().post(&format!("{DEFINITIONS}?dryRun=All"), sent).await;
        let shown = json!([answer.code, answer.body["message"], answer.body["details"]["causes"]]);
        probe.start_recording().record_value(&format!("{pointer}: {value}"), &shown);
    }
}

/// One line for each resource: kind, scope, verbs, short names, categories.
fn resource_lines(list: &Value) -> Value {
    let texts = |value: &Value| {
        let mut all: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        all.sort_unstable();
        all.join(",")
    };
    let lines: BTreeMap<String, Value> = list["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            let name = one["name"].as_str().unwrap_or_default().to_owned();
            let said = format!(
                "{} {} singular={} {} short={} categories={}",
                one["kind"].as_str().unwrap_or_default(),
                one["namespaced"],
                one["singularName"].as_str().unwrap_or_default(),
                texts(&one["verbs"]),
                texts(&one["shortNames"]),
                texts(&one["categories"])
            );
            (name, json!(said))
        })
        .collect();
    json!(lines)
}

pub async fn resources_of_the_groups(probe: &mut ContractProbe) {
    for path in [
        "/api/v1",
        "/apis/apps/v1",
        "/apis/batch/v1",
        "/apis/autoscaling/v2",
        "/apis/networking.k8s.io/v1",
        "/apis/policy/v1",
        "/apis/rbac.authorization.k8s.io/v1",
        "/apis/coordination.k8s.io/v1",
        "/apis/discovery.k8s.io/v1",
        "/apis/apiextensions.k8s.io/v1",
    ] {
        let list = probe.stop_recording().get(path).await;
        probe.start_recording().record_value(path, &resource_lines(&list.body));
    }
    let api = probe.stop_recording().get("/api").await;
    probe.start_recording().record_value("/api", &json!([api.body["kind"], api.body["versions"]]));
}

/// `group/version resource verbs` of every resource and subresource, without custom groups.
fn aggregated_resource_lines(body: &Value, group_of_core: &str) -> Vec<String> {
    let mut out = Vec::new();
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for group in items(&body["items"]) {
        let name = group["metadata"]["name"].as_str().unwrap_or(group_of_core).to_owned();
        for version in items(&group["versions"]) {
            let at = format!("{name}/{}", version["version"].as_str().unwrap_or_default());
            for resource in items(&version["resources"]) {
                let plural = resource["resource"].as_str().unwrap_or_default().to_owned();
                out.push(format!("{at} {plural} {}", resource["verbs"]));
                for sub in items(&resource["subresources"]) {
                    out.push(format!(
                        "{at} {plural}/{} {}",
                        sub["subresource"].as_str().unwrap_or_default(),
                        sub["verbs"]
                    ));
                }
            }
        }
    }
    out.sort();
    out
}

pub async fn both_discoveries_tell_the_same(probe: &mut ContractProbe) {
    let accept = [("accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")];
    for (root, groups) in [
        ("/api", vec!["v1"]),
        ("/apis", vec!["apps/v1", "batch/v1", "autoscaling/v2", "networking.k8s.io/v1"]),
    ] {
        let answer = probe.stop_recording().send(Method::GET, root, &accept, "").await;
        probe
            .start_recording()
            .record_value(root, &json!([answer.code, answer.body["kind"], answer.body["apiVersion"]]));
        let all = aggregated_resource_lines(&answer.body, "");
        for group in groups {
            let list = probe.stop_recording().get(&format!("{root}/{group}")).await;
            let at = if root == "/api" { format!("/{group}") } else { group.to_owned() };
            let mut legacy: Vec<String> = list.body["resources"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|one| format!("{at} {} {}", one["name"].as_str().unwrap_or_default(), one["verbs"]))
                .collect();
            legacy.sort();
            let same: Vec<&String> = all.iter().filter(|line| line.starts_with(&format!("{at} "))).collect();
            let equal = same.iter().copied().eq(legacy.iter());
            probe.start_recording().record_value(group, &json!([equal, legacy.len()]));
        }
    }
    let accept = [("accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")];
    let answer = probe.stop_recording().send(Method::GET, "/api", &accept, "").await;
    let pods = answer
        .body
        .pointer("/items/0/versions/0/resources")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let pods = pods.into_iter().find(|one| one["resource"] == "bindings" || one["resource"] == "configmaps");
    probe.start_recording().record_value("one resource", &json!(pods));
}

async fn show_table(probe: &mut ContractProbe, path: &str) {
    let answer = probe.stop_recording().send(Method::GET, path, &[("accept", TABLE_MEDIA_TYPE)], "").await;
    let mut body = answer.body;
    for column in body["columnDefinitions"].as_array_mut().into_iter().flatten() {
        let said = |field: &str| column[field].as_str().unwrap_or_default().to_owned();
        let line = format!(
            "{} {} {} {}: {}",
            said("name"),
            said("type"),
            said("format"),
            column["priority"],
            said("description")
        );
        *column = json!(line);
    }
    let columns: Vec<String> =
        body["columnDefinitions"].as_array().into_iter().flatten().map(Value::to_string).collect();
    for row in body["rows"].as_array_mut().into_iter().flatten() {
        for (cell, column) in row["cells"].as_array_mut().into_iter().flatten().zip(&columns) {
            if column.starts_with("\"Age ") && cell.is_string() {
                *cell = json!("AGE");
            }
        }
        let kept =
            json!([row["object"]["kind"], row["object"]["apiVersion"], row["object"]["metadata"]["name"]]);
        row["object"] = kept;
    }
    if let Some(metadata) = body["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    probe
        .start_recording()
        .record_value(&format!("table of {}", path.rsplit('/').next().unwrap_or(path)), &body);
}

pub async fn tables_of_kinds(probe: &mut ContractProbe) {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"schedulerName": "nobody",
        "containers": [{"name": "main", "image": "nginx"}, {"name": "side", "image": "b"}]}});
    let pods = probe.namespaced_path("/api/v1", "pods");
    let mut pod = template.clone();
    pod["metadata"]["name"] = json!("one");
    probe.stop_recording().post(&pods, pod).await;
    let deployments = probe.namespaced_path("/apis/apps/v1", "deployments");
    let spec = json!({"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    probe.post(&deployments, json!({"metadata": {"name": "one"}, "spec": spec})).await;
    let configs = probe.namespaced_path("/api/v1", "configmaps");
    probe.post(&configs, json!({"metadata": {"name": "one"}, "data": {"x": "1", "y": "2"}})).await;
    for path in
        [format!("{pods}/one"), pods, format!("{deployments}/one"), deployments, format!("{configs}/one")]
    {
        show_table(probe, &path).await;
    }
    show_table(probe, &probe.namespaced_path("/api/v1", "secrets/none")).await;
}

pub async fn tables_of_custom_objects(probe: &mut ContractProbe) {
    let (widgets, path) = define_widgets(probe).await;
    let group = probe.namespace().to_owned();
    probe.stop_recording().post(&widgets, widget(&group, "one", json!({"size": 1}))).await;
    probe.post(&widgets, widget(&group, "two", json!({"size": 2, "color": "blue"}))).await;
    probe.patch(MERGE_PATCH, &format!("{widgets}/two/status"), json!({"status": {"said": "hi"}})).await;
    show_table(probe, &widgets).await;
    show_table(probe, &format!("{widgets}/two")).await;
    probe.stop_recording().delete(&path, None).await;
    probe.start_recording();
}

/// Real servers report conflicts only: they have no mapping from a scale to the custom kind.
pub async fn a_scale_of_a_custom_kind_is_not_applied(probe: &mut ContractProbe) {
    let (served, definition) = define_widgets(probe).await;
    let group = probe.namespace().to_owned();
    let one = format!("{served}/one");
    let scale = format!("{one}/scale");
    let wanted = |fields: Value| applied_object("autoscaling/v1", "Scale", fields);
    let replicas = |replicas: u32| wanted(json!({"spec": {"replicas": replicas}}));
    let main = |replicas: Value| {
        applied_object(
            &format!("{group}.example.com/v1"),
            "Widget",
            json!({"spec": {"size": 1, "replicas": replicas}}),
        )
    };
    apply_and_show(probe, "a", &one, main(json!(1)), "/spec/replicas").await;
    apply_and_show(probe, "b", &scale, replicas(1), "/spec").await;
    apply_and_show(probe, "b", &scale, replicas(2), "/spec").await;
    apply_and_show(probe, "b", &format!("{scale}?force=true"), replicas(2), "/spec").await;
    apply_and_show(probe, "b", &scale, wanted(json!({"x": 1})), "/spec").await;
    apply_and_show(probe, "b", &scale, wanted(json!({"metadata": {"managedFields": []}})), "/spec").await;
    probe.stop_recording().put(&format!("{scale}?fieldManager=scaler"), replicas(2)).await;
    apply_and_show(probe, "b", &scale, replicas(3), "/spec").await;
    let after = probe.stop_recording().get(&one).await;
    show_answer(probe.start_recording(), "scaled", &after, "/spec/replicas");
    apply_and_show(probe, "a", &one, main(json!(3)), "/spec/replicas").await;
    let unowned = json!({"metadata": {"managedFields": [{}]}});
    probe.stop_recording().patch(MERGE_PATCH, &one, unowned).await;
    apply_and_show(probe, "b", &scale, replicas(3), "/spec").await;
    apply_and_show(probe, "b", &scale, applied_object("apps/v1", "Scale", json!({})), "/spec").await;
    probe.stop_recording().delete(&definition, None).await;
}

/// Results of a null: by the schema of its field, and by the verb that writes it.
pub async fn nulls_of_custom_objects(probe: &mut ContractProbe) {
    let (group, name, mut definition) = definition(probe);
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    let text = json!({"type": "string"});
    let nullable = json!({"type": "string", "nullable": true});
    *definition.pointer_mut(schema).unwrap() = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"spec": {"type": "object", "properties": {
            "text": text, "nullable": nullable, "default": {"type": "string", "default": "d"},
            "both": {"type": "string", "default": "d", "nullable": true},
            "map": {"type": "object", "additionalProperties": text}, "maybe": {"type": "object", "additionalProperties": nullable},
            "list": {"type": "array", "items": text}, "nullables": {"type": "array", "items": nullable},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}});
    probe.stop_recording().post(DEFINITIONS, definition).await;
    let served = probe.namespaced_path(&format!("/apis/{group}/v1"), "widgets");
    probe.wait_until(&served, |_| true).await;
    let one = format!("{served}/one");
    for fields in [
        json!({"spec": {"nullable": null}}),
        json!({"spec": {"default": null, "both": null}}),
        json!({"spec": {"maybe": {"a": null}, "nullables": ["x", null]}}),
        json!({"spec": {"open": {"a": null, "b": [null, {"c": null}]}}}),
        json!({"spec": {}, "top": null, "other": {"a": null}}),
        json!({"spec": {}, "metadata": {"labels": null, "annotations": {"a": "b"}}}),
        json!({"spec": {"text": null}}),
        json!({"spec": {"map": null}}),
        json!({"spec": {"map": {"a": null}}}),
        json!({"spec": {"list": [null]}}),
        json!({"spec": null}),
    ] {
        let sent = applied_object(&format!("{group}/v1"), "Widget", fields.clone());
        apply_and_show(probe.start_recording(), "a", &one, sent.clone(), "").await;
        probe.stop_recording().delete(&one, None).await;
        probe.wait_until_gone(&one).await;
        let mut sent = sent;
        sent["metadata"]["name"] = json!("two");
        let made = probe.stop_recording().post(&format!("{served}?dryRun=All"), sent).await;
        let shown = if made.code == 201 { own_fields(&made.body) } else { made.body["message"].clone() };
        probe.start_recording().record_value(&format!("{fields} in a create"), &json!([made.code, shown]));
    }
    // the rest of a map whose fields are no longer applied
    for (before, after) in [
        (json!({"map": {"a": "x"}}), json!({})),
        (json!({"map": {"a": "x"}}), json!({"map": {}})),
        (json!({"open": {"a": "x"}}), json!({})),
        (json!({"open": {"a": {"b": "x"}, "c": "y"}}), json!({"open": {"c": "y"}})),
        (json!({"open": {"a": {"b": "x", "n": null}}}), json!({"open": {"a": {"n": null}}})),
        (json!({"nullable": null, "text": "x"}), json!({"text": "x"})),
        (json!({"list": ["a"], "nullables": [null]}), json!({"list": []})),
    ] {
        for spec in [before, after] {
            let sent = applied_object(&format!("{group}/v1"), "Widget", json!({"spec": spec}));
            apply_and_show(probe.start_recording(), "a", &one, sent, "/spec").await;
        }
        probe.stop_recording().delete(&one, None).await;
        probe.wait_until_gone(&one).await;
    }
    for (patch, spec) in [
        (json!({"spec": {"map": {"b": "y"}}}), json!({})),
        (json!({"spec": {"open": {"a": null, "b": "x"}}}), json!({"text": "y"})),
    ] {
        let sent = applied_object(
            &format!("{group}/v1"),
            "Widget",
            json!({"spec": {"map": {"a": "x"}, "open": {"a": "x"}}}),
        );
        apply_and_show(probe.start_recording(), "a", &one, sent, "/spec").await;
        let after = probe.stop_recording().patch(MERGE_PATCH, &format!("{one}?fieldManager=b"), patch).await;
        show_answer(probe.start_recording(), "patched", &after, "/spec");
        apply_and_show(
            probe,
            "a",
            &one,
            applied_object(&format!("{group}/v1"), "Widget", json!({"spec": spec})),
            "/spec",
        )
        .await;
        probe.stop_recording().delete(&one, None).await;
        probe.wait_until_gone(&one).await;
    }
    // a map outside the schema, through an entry of another manager: with the map itself, and without
    for entry in [json!({"f:other": {"f:a": {}}}), json!({"f:other": {".": {}, "f:a": {}}})] {
        let mut sent =
            applied_object(&format!("{group}/v1"), "Widget", json!({"spec": {}, "other": {"a": "x"}}));
        probe.stop_recording().post(&served, sent.clone()).await;
        let entries = json!([{"manager": "a", "operation": "Apply", "apiVersion": sent["apiVersion"],
            "fieldsType": "FieldsV1", "fieldsV1": entry}]);
        probe
            .stop_recording()
            .patch(MERGE_PATCH, &one, json!({"metadata": {"managedFields": entries}}))
            .await;
        probe.start_recording().record_value("owned", &entry);
        sent.as_object_mut().unwrap().shift_remove("other");
        apply_and_show(probe, "a", &one, sent, "").await;
        probe.stop_recording().delete(&one, None).await;
        probe.wait_until_gone(&one).await;
    }
    // a second apply gives the same
    let sent = applied_object(
        &format!("{group}/v1"),
        "Widget",
        json!({"spec": {"nullable": null, "open": {"a": null}}}),
    );
    apply_and_show(probe, "a", &one, sent.clone(), "/spec").await;
    let before = probe.stop_recording().get(&one).await.body["metadata"]["resourceVersion"].clone();
    apply_and_show(probe.start_recording(), "a", &one, sent, "/spec").await;
    let after = probe.stop_recording().get(&one).await.body["metadata"]["resourceVersion"].clone();
    probe.start_recording().record_value("nothing is written again", &json!(before == after));
    probe.stop_recording().delete(&format!("{DEFINITIONS}/{name}"), None).await;
}
