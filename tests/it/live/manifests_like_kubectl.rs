//! Typical files applied by tutti and by `kubectl apply --server-side` give the same objects, field by field.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::support::{LiveFixture, definition, open_schema};

const SCENE: &str = "reading";
const KUBECTL_NAMESPACE: &str = "reading-kubectl";

/// A kind without a schema, with or without the status subresource.
fn open_kind(group: &str, kind: &str, version: &str, has_status: bool) -> Value {
    let mut definition = definition(group, kind, version, &open_schema());
    if has_status {
        definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    }
    definition
}

/// By file name.
fn files() -> BTreeMap<&'static str, String> {
    let open = |name: &str, rest: &str| {
        format!("apiVersion: reading.example.com/v1\nkind: Open\nmetadata: {{name: {name}}}\n{rest}\n")
    };
    let map = |name: &str, data: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {data}\n")
    };
    let large = |name: &str| map(name, &format!("{{text: {}}}", "x".repeat(600_000)));
    let json_map = |name: &str, value: &str| {
        format!(
            r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{name}"}}, "data": {{"a": "{value}"}}}}"#
        )
    };
    BTreeMap::from([
        ("01-list.yaml", "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: m01a}, data: {a: b}}\n- {apiVersion: v1, kind: Secret, metadata: {name: s01}, stringData: {a: b}}\n".to_owned()),
        ("02-roles.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleList\nitems:\n- metadata: {name: r02}\n  rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n".to_owned()),
        ("03-maps.json", r#"{"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "m03"}, "data": {"a": "b"}}]}"#.to_owned()),
        ("04-lines.json", json_map("m04a", "1") + "\n" + &json_map("m04b", "2") + "\n"),
        ("05-beside.json", json_map("m05a", "1") + &json_map("m05b", "2")),
        ("06-pair.json", json_map("m06", r"\ud83d\ude00 \u00e4 \\ud83d \/")),
        ("07-tabs.json", json_map("m07", "x").replace(", ", ",\n\t")),
        ("08-pair.yaml", json_map("m08", r"\ud83d\ude00")),
        ("09-addresses.yaml", open("o09", "spec: {addresses: [a, fd00::], other: [fd00::, '::1', a:b]}")),
        ("10-colon.yaml", open("o10", "spec: {a: fd00::, b: {c: x:}}")),
        ("11-status.yaml", open("o11", "spec: {a: 1}\nstatus: {open: true, at: [1, 2]}")),
        ("12-status.yaml", "apiVersion: reading.example.com/v1\nkind: Watched\nmetadata: {name: w12}\nspec: {a: 1}\nstatus: {open: true}\n".to_owned()),
        ("13-status.yaml", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i13}\nspec: {defaultBackend: {service: {name: web, port: {number: 80}}}}\nstatus: {loadBalancer: {ingress: [{ip: 10.1.2.3}]}}\n".to_owned()),
        ("14-both.yaml", json_map("m14a", "1") + "\n---\n" + &map("m14b", "{a: b}")),
        ("15-comments.yaml", "# first\n---\n# second\n--- # third\n".to_owned() + &map("m15", "{a: b}") + "---\n"),
        ("16-lines.yaml", map("m16", "{a: b}\n").replace('\n', "\r\n")),
        ("17-mark.yaml", "\u{feff}".to_owned() + &map("m17", "{a: b}")),
        ("18-scalars.yaml", open("o18", "spec: {a: yes, b: 0644, c: 1_000, d: 1e3, e: 0x1F, f: .5, g: 1.0, h: 'on', i: off, j: ~x, k: 12:30, l: 2001-01-01}")),
        ("19-anchors.yaml", open("o19", "spec:\n  base: &base {a: 1, b: [x]}\n  made:\n    <<: *base\n    a: 2\n  again: *base")),
        ("20-numbers.json", r#"{"apiVersion": "reading.example.com/v1", "kind": "Open", "metadata": {"name": "o20"}, "spec": {"a": 1e3, "b": 1.0, "c": 1.5e-3, "d": 9007199254740993, "e": -1}}"#.to_owned()),
        ("21-oam.yaml", "apiVersion: core.oam.dev/v1beta1\nkind: Application\nmetadata: {name: a21}\nspec: {components: [{name: web, type: webservice}]}\n".to_owned()),
        ("22-large.yaml", large("m22a") + "---\n" + &large("m22b")),
        ("23-blocks.yaml", map("m23", "\n  a: |\n    x: [fd00::]\n  b: >-\n    one\n    two\n  c: |+\n    end\n\n")),
    ])
}

/// Without what differs between objects, and without our metadata.
fn comparable_object(mut object: Value) -> Value {
    let Some(metadata) = object["metadata"].as_object_mut() else { return object };
    let of_each = ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "namespace"];
    metadata.retain(|name, _| !of_each.contains(&name.as_str()));
    for field in ["labels", "annotations"] {
        if let Some(entries) = metadata.get_mut(field).and_then(Value::as_object_mut) {
            entries.retain(|key, _| !key.starts_with("tutti.dev/"));
        }
        if metadata.get(field).is_some_and(|entries| entries == &json!({})) {
            metadata.shift_remove(field);
        }
    }
    object
}

