//! Custom resources: from their definition to its deletion.

use futures::StreamExt;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    PostParams, WatchParams,
};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::support::{instant_cluster, refusal_status, wait_until};

fn from_json(object: Value) -> DynamicObject {
    serde_json::from_value(object).unwrap()
}

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

fn definitions(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
}

fn widgets(client: &Client, version: &str) -> Api<DynamicObject> {
    Api::default_namespaced_with(client.clone(), &resource("test.dev", version, "Widget"))
}

fn version(name: &str, storage: bool, spec: &Value) -> Value {
    json!({"name": name, "served": true, "storage": storage, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": spec}}}}})
}

fn definition(plural: &str, versions: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.test.dev")},
        "spec": {"group": "test.dev", "scope": "Namespaced", "versions": versions,
            "names": {"kind": "Widget", "plural": plural}},
    })
}

fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "test.dev/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

fn has_condition(object: &DynamicObject, kind: &str, status: &str, reason: &str) -> bool {
    let conditions = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|one| one["type"] == kind && one["status"] == status && one["reason"] == reason)
}

/// Defines widgets with these fields, and waits until they are served.
async fn define_widgets(client: &Client, spec: &Value) {
    let api = definitions(client);
    let new = definition("widgets", json!([version("v1", true, spec)]));
    api.create(&PostParams::default(), &from_json(new)).await.unwrap();
    wait_until(&api, "widgets.test.dev", |one| {
        has_condition(one, "Established", "True", "InitialNamesAccepted")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_served_once_it_is_established() {
    let (_sandbox, client) = instant_cluster();
    let new = definition("widgets", json!([version("v1", true, &json!({}))]));
    let made = definitions(&client).create(&PostParams::default(), &from_json(new)).await.unwrap();
    let status =
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]});
    assert_eq!(made.data["status"], status);
    assert_eq!(refusal_status(widgets(&client, "v1").list(&ListParams::default()).await).code, 404);
    wait_until(&definitions(&client), "widgets.test.dev", |one| {
        has_condition(one, "Established", "True", "InitialNamesAccepted")
    })
    .await;
    assert_eq!(widgets(&client, "v1").list(&ListParams::default()).await.unwrap().items.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn objects_are_pruned_defaulted_and_checked() {
    let (_sandbox, client) = instant_cluster();
    define_widgets(
        &client,
        &json!({"size": {"type": "integer", "minimum": 1}, "mode": {"type": "string", "default": "A"}}),
    )
    .await;
    let api = widgets(&client, "v1");
    let made = api
        .create(&PostParams::default(), &from_json(widget("w", &json!({"size": 2, "odd": 1}))))
        .await
        .unwrap();
    assert_eq!(made.data["spec"], json!({"size": 2, "mode": "A"}));
    let status = refusal_status(
        api.create(&PostParams::default(), &from_json(widget("x", &json!({"size": 0})))).await,
    );
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(
        status.message,
        "Widget.test.dev \"x\" is invalid: spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"
    );
}

#[tokio::test(start_paused = true)]
async fn old_objects_are_read_with_current_defaults() {
    let (_sandbox, client) = instant_cluster();
    define_widgets(&client, &json!({"size": {"type": "integer"}})).await;
    widgets(&client, "v1")
        .create(&PostParams::default(), &from_json(widget("w", &json!({"size": 2}))))
        .await
        .unwrap();
    let versions = json!([
        version(
            "v1",
            false,
            &json!({"size": {"type": "integer"}, "mode": {"type": "string", "default": "A"}})
        ),
        version("v2", true, &json!({"size": {"type": "integer"}})),
    ]);
    let change = Patch::Merge(json!({"spec": {"versions": versions}}));
    let changed =
        definitions(&client).patch("widgets.test.dev", &PatchParams::default(), &change).await.unwrap();
    assert_eq!(changed.data["status"]["storedVersions"], json!(["v1", "v2"]));
    let old = widgets(&client, "v1").get("w").await.unwrap();
    assert_eq!(old.data["spec"], json!({"size": 2, "mode": "A"}));
    let new = widgets(&client, "v2").get("w").await.unwrap();
    assert_eq!(new.types.unwrap().api_version, "test.dev/v2");
    assert_eq!(new.data["spec"], json!({"size": 2}));
}

#[tokio::test(start_paused = true)]
async fn taken_name_is_rejected_until_free() {
    let (_sandbox, client) = instant_cluster();
    let api = definitions(&client);
    define_widgets(&client, &json!({})).await;
    let other = definition("gadgets", json!([version("v1", true, &json!({}))]));
    api.create(&PostParams::default(), &from_json(other)).await.unwrap();
    wait_until(&api, "gadgets.test.dev", |one| {
        has_condition(one, "NamesAccepted", "False", "ListKindConflict")
    })
    .await;
    api.delete("widgets.test.dev", &DeleteParams::default()).await.unwrap();
    wait_until(&api, "gadgets.test.dev", |one| {
        has_condition(one, "Established", "True", "InitialNamesAccepted")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn deleted_definition_ends_after_its_objects() {
    let (_sandbox, client) = instant_cluster();
    let api = definitions(&client);
    define_widgets(&client, &json!({})).await;
    let mut held = from_json(widget("held", &json!({})));
    held.finalizers_mut().push("test.dev/held".to_owned());
    let widgets = widgets(&client, "v1");
    widgets.create(&PostParams::default(), &held).await.unwrap();
    let going = api.delete("widgets.test.dev", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(has_condition(&going, "Terminating", "True", "InstanceDeletionPending"));
    assert_eq!(going.finalizers(), ["customresourcecleanup.apiextensions.k8s.io"]);
    let status =
        refusal_status(widgets.create(&PostParams::default(), &from_json(widget("late", &json!({})))).await);
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    wait_until(&api, "widgets.test.dev", |one| {
        has_condition(one, "Terminating", "True", "InstanceDeletionInProgress")
    })
    .await;
    assert!(widgets.get("held").await.unwrap().metadata.deletion_timestamp.is_some());
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    widgets.patch("held", &PatchParams::default(), &free).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    assert_eq!(refusal_status(api.get("widgets.test.dev").await).code, 404);
    assert_eq!(refusal_status(widgets.list(&ListParams::default()).await).code, 404);
}

#[tokio::test(start_paused = true)]
async fn unsupported_definition_features_are_rejected() {
    let (_sandbox, client) = instant_cluster();
    let api = definitions(&client);
    let refusal = |change: fn(&mut Value)| {
        let mut new = definition("widgets", json!([version("v1", true, &json!({"a": {"type": "string"}}))]));
        change(&mut new);
        let api = api.clone();
        async move {
            let status = refusal_status(api.create(&PostParams::default(), &from_json(new)).await);
            (status.code, status.reason)
        }
    };
    let blank_rule = |new: &mut Value| {
        new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
            json!([{"rule": " "}]);
    };
    assert_eq!(refusal(blank_rule).await, (422, "Invalid".to_owned()));
    let webhook = |new: &mut Value| {
        new["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://x"}}});
    };
    assert_eq!(refusal(webhook).await, (501, "NotSimulated".to_owned()));
    let two_stored = |new: &mut Value| {
        let mut second = new["spec"]["versions"][0].clone();
        second["name"] = json!("v2");
        new["spec"]["versions"] = json!([new["spec"]["versions"][0], second]);
    };
    assert_eq!(refusal(two_stored).await, (422, "Invalid".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn rules_hold_for_every_write() {
    let (_sandbox, client) = instant_cluster();
    let small = json!([{"rule": "self < 5", "message": "too large"}]);
    let fixed = json!([{"rule": "self == oldSelf", "message": "is fixed"}]);
    // An expression that cannot be evaluated is accepted.
    let odd = json!([{"rule": "self.unknownFunction()"}, {"rule": "self =="}]);
    let spec = json!({"size": {"type": "integer", "x-kubernetes-validations": small},
        "mode": {"type": "string", "default": "a", "x-kubernetes-validations": fixed},
        "odd": {"type": "string", "x-kubernetes-validations": odd}});
    define_widgets(&client, &spec).await;
    let api = widgets(&client, "v1");
    let new = |name: &str, size: u32| from_json(widget(name, &json!({"size": size, "odd": "x"})));
    api.create(&PostParams::default(), &new("one", 1)).await.unwrap();
    let told = |status: kube::core::Status| (status.code, status.message);
    let too_large = |name: &str| {
        let why = "is invalid: spec.size: Invalid value: 7: too large";
        (422, format!("Widget.test.dev \"{name}\" {why}"))
    };
    assert_eq!(
        told(refusal_status(api.create(&PostParams::default(), &new("two", 7)).await)),
        too_large("two")
    );
    let applied = Patch::Apply(widget("three", &json!({"size": 7})));
    assert_eq!(
        told(refusal_status(api.patch("three", &PatchParams::apply("a"), &applied).await)),
        too_large("three")
    );
    let applied = Patch::Apply(widget("one", &json!({"size": 7})));
    let parameters = PatchParams::apply("a").force();
    assert_eq!(told(refusal_status(api.patch("one", &parameters, &applied).await)), too_large("one"));
    let merged = Patch::Merge(json!({"spec": {"size": 7}}));
    assert_eq!(
        told(refusal_status(api.patch("one", &PatchParams::default(), &merged).await)),
        too_large("one")
    );
    let mut live = api.get("one").await.unwrap();
    live.data["spec"]["size"] = json!(7);
    assert_eq!(
        told(refusal_status(api.replace("one", &PostParams::default(), &live).await)),
        too_large("one")
    );
    let merged = Patch::Merge(json!({"spec": {"mode": "b"}}));
    let (code, message) = told(refusal_status(api.patch("one", &PatchParams::default(), &merged).await));
    assert_eq!(
        (code, message.ends_with("spec.mode: Invalid value: \"b\": is fixed")),
        (422, true),
        "{message}"
    );
    // A changed rule of the definition applies immediately.
    let larger = json!([version(
        "v1",
        true,
        &json!({"size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 9"}]}})
    )]);
    let change = Patch::Merge(json!({"spec": {"versions": larger}}));
    definitions(&client).patch("widgets.test.dev", &PatchParams::default(), &change).await.unwrap();
    api.create(&PostParams::default(), &new("two", 7)).await.unwrap();
    assert_eq!(refusal_status(api.create(&PostParams::default(), &new("three", 9)).await).code, 422);
}

/// An object with a tree of this depth: whether it is accepted, and read back equal.
async fn tree_is_kept(client: &Client, levels: usize) -> bool {
    let tree = (0..levels).fold(json!({}), |inner, _| json!({"x": inner}));
    let api = widgets(client, "v1");
    let name = format!("deep-{levels}");
    let new = widget(&name, &json!({"tree": tree}));
    if api.patch(&name, &PatchParams::apply("a"), &Patch::Apply(&new)).await.is_err() {
        return false;
    }
    // a cluster at rest holds only text
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let read = api.get(&name).await.unwrap();
    assert_eq!(read.data["spec"], new["spec"]);
    true
}

#[tokio::test(start_paused = true)]
async fn deep_objects_are_kept_or_refused() {
    let (_sandbox, client) = instant_cluster();
    define_widgets(
        &client,
        &json!({"tree": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}),
    )
    .await;
    assert!(tree_is_kept(&client, 50).await);
    assert!(tree_is_kept(&client, 117).await);
    assert!(!tree_is_kept(&client, 118).await);
    assert!(!tree_is_kept(&client, 200).await);
}

/// As on a real server: a watch of the kind does not wait for events that never come.
#[tokio::test(start_paused = true)]
async fn watches_end_with_the_definition() {
    let (_sandbox, client) = instant_cluster();
    define_widgets(&client, &json!({})).await;
    let mut events = widgets(&client, "v1").watch(&WatchParams::default(), "0").await.unwrap().boxed();
    definitions(&client).delete("widgets.test.dev", &DeleteParams::default()).await.unwrap();
    let ended = async { while events.next().await.is_some() {} };
    tokio::time::timeout(std::time::Duration::from_secs(30), ended).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn overlong_replica_paths_are_refused() {
    let (_sandbox, client) = instant_cluster();
    let mut scaled = version("v1", true, &json!({}));
    let path = |steps: usize| format!(".spec{}", ".a".repeat(steps));
    for (steps, code) in [(200, 501), (50, 201)] {
        scaled["subresources"]["scale"] =
            json!({"specReplicasPath": path(steps), "statusReplicasPath": ".status.replicas"});
        let new = from_json(definition("widgets", json!([scaled])));
        let made = definitions(&client).create(&PostParams::default(), &new).await;
        assert_eq!(made.map_or_else(|error| refusal_status::<()>(Err(error)).code, |_| 201), code);
    }
}

#[tokio::test(start_paused = true)]
async fn patch_cannot_change_the_kind() {
    let (_sandbox, client) = instant_cluster();
    define_widgets(&client, &json!({"size": {"type": "integer"}})).await;
    let api = widgets(&client, "v1");
    api.create(&PostParams::default(), &from_json(widget("one", &json!({})))).await.unwrap();
    for (change, message) in [
        (json!({"kind": "Other"}), "must be Widget"),
        (json!({"kind": true}), "cannot unmarshal bool into Go struct field .kind of type string"),
        (json!({"kind": null}), "Object 'Kind' is missing"),
        (json!({"apiVersion": "v2"}), "must be test.dev/v1"),
        (json!({"apiVersion": null}), "Object 'apiVersion' is missing"),
    ] {
        let patch = Patch::Merge(&change);
        let told = refusal_status(api.patch("one", &PatchParams::default(), &patch).await).message;
        assert!(told.contains(message), "{change}: {told}");
    }
}
