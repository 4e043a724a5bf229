//! Custom resources, discovery, and tables.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use super::owned::{apply, object, own_fields, tell};
use super::probe::{MERGE, Probe};

pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// A definition of widgets in a group of this run; returns the group, the definition's name and the definition.
pub fn definition(probe: &mut Probe) -> (String, String, Value) {
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

async fn defined(probe: &mut Probe) -> (String, String) {
    let (group, name, object) = definition(probe);
    probe.quiet().post(DEFINITIONS, object).await;
    let served = probe.at(&format!("/apis/{group}/v1"), "widgets");
    probe.until(&served, |_| true).await;
    probe.loud();
    (served, format!("{DEFINITIONS}/{name}"))
}

pub fn widget(group: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{group}.example.com/v1"), "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

pub async fn a_definition_is_served_until_it_goes(probe: &mut Probe) {
    let (group, name, object) = definition(probe);
    probe.loud().get(&format!("/apis/{group}/v1")).await;
    let made = probe.quiet().post(DEFINITIONS, object).await;
    probe.loud().show(
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
    let established = probe.until(&path, is_established).await;
    probe.show("established", &established["status"]);
    let widgets = probe.at(&format!("/apis/{group}/v1"), "widgets");
    probe.until(&widgets, |_| true).await;
    let served = probe.until(&format!("/apis/{group}/v1"), |_| true).await;
    // the hash is of the group's name
    probe.alias(served["resources"][0]["storageVersionHash"].as_str().unwrap_or("-"), "HASH");
    probe.get(&format!("/apis/{group}/v1")).await;
    probe.get(&widgets).await;
    let here = probe.namespace().to_owned();
    probe.quiet().post(&widgets, widget(&here, "one", json!({"size": 1}))).await;
    let gone = probe.quiet().delete(&path, None).await;
    probe.loud().show("deleted", &json!([gone.code, gone.body["kind"]]));
    probe.until_gone(&path).await;
    probe.until_gone(&widgets).await;
    probe.get(&format!("{widgets}/one")).await;
}

pub async fn custom_objects_are_pruned_and_filled(probe: &mut Probe) {
    let (widgets, path) = defined(probe).await;
    let group = probe.namespace().to_owned();
    let told = |probe: &mut Probe, what: &str, code: u16, body: &Value| match code {
        200 | 201 => {
            probe.show(what, &json!([code, own_fields(body), body["status"], body["metadata"]["generation"]]))
        }
        _ => probe.show(what, body),
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
        let answer = probe.quiet().post(&at, widget(&group, "one", spec.clone())).await;
        told(probe.loud(), &spec.to_string(), answer.code, &answer.body);
    }
    let mut sent = widget(&group, "one", json!({"size": 1}));
    sent["status"] = json!({"said": "at first"});
    let made = probe.quiet().post(&widgets, sent).await;
    told(probe.loud(), "a status in a create", made.code, &made.body);
    let one = format!("{widgets}/one");
    let patch = json!({"spec": {"size": 4}, "status": {"said": "hello", "replicas": 3, "unknown": 1}});
    let after = probe.quiet().patch(MERGE, &format!("{one}/status"), patch.clone()).await;
    told(probe.loud(), "a patch of its status", after.code, &after.body);
    let after = probe.quiet().patch(MERGE, &one, patch).await;
    told(probe.loud(), "a patch of itself", after.code, &after.body);
    probe.get(&format!("{one}/scale")).await;
    let after = probe.quiet().patch(MERGE, &format!("{one}/scale"), json!({"spec": {"replicas": 7}})).await;
    probe.loud().show("scaled", &json!([after.code, after.body["spec"], after.body["status"]]));
    probe
        .post(
            &format!("{widgets}?fieldValidation=Strict"),
            widget(&group, "two", json!({"size": 1, "unknown": 1})),
        )
        .await;
    probe.quiet().delete(&path, None).await;
    probe.loud();
}

pub async fn schemas_of_definitions_are_checked(probe: &mut Probe) {
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
        let answer = probe.quiet().post(&format!("{DEFINITIONS}?dryRun=All"), sent).await;
        let shown = json!([answer.code, answer.body["message"], answer.body["details"]["causes"]]);
        probe.loud().show(&format!("{pointer}: {value}"), &shown);
    }
}

/// One line for each resource: kind, scope, verbs, short names, categories.
fn resources(list: &Value) -> Value {
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

pub async fn resources_of_the_groups(probe: &mut Probe) {
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
        let list = probe.quiet().get(path).await;
        probe.loud().show(path, &resources(&list.body));
    }
    let api = probe.quiet().get("/api").await;
    probe.loud().show("/api", &json!([api.body["kind"], api.body["versions"]]));
}

/// `group/version resource verbs` of every resource and subresource, without custom groups.
fn aggregated(body: &Value, group_of_core: &str) -> Vec<String> {
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

pub async fn both_discoveries_tell_the_same(probe: &mut Probe) {
    let accept = [("accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")];
    for (root, groups) in [
        ("/api", vec!["v1"]),
        ("/apis", vec!["apps/v1", "batch/v1", "autoscaling/v2", "networking.k8s.io/v1"]),
    ] {
        let answer = probe.quiet().send(Method::GET, root, &accept, "").await;
        probe.loud().show(root, &json!([answer.code, answer.body["kind"], answer.body["apiVersion"]]));
        let all = aggregated(&answer.body, "");
        for group in groups {
            let list = probe.quiet().get(&format!("{root}/{group}")).await;
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
            probe.loud().show(group, &json!([equal, legacy.len()]));
        }
    }
    let accept = [("accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")];
    let answer = probe.quiet().send(Method::GET, "/api", &accept, "").await;
    let pods = answer
        .body
        .pointer("/items/0/versions/0/resources")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let pods = pods.into_iter().find(|one| one["resource"] == "bindings" || one["resource"] == "configmaps");
    probe.loud().show("one resource", &json!(pods));
}

async fn table(probe: &mut Probe, path: &str) {
    let answer = probe.quiet().send(Method::GET, path, &[("accept", TABLE)], "").await;
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
    probe.loud().show(&format!("table of {}", path.rsplit('/').next().unwrap_or(path)), &body);
}

pub async fn tables_of_kinds(probe: &mut Probe) {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"schedulerName": "nobody",
        "containers": [{"name": "main", "image": "nginx"}, {"name": "side", "image": "b"}]}});
    let pods = probe.at("/api/v1", "pods");
    let mut pod = template.clone();
    pod["metadata"]["name"] = json!("one");
    probe.quiet().post(&pods, pod).await;
    let deployments = probe.at("/apis/apps/v1", "deployments");
    let spec = json!({"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    probe.post(&deployments, json!({"metadata": {"name": "one"}, "spec": spec})).await;
    let configs = probe.at("/api/v1", "configmaps");
    probe.post(&configs, json!({"metadata": {"name": "one"}, "data": {"x": "1", "y": "2"}})).await;
    for path in
        [format!("{pods}/one"), pods, format!("{deployments}/one"), deployments, format!("{configs}/one")]
    {
        table(probe, &path).await;
    }
    table(probe, &probe.at("/api/v1", "secrets/none")).await;
}

pub async fn tables_of_custom_objects(probe: &mut Probe) {
    let (widgets, path) = defined(probe).await;
    let group = probe.namespace().to_owned();
    probe.quiet().post(&widgets, widget(&group, "one", json!({"size": 1}))).await;
    probe.post(&widgets, widget(&group, "two", json!({"size": 2, "color": "blue"}))).await;
    probe.patch(MERGE, &format!("{widgets}/two/status"), json!({"status": {"said": "hi"}})).await;
    table(probe, &widgets).await;
    table(probe, &format!("{widgets}/two")).await;
    probe.quiet().delete(&path, None).await;
    probe.loud();
}

/// Real servers report conflicts only: they have no mapping from a scale to the custom kind.
pub async fn a_scale_of_a_custom_kind_is_not_applied(probe: &mut Probe) {
    let (served, definition) = defined(probe).await;
    let group = probe.namespace().to_owned();
    let one = format!("{served}/one");
    let scale = format!("{one}/scale");
    let wanted = |fields: Value| object("autoscaling/v1", "Scale", fields);
    let replicas = |replicas: u32| wanted(json!({"spec": {"replicas": replicas}}));
    let main = |replicas: Value| {
        object(
            &format!("{group}.example.com/v1"),
            "Widget",
            json!({"spec": {"size": 1, "replicas": replicas}}),
        )
    };
    apply(probe, "a", &one, main(json!(1)), "/spec/replicas").await;
    apply(probe, "b", &scale, replicas(1), "/spec").await;
    apply(probe, "b", &scale, replicas(2), "/spec").await;
    apply(probe, "b", &format!("{scale}?force=true"), replicas(2), "/spec").await;
    apply(probe, "b", &scale, wanted(json!({"x": 1})), "/spec").await;
    apply(probe, "b", &scale, wanted(json!({"metadata": {"managedFields": []}})), "/spec").await;
    probe.quiet().put(&format!("{scale}?fieldManager=scaler"), replicas(2)).await;
    apply(probe, "b", &scale, replicas(3), "/spec").await;
    let after = probe.quiet().get(&one).await;
    tell(probe.loud(), "scaled", &after, "/spec/replicas");
    apply(probe, "a", &one, main(json!(3)), "/spec/replicas").await;
    let unowned = json!({"metadata": {"managedFields": [{}]}});
    probe.quiet().patch(MERGE, &one, unowned).await;
    apply(probe, "b", &scale, replicas(3), "/spec").await;
    apply(probe, "b", &scale, object("apps/v1", "Scale", json!({})), "/spec").await;
    probe.quiet().delete(&definition, None).await;
}

/// Results of a null: by the schema of its field, and by the verb that writes it.
pub async fn nulls_of_custom_objects(probe: &mut Probe) {
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
    probe.quiet().post(DEFINITIONS, definition).await;
    let served = probe.at(&format!("/apis/{group}/v1"), "widgets");
    probe.until(&served, |_| true).await;
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
        let sent = object(&format!("{group}/v1"), "Widget", fields.clone());
        apply(probe.loud(), "a", &one, sent.clone(), "").await;
        probe.quiet().delete(&one, None).await;
        probe.until_gone(&one).await;
        let mut sent = sent;
        sent["metadata"]["name"] = json!("two");
        let made = probe.quiet().post(&format!("{served}?dryRun=All"), sent).await;
        let shown = if made.code == 201 { own_fields(&made.body) } else { made.body["message"].clone() };
        probe.loud().show(&format!("{fields} in a create"), &json!([made.code, shown]));
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
            let sent = object(&format!("{group}/v1"), "Widget", json!({"spec": spec}));
            apply(probe.loud(), "a", &one, sent, "/spec").await;
        }
        probe.quiet().delete(&one, None).await;
        probe.until_gone(&one).await;
    }
    for (patch, spec) in [
        (json!({"spec": {"map": {"b": "y"}}}), json!({})),
        (json!({"spec": {"open": {"a": null, "b": "x"}}}), json!({"text": "y"})),
    ] {
        let sent = object(
            &format!("{group}/v1"),
            "Widget",
            json!({"spec": {"map": {"a": "x"}, "open": {"a": "x"}}}),
        );
        apply(probe.loud(), "a", &one, sent, "/spec").await;
        let after = probe.quiet().patch(MERGE, &format!("{one}?fieldManager=b"), patch).await;
        tell(probe.loud(), "patched", &after, "/spec");
        apply(probe, "a", &one, object(&format!("{group}/v1"), "Widget", json!({"spec": spec})), "/spec")
            .await;
        probe.quiet().delete(&one, None).await;
        probe.until_gone(&one).await;
    }
    // a map outside the schema, through an entry of another manager: with the map itself, and without
    for entry in [json!({"f:other": {"f:a": {}}}), json!({"f:other": {".": {}, "f:a": {}}})] {
        let mut sent = object(&format!("{group}/v1"), "Widget", json!({"spec": {}, "other": {"a": "x"}}));
        probe.quiet().post(&served, sent.clone()).await;
        let entries = json!([{"manager": "a", "operation": "Apply", "apiVersion": sent["apiVersion"],
            "fieldsType": "FieldsV1", "fieldsV1": entry}]);
        probe.quiet().patch(MERGE, &one, json!({"metadata": {"managedFields": entries}})).await;
        probe.loud().show("owned", &entry);
        sent.as_object_mut().unwrap().shift_remove("other");
        apply(probe, "a", &one, sent, "").await;
        probe.quiet().delete(&one, None).await;
        probe.until_gone(&one).await;
    }
    // a second apply gives the same
    let sent =
        object(&format!("{group}/v1"), "Widget", json!({"spec": {"nullable": null, "open": {"a": null}}}));
    apply(probe, "a", &one, sent.clone(), "/spec").await;
    let before = probe.quiet().get(&one).await.body["metadata"]["resourceVersion"].clone();
    apply(probe.loud(), "a", &one, sent, "/spec").await;
    let after = probe.quiet().get(&one).await.body["metadata"]["resourceVersion"].clone();
    probe.loud().show("nothing is written again", &json!(before == after));
    probe.quiet().delete(&format!("{DEFINITIONS}/{name}"), None).await;
}