const KINDS: &str = "configmaps,secrets,roles,ingresses.networking.k8s.io,opens.reading.example.com,watcheds.reading.example.com,applications.core.oam.dev";

#[tokio::test]
async fn manifests_match_kubectl() {
    let Some(scene) = LiveFixture::with_newest_and_oldest(SCENE).await else { return };
    let definitions = [
        open_kind("reading.example.com", "Open", "v1", false),
        open_kind("reading.example.com", "Watched", "v1", true),
        open_kind("core.oam.dev", "Application", "v1beta1", false),
    ];
    let files = files();
    let theirs = scene.folder().join("theirs");
    std::fs::create_dir_all(&theirs).expect("a folder");
    let app = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: web, namespace: {SCENE}}}\nspec: {{files: ['objects/*']}}\n"
    );
    scene.worktree.write("apps/web/app.yaml", &app);
    for (name, text) in &files {
        scene.worktree.write(&format!("apps/web/objects/{name}"), text);
        std::fs::write(theirs.join(name), text).expect("a file");
    }
    for cluster in scene.clusters() {
        for definition in &definitions {
            cluster
                .kubectl_with_input(&["apply", "--server-side", "-f", "-"], &definition.to_string())
                .await
                .expect("a definition");
            let name = format!("crd/{}", definition["metadata"]["name"].as_str().expect("a name"));
            cluster.kubectl(&["wait", "--for", "condition=established", &name]).await.expect("established");
        }
        _ = cluster.kubectl(&["create", "namespace", KUBECTL_NAMESPACE]).await;
    }
    scene.worktree.publish("files");
    let ended = scene.run(&scene.arguments(&["run", "--once"], &[])).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let mut compared = 0;
    for cluster in scene.clusters() {
        for name in files.keys() {
            let file = theirs.join(name).display().to_string();
            let apply = ["apply", "--server-side", "-n", KUBECTL_NAMESPACE, "-f", &file];
            cluster.kubectl(&apply).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let all = async |namespace: &str, more: &[&str]| {
            let get = [&["get", KINDS, "-n", namespace, "-o", "json"][..], more].concat();
            let list: Value =
                serde_json::from_str(&cluster.kubectl(&get).await.expect("a list")).expect("JSON");
            let items =
                list["items"].as_array().cloned().unwrap_or_default().into_iter().map(comparable_object);
            let named = items.map(|it| (format!("{} {}", it["kind"], it["metadata"]["name"]), it));
            named.filter(|(name, _)| !name.contains("kube-root-ca")).collect::<BTreeMap<_, _>>()
        };
        let (ours, theirs) =
            (all(SCENE, &["-l", "tutti.dev/managed-by"]).await, all(KUBECTL_NAMESPACE, &[]).await);
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
        for (name, object) in &ours {
            assert_eq!(object, &theirs[name], "{name} on {}", cluster.server());
        }
        compared += ours.len();
    }
    println!("{} files, {compared} objects compared on {} servers", files.len(), scene.clusters().len());
    let ended = scene.run(&scene.arguments(&["plan"], &[])).await;
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!["configure", "create", "refuse"].iter().any(|word| shown.contains(word)), "{shown}");
    for cluster in scene.clusters() {
        for definition in &definitions {
            let name = definition["metadata"]["name"].as_str().expect("a name");
            cluster.kubectl(&["delete", "crd", name, "--wait=false"]).await.expect("deleted");
        }
        cluster.kubectl(&["delete", "namespace", KUBECTL_NAMESPACE, "--wait=false"]).await.expect("deleted");
    }
}
