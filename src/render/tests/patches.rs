//! Effects, order and mistakes of patches.

use super::*;
use crate::model::{Location, labels};
use crate::render::{FleetRenderer, RenderCache};

fn patch(target: &str, change: &str) -> String {
    format!("target: {target}\n{change}\n")
}

#[test]
fn patch_changes_matching_objects() {
    let merge = patch(
        "{kind: Deployment}",
        "merge: {spec: {paused: true, template: {spec: {containers: [{name: web, tty: true}, {name: side, image: 's:1'}]}}}}",
    );
    let files = [("templates/base/patches/a.yaml", merge.as_str())];
    check(&files, "/spec/paused", &json!(true));
    check(&files, &format!("{CONTAINER}/tty"), &json!(true));
    check(&files, &format!("{CONTAINER}/image"), &json!("web:1"));
    check(&files, "/spec/template/spec/containers/1", &json!({"name": "side", "image": "s:1"}));
    let rendered = web(&files).unwrap();
    assert_eq!(body(&rendered, "Service", "web")["spec"].get("paused"), None);
    let json = patch(
        "{name: w*, labels: {app: web}, kind: Service}",
        "json:\n  - {op: add, path: /spec/ports/-, value: {name: m, port: 9}}\n  - {op: remove, path: /spec/type}",
    );
    let rendered = web(&[("templates/base/patches/a.yaml", &json)]).unwrap();
    let spec = &body(&rendered, "Service", "web")["spec"];
    assert_eq!((spec["ports"].as_array().unwrap().len(), spec.get("type")), (2, None));
}

#[test]
fn service_ports_merge_by_port() {
    let merge = patch("{kind: Service}", "merge: {spec: {ports: [{port: 8080, appProtocol: http}]}}");
    let rendered = web(&[("apps/web/layer/patches/a.yaml", &merge)]).unwrap();
    let ports = &body(&rendered, "Service", "web")["spec"]["ports"];
    assert_eq!(ports[0]["appProtocol"], "http");
    assert_eq!(ports[0]["name"], "http", "what the template wrote stays");
    assert_eq!(ports.as_array().unwrap().len(), 1);
}

#[test]
fn patches_apply_in_layer_order() {
    let sets = |label: &str| {
        patch("{kind: Deployment}", &format!("merge: {{metadata: {{labels: {{by: {label}, {label}: x}}}}}}"))
    };
    let texts = ["base", "workload", "language", "run", "cluster", "app", "again"].map(sets);
    let own =
        WEB.replace("8080}", "8080, patches: [{target: {}, merge: {metadata: {labels: {by: inline}}}}]}");
    let layer = ("templates/cluster/x/layer.yaml", "clusters: {names: [bj1]}");
    let mut files = vec![
        ("templates/base/patches/z.yaml", texts[0].as_str()),
        ("templates/workload/deployment/patches/a.yaml", &texts[1]),
        ("templates/language/go/patches/a.yaml", &texts[2]),
        ("templates/runType/server/patches/a.yaml", &texts[3]),
        layer,
        ("templates/cluster/x/patches/a.yaml", &texts[4]),
        ("apps/web/layer/patches/a.yaml", &texts[5]),
        ("apps/web/layer/patches/b.yaml", &texts[6]),
    ];
    let by = |files: &[(&str, &str)], app: &str| {
        let rendered = run("web", &[&[("apps/web/app.yaml", app)], files].concat()).unwrap();
        let labels = body(&rendered, "Deployment", "web")["metadata"]["labels"].clone();
        let written = ["base", "workload", "language", "run", "cluster", "app", "again"];
        (labels["by"].as_str().unwrap().to_owned(), written.iter().filter(|it| labels[**it] == "x").count())
    };
    assert_eq!(by(&files, &own), ("inline".to_owned(), 7));
    for (left, expected) in
        [(7, "again"), (6, "app"), (5, "cluster"), (3, "run"), (2, "language"), (1, "workload")]
    {
        assert_eq!(by(&files, WEB).0, expected, "{left} files");
        files.pop();
        if expected == "cluster" {
            files.pop();
        }
    }
    assert_eq!(by(&files, WEB).0, "base");
}

