//! Explanations of fields set by layers, patches and manifests.

use super::*;
use crate::model::NoCharts;
use crate::render::FleetRenderer;
use crate::render::trace::explain::{
    ExplainedField, ExplainedObject, FieldWriter, LayerLine, ValueOrigin, explain,
};
use crate::render::trace::touched_objects::{TouchedLine, touched_objects};

fn explained(app: &str, files: &[(&str, &str)]) -> Vec<ExplainedObject> {
    let snapshot = snapshot(files);
    let target = Target { app: AppId::new("default", app), cluster: "bj1".into() };
    let fleet = fleet(&snapshot);
    let mut renderer = FleetRenderer::new(&fleet, &snapshot, &NoCharts);
    renderer.discover_kinds(&target);
    let here = explain(&renderer, &target).expect("it renders");
    let at_desk = TemplatesOnly::<in_process_worker::InProcessWorker>::default();
    let mut renderer = FleetRenderer::new(&fleet, &snapshot, &at_desk);
    renderer.discover_kinds(&target);
    let there = explain(&renderer, &target).expect("it renders");
    assert_eq!(format!("{there:?}"), format!("{here:?}"), "by a worker");
    here
}

fn field(objects: &[ExplainedObject], kind: &str, path: &str) -> ExplainedField {
    let object = objects.iter().find(|object| &*object.id.kind == kind).expect("the kind");
    let found = object.fields.iter().find(|field| field.path == path);
    found.unwrap_or_else(|| panic!("no {path} in {:#?}", object.fields)).clone()
}

fn place(place: &LayerLine) -> String {
    format!("{}: {}:{}", place.layer, place.file, place.line)
}

fn origins(origins: &[ValueOrigin]) -> Vec<String> {
    let one = |origin: &ValueOrigin| format!("{} {}", place(&origin.place), origin.path);
    origins.iter().map(one).collect()
}

fn written(field: &ExplainedField) -> String {
    match &field.written {
        FieldWriter::Template(at) => format!("template {}", place(at)),
        FieldWriter::File(at) => format!("file {}", place(at)),
        FieldWriter::Patch(at) => format!("patch {}", place(at)),
        FieldWriter::Manifest(at) => format!("manifest {}", place(at)),
        FieldWriter::Tutti => "tutti".to_owned(),
    }
}

const OF_REPLICAS: &str = "template base: shipped/templates/base/_replicas.j2:3";

#[test]
fn value_is_explained_with_overridden_layers() {
    let zone = ("templates/cluster/zone/layer.yaml", "clusters: {matchLabels: {zone: bj}}");
    let own = WEB.replace("8080}", "8080, replicas: 9}");
    let files = [
        (
            "templates/workload/deployment/values.yaml",
            concat!("# 3\n", include_str!("../shipped/workload/deployment/values.yaml"), "replicas: 3\n"),
        ),
        ("templates/language/go/values.yaml", "replicas: 4\n"),
        ("templates/runType/server/values.yaml", "strategy: {}\nreplicas: 5\n"),
        zone,
        ("templates/cluster/zone/values.yaml", "# six\n\nreplicas: 6\n"),
        ("apps/web/layer/values.yaml", "replicas: 7\n"),
    ];
    let told = [
        "base: shipped/templates/base/values.yaml:2 replicas",
        "workload deployment: templates/workload/deployment/values.yaml:21 replicas",
        "language go: templates/language/go/values.yaml:1 replicas",
        "runType server: templates/runType/server/values.yaml:2 replicas",
        "cluster zone: templates/cluster/zone/values.yaml:3 replicas",
        "app: apps/web/layer/values.yaml:1 replicas",
    ];
    // The shipped run type sets it too, so base wins only without it.
    let without_shipped = ("templates/runType/server/values.yaml", "strategy: {}\n");
    for (count, files) in [
        (1, &[without_shipped][..]),
        (2, &files[..1]),
        (3, &files[..2]),
        (4, &files[..3]),
        (5, &files[..5]),
        (6, &files[..6]),
    ] {
        let mut files = files.to_vec();
        if count < 4 {
            files.push(without_shipped);
        }
        files.push(("apps/web/app.yaml", WEB));
        let field = field(&explained("web", &files), "Deployment", "spec.replicas");
        assert_eq!(written(&field), OF_REPLICAS);
        assert_eq!(origins(&field.from), [told[count - 1]]);
        let lower: Vec<&str> = told[..count - 1].iter().rev().copied().collect();
        assert_eq!(origins(&field.from[0].overrides), lower);
    }
    let mut all = files.to_vec();
    all.push(("apps/web/app.yaml", &own));
    let field = field(&explained("web", &all), "Deployment", "spec.replicas");
    assert_eq!(origins(&field.from), ["app: apps/web/app.yaml:4 spec.replicas"]);
    assert_eq!(field.from[0].overrides.len(), 6);
    assert_eq!(field.value, Some(json!(9)));
}