#[test]
fn app_set_manifest_overrides_lower_patches() {
    let image = |kind: &str| {
        patch(
            &format!("{{kind: {kind}}}"),
            "merge: {spec: {template: {spec: {containers: [{name: main, image: 'patched:1', tty: true}]}}}}",
        )
    };
    let of = |file: &str| {
        let rendered = bbcc("{name: b, replicas: 1}", TEMPLATE, &[(file, &image("Deployment"))]).unwrap();
        body(&rendered, "Deployment", "b")["spec"]["template"]["spec"]["containers"][0].clone()
    };
    let low = of("templates/base/patches/a.yaml");
    assert_eq!((&low["image"], &low["tty"]), (&json!("r/x:v1"), &json!(true)));
    assert_eq!(of("apps/bbcc/layer/patches/a.yaml")["image"], "patched:1");
}

#[test]
fn patch_may_remove_object_of_objects_app() {
    let files = [
        ("apps/conf/app.yaml", OBJECTS),
        (
            "apps/conf/x/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n",
        ),
        (
            "templates/base/patches/a.yaml",
            "target: {name: a}\nmerge: {$patch: delete}\n---\ntarget: {}\nmerge: {data: {k: v}}\n",
        ),
    ];
    let rendered = run("conf", &files).unwrap();
    assert_eq!(rendered.objects.len(), 1);
    assert_eq!(body(&rendered, "ConfigMap", "b")["data"], json!({"k": "v"}));
}

#[test]
fn unused_patch_is_reported() {
    let none = patch("{kind: StatefulSet}", "merge: {a: b}");
    let (web, patch) = (("apps/web/app.yaml", WEB), ("templates/base/patches/a.yaml", none.as_str()));
    let mistakes = |files: &[(&str, &str)]| -> Vec<String> {
        let snapshot = snapshot(files);
        let fleet = fleet(&snapshot);
        let renders =
            FleetRenderer::new(&fleet, &snapshot, &NoCharts).render_all(&mut RenderCache::default());
        renders
            .results()
            .filter_map(|result| result.as_ref().err())
            .flatten()
            .map(ToString::to_string)
            .collect()
    };
    let place = Location::new("templates/base/patches/a.yaml", 1, 1).to_string();
    let idle = mistakes(&[web, patch]);
    assert!(idle.len() == 1 && idle[0].contains(&place) && idle[0].contains("E3062"), "{idle:?}");
    let stateful = WEB.replace("Deployment", "StatefulSet").replace("name: web", "name: other");
    assert!(mistakes(&[web, patch, ("apps/other/app.yaml", &stateful)]).is_empty(), "one target has it");
}

#[test]
fn patch_mistakes_have_location() {
    let file = "templates/base/patches/a.yaml";
    let check = |text: &str, line: &str, help: &str| check_mistake(web(&[(file, text)]), line, help);
    check(
        "target: {kind: Deployment}\n",
        "exactly one of merge and json at templates/base/patches/a.yaml:1:1",
        "json:",
    );
    check("target: {kinds: [a]}\nmerge: {}\n", "unknown field `kinds` in `target`", "did you mean `kind`?");
    check("merge: {}\n", "`target` is missing", "");
    check("# nothing\n", "error[E3061]: templates/base/patches/a.yaml is empty", "target");
    let deployment = |change: &str| patch("{kind: Deployment}", change);
    check(
        &deployment("merge:\n  spec: {$patch: remove}"),
        "spec.$patch: $patch is merge, replace or delete, not \"remove\" at templates/base/patches/a.yaml:1:1",
        "",
    );
    check(
        &deployment("merge: {metadata: {name: other}}"),
        "its kind or its name",
        "only the content of an object",
    );
    check(
        &deployment("json:\n  - {op: add, path: /spec/paused, value: true}\n  - {op: remove, path: /spec/x}"),
        "the patch does not fit Deployment",
        "`tutti render` shows the object",
    );
    check(&deployment("json: [{op: remove, path: spec/x}]"), "is not a JSON pointer", "/spec/");
    check(&deployment("json: [{op: add, path: /spec/x}]"), "`value` is missing", "");
    check(&deployment("json: [{op: append, path: /spec/x}]"), "`op` cannot be \"append\"", "valid: add");
}

#[test]
fn patch_cannot_remove_our_labels() {
    let merge = patch("{}", &format!("merge: {{metadata: {{labels: {{{}: other}}}}}}", labels::MANAGED_BY));
    let rendered = web(&[("templates/base/patches/a.yaml", &merge)]).unwrap();
    assert!(
        rendered
            .objects
            .iter()
            .all(|it| it.body.fields()["metadata"]["labels"][labels::MANAGED_BY] == "main")
    );
}