#[test]
fn pod_set_values_are_explained_with_line() {
    let text = app_set(
        "\n    {name: b-blue, replicas: 2, version: v3},\n    {name: b-green, image: 'r/y:w', replicas: 4}",
        TEMPLATE,
    );
    let text = text.replace("spec:\n", "spec:\n  replicas: 6\n");
    let objects = explained("bbcc", &[("apps/bbcc/app.yaml", &text)]);
    let replicas = field(&objects, "Deployment", "spec.replicas");
    assert_eq!(written(&replicas), OF_REPLICAS);
    assert_eq!(
        origins(&replicas.from),
        ["podSet: apps/bbcc/app.yaml:10 spec.clusterTopology.clusters[0].podSets[0].replicas"]
    );
    assert_eq!(origins(&replicas.from[0].overrides), ["base: shipped/templates/base/values.yaml:2 replicas"]);
    let image = field(&objects, "Deployment", "spec.template.spec.containers[0].image");
    assert_eq!(image.value, Some(json!("r/x:v3")));
    assert!(origins(&image.from).iter().any(|it| it.ends_with("podSets[0].version")), "{image:#?}");
    let team = field(&objects, "Deployment", "spec.template.metadata.labels.team");
    assert_eq!(written(&team), "manifest app: apps/bbcc/app.yaml:7");
    let port = field(&objects, "Deployment", "spec.template.spec.containers[0].ports[0].name");
    assert_eq!(written(&port), "manifest app: apps/bbcc/app.yaml:8");
    let ours = field(&objects, "Deployment", "metadata.labels.tutti.dev/managed-by");
    assert_eq!(written(&ours), "tutti");
}

#[test]
fn patches_are_explained_with_line() {
    let merge = "target: {kind: Deployment}\nmerge:\n  spec:\n    paused: true\n    template: {spec: {containers: [{name: web, image: 'mirror/web:1'}]}}\n";
    let json = "target: {kind: Deployment}\njson:\n  - {op: replace, path: /spec/minReadySeconds, value: 7}\n  - op: add\n    path: /metadata/labels/team\n    value: a\n";
    let own = WEB
        .replace("8080}", "8080, patches: [{target: {kind: Service},\n  merge: {spec: {type: NodePort}}}]}");
    let files = [
        ("apps/web/app.yaml", own.as_str()),
        ("templates/base/patches/a.yaml", merge),
        ("templates/language/go/patches/b.yaml", json),
    ];
    let objects = explained("web", &files);
    for (kind, path, expected) in [
        ("Deployment", "spec.paused", "patch base: templates/base/patches/a.yaml:4"),
        (
            "Deployment",
            "spec.template.spec.containers[0].image",
            "patch base: templates/base/patches/a.yaml:5",
        ),
        ("Deployment", "spec.minReadySeconds", "patch language go: templates/language/go/patches/b.yaml:3"),
        ("Deployment", "metadata.labels.team", "patch language go: templates/language/go/patches/b.yaml:6"),
        ("Service", "spec.type", "patch app: apps/web/app.yaml:5"),
    ] {
        assert_eq!(written(&field(&objects, kind, path)), expected, "{path}");
    }
}

#[test]
fn templates_are_explained_with_file_and_line() {
    let extending =
        "{% extends parent %}\n{% block container %}{{ super() }}\n          tty: true{% endblock %}\n";
    let files = [("apps/web/app.yaml", WEB), (SHOW, extending)];
    let objects = explained("web", &files);
    let of = |kind: &str, path: &str| written(&field(&objects, kind, path));
    assert_eq!(
        of("Deployment", "spec.template.spec.containers[0].tty"),
        format!("template workload deployment: {SHOW}:3")
    );
    assert_eq!(
        of("Deployment", "kind"),
        "template workload deployment: shipped/templates/workload/deployment/deployment.yaml.j2:4"
    );
    let port = field(&objects, "Service", "spec.ports[0].port");
    // `service.port or values.port`: the value 0 of the first decides too.
    let of_service = "workload deployment: shipped/templates/workload/deployment/values.yaml:19 service.port";
    assert_eq!(origins(&port.from), ["app: apps/web/app.yaml:4 spec.port", of_service]);
    assert!(origins(&port.because).iter().any(|it| it.ends_with("service.enabled")), "{port:#?}");
    let limit = field(&objects, "Deployment", "spec.template.spec.containers[0].resources.limits.memory");
    assert_eq!(
        origins(&limit.from),
        ["language go: shipped/templates/language/go/values.yaml:6 resources.limits.memory"]
    );
    assert_eq!(
        origins(&limit.from[0].overrides),
        ["base: shipped/templates/base/values.yaml:12 resources.limits.memory"]
    );
}

#[test]
fn objects_app_explains_files_and_hides_secrets() {
    let files = [
        ("apps/conf/app.yaml", OBJECTS),
        (
            "apps/conf/x/a.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  k: hidden\n",
        ),
        (
            "apps/conf/x/b.yaml.j2",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  vip: {{ cluster.vip }}\n",
        ),
    ];
    let objects = explained("conf", &files);
    let secret = field(&objects, "Secret", "data.k");
    assert_eq!((written(&secret).as_str(), &secret.value), ("file app: apps/conf/x/a.yaml:5", &None));
    let vip = field(&objects, "ConfigMap", "data.vip");
    assert_eq!(written(&vip), "template app: apps/conf/x/b.yaml.j2:5");
    assert_eq!(origins(&vip.from), ["cluster manifest: clusters/bj1.yaml:4 spec.vip"]);
}

/// Marks do not change the render of any shipped template.
#[test]
fn explain_covers_every_rendered_object() {
    for (workload, _) in WORKLOADS {
        let schedule = if workload == "CronJob" { ", schedule: '0 3 * * *'" } else { "" };
        let app = WEB.replace("workloadType: Deployment", &format!("workloadType: {workload}"));
        let app = app.replace("8080}", &format!("8080{schedule}, config: {{a: b}}, env: {{A: b}}}}"));
        let files = [("apps/web/app.yaml", app.as_str())];
        let rendered = run("web", &files).unwrap();
        let explained = explained("web", &files);
        let ids: Vec<_> = rendered.objects.iter().map(|object| &object.id).collect();
        assert_eq!(ids, explained.iter().map(|object| &object.id).collect::<Vec<_>>(), "{workload}");
        let unknown = explained.iter().flat_map(|object| &object.fields).filter(|field| {
            field.written == FieldWriter::Tutti
                && !field.path.contains("tutti.dev/")
                && field.path != "metadata.namespace"
        });
        assert_eq!(unknown.map(|field| &field.path).collect::<Vec<_>>(), Vec::<&String>::new(), "{workload}");
    }
}

#[test]
fn explain_knows_kinds_of_other_apps() {
    let app = |name: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: {name}}}\nspec: {{files: [{name}.yaml]}}\n"
        )
    };
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: tills.x.io}\nspec: {group: x.io, \
        scope: Namespaced, names: {kind: Till, plural: tills}, versions: [{name: v1}]}\n";
    let till = "apiVersion: x.io/v1\nkind: Till\nmetadata: {name: a}\nspec: {open: true}\n";
    let (kinds, shop) = (app("kinds"), app("shop"));
    let files = [
        ("x/app.yaml", &*kinds),
        ("x/kinds.yaml", definition),
        ("y/app.yaml", &*shop),
        ("y/shop.yaml", till),
    ];
    let objects = explained("shop", &files);
    assert_eq!(objects[0].id.namespace.as_deref(), Some("default"));
    let written = written(&field(&objects, "Till", "spec.open"));
    assert_eq!(written, "file app: y/shop.yaml:4");
    let snapshot = snapshot(&files);
    let fleet = fleet(&snapshot);
    let mut renderer = FleetRenderer::new(&fleet, &snapshot, &NoCharts);
    let of = |app: &str| Target { app: AppId::new("default", app), cluster: "bj1".into() };
    assert!(!renderer.discover_kinds(&of("kinds")), "it asks for no kind of others");
    assert!(renderer.discover_kinds(&of("shop")));
    let touch = TouchedLine { file: "y/shop.yaml".to_owned(), line: Some(4) };
    let touched = touched_objects(&renderer, &of("shop"), &touch).expect("it renders");
    assert!(touched.iter().all(|id| id.namespace.as_deref() == Some("default")) && touched.len() == 1);
}
