mod app_sets;
mod explain;
mod facts;
mod in_process_worker;
mod layer_file;
mod memory;
mod patches;
mod places;
mod shared_by_waves;
mod verdicts;

use std::sync::Arc;

use serde_json::{Value, json};

use super::render;
use crate::fleet::{Fleet, Target, assemble};
use crate::manifest;
use crate::model::{
    AppId, ChartProvider, Diagnostic, NoCharts, PathHistory, RenderedTarget, Snapshot, TemplatesOnly,
};

const CLUSTER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bj1, labels: {zone: bj, environment: test}}\nspec: {vip: 10.0.0.1, connection: {sandbox: {}}}\n";
const WEB: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {name: web}\nspec: {workloadType: Deployment, developLanguage: go, runType: server, image: 'web:1', port: 8080}\n";
const SHOW: &str = "templates/workload/deployment/deployment.yaml.j2";

fn snapshot(files: &[(&str, &str)]) -> Snapshot {
    Snapshot::of_texts([("clusters/bj1.yaml", CLUSTER)].into_iter().chain(files.iter().copied()))
}

fn fleet(snapshot: &Snapshot) -> Fleet {
    let fleet = assemble(manifest::read(snapshot), snapshot);
    assert!(fleet.is_valid(), "{:#?}", fleet.diagnostics);
    fleet
}

/// Renders here and by workers, and compares.
fn run(app: &str, files: &[(&str, &str)]) -> Result<RenderedTarget, Vec<Diagnostic>> {
    let here = run_here(app, files);
    assert_eq!(
        run_by(&TemplatesOnly::<in_process_worker::InProcessWorker>::default(), app, files),
        here,
        "by a worker"
    );
    // Mistakes have no columns then.
    let reporting = run_by(&in_process_worker::reporting(), app, files);
    assert_eq!(reporting.ok(), here.as_ref().ok().cloned(), "by a worker that reports lines");
    here
}

fn run_here(app: &str, files: &[(&str, &str)]) -> Result<RenderedTarget, Vec<Diagnostic>> {
    run_by(&NoCharts, app, files)
}

fn run_by(
    charts: &dyn ChartProvider,
    app: &str,
    files: &[(&str, &str)],
) -> Result<RenderedTarget, Vec<Diagnostic>> {
    let snapshot = snapshot(files);
    let target = Target { app: AppId::new("default", app), cluster: "bj1".into() };
    render(&fleet(&snapshot), &snapshot, charts, &target)
}

fn web(files: &[(&str, &str)]) -> Result<RenderedTarget, Vec<Diagnostic>> {
    run("web", &[&[("apps/web/app.yaml", WEB)], files].concat())
}

fn body(rendered: &RenderedTarget, kind: &str, name: &str) -> Value {
    let found = rendered.objects.iter().find(|object| &*object.kind.kind == kind && &*object.id.name == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}")).body.fields()
}

/// The value at a JSON pointer of the Deployment `web`.
fn check(files: &[(&str, &str)], pointer: &str, expected: &Value) {
    let rendered = web(files).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    assert_eq!(body(&rendered, "Deployment", "web").pointer(pointer), Some(expected));
}

/// Parts of the only mistake: its line, and its help.
fn check_mistake(result: Result<RenderedTarget, Vec<Diagnostic>>, line: &str, help: &str) {
    let mistakes = result.expect_err("an error");
    assert_eq!(mistakes.len(), 1, "{mistakes:#?}");
    assert!(mistakes[0].to_string().contains(line), "{} has not {line}", mistakes[0]);
    let helped = mistakes[0].help.as_deref().unwrap_or("");
    assert!(helped.contains(help), "{helped} has not {help}");
}

const REPLICAS: &str = "/spec/replicas";
const CONTAINER: &str = "/spec/template/spec/containers/0";

#[test]
fn higher_layers_win() {
    let (base, server) = (include_str!("shipped/base/values.yaml"), "templates/runType/server/values.yaml");
    assert!(base.contains("replicas: 1"));
    check(&[], REPLICAS, &json!(2));
    check(&[(server, "replicas: 4")], REPLICAS, &json!(4));
    let zone = ("templates/cluster/zone/layer.yaml", "clusters: {matchLabels: {zone: bj}}");
    let of_zone = ("templates/cluster/zone/values.yaml", "replicas: 5");
    check(&[(server, "replicas: 4"), zone, of_zone], REPLICAS, &json!(5));
    let both =
        ("templates/cluster/both/layer.yaml", "clusters: {matchLabels: {zone: bj, environment: test}}");
    let of_both = ("templates/cluster/both/values.yaml", "replicas: 6");
    check(&[zone, of_zone, both, of_both], REPLICAS, &json!(6));
    let name = ("templates/cluster/a/layer.yaml", "clusters: {names: [bj1]}");
    let of_name = ("templates/cluster/a/values.yaml", "replicas: 7");
    check(&[zone, of_zone, both, of_both, name, of_name], REPLICAS, &json!(7));
    let of_app = ("apps/web/layer/values.yaml", "replicas: 8");
    check(&[name, of_name, of_app], REPLICAS, &json!(8));
    let own = WEB.replace("8080}", "8080, replicas: 9}");
    let rendered = run("web", &[("apps/web/app.yaml", &own), of_app]).unwrap();
    assert_eq!(body(&rendered, "Deployment", "web").pointer(REPLICAS), Some(&json!(9)));
    let elsewhere = ("templates/cluster/zone/layer.yaml", "clusters: {matchLabels: {zone: gz}}");
    check(&[elsewhere, of_zone], REPLICAS, &json!(2));
}

#[test]
fn app_variables_merge_with_layer_variables() {
    let own = WEB.replace("8080}", "8080, env: {GOTRACEBACK: single, LEVEL: 3}}");
    let rendered = run("web", &[("apps/web/app.yaml", &own)]).unwrap();
    let expected = json!([{"name": "GOTRACEBACK", "value": "single"}, {"name": "LEVEL", "value": "3"}]);
    assert_eq!(body(&rendered, "Deployment", "web").pointer(CONTAINER).unwrap()["env"], expected);
}

const WORKLOADS: [(&str, &str); 6] = [
    ("Deployment", "Deployment"),
    ("StatefulSet", "StatefulSet"),
    ("DaemonSet", "DaemonSet"),
    ("Job", "Job"),
    ("CronJob", "CronJob"),
    ("InPlaceSet", "CloneSet"),
];

/// `web`, with another type of workload, another run type and more fields.
fn component(workload: &str, run_type: &str, more: &str) -> Result<RenderedTarget, Vec<Diagnostic>> {
    let schedule = if workload == "CronJob" { ", schedule: '0 3 * * *'" } else { "" };
    let app = WEB.replace("workloadType: Deployment", &format!("workloadType: {workload}"));
    let app = app.replace("runType: server", &format!("runType: {run_type}"));
    run("web", &[("apps/web/app.yaml", &app.replace("8080}", &format!("8080{schedule}{more}}}")))])
}

fn kinds(rendered: &RenderedTarget) -> Vec<&str> {
    rendered.objects.iter().map(|object| &*object.kind.kind).collect()
}

#[test]
fn every_shipped_language_renders() {
    for language in ["go", "java", "python", "node", "php", "generic"] {
        let app = WEB.replace("developLanguage: go", &format!("developLanguage: {language}"));
        let rendered = run("web", &[("apps/web/app.yaml", &app)]).unwrap();
        assert_eq!(kinds(&rendered), ["Service", "Deployment"], "{language}");
    }
}

#[test]
fn every_shipped_workload_and_run_type_renders() {
    for (workload, kind) in WORKLOADS {
        let runs_on = !workload.ends_with("Job");
        for run_type in ["server", "worker", "task"] {
            let rendered = component(workload, run_type, "").unwrap();
            let serves = runs_on && run_type == "server";
            let headless = usize::from(workload == "StatefulSet");
            assert_eq!(rendered.objects.len(), 1 + headless + usize::from(serves), "{workload} {run_type}");
            let object = rendered.objects.iter().find(|object| &*object.kind.kind == kind).unwrap();
            let spec = &object.body.fields()["spec"];
            let template = spec.pointer("/jobTemplate/spec/template").or(spec.get("template")).unwrap();
            let container = &template["spec"]["containers"][0];
            assert_eq!(container["image"], "web:1");
            assert_eq!(container.get("readinessProbe").is_some(), serves, "{workload} {run_type}");
            assert_eq!(template["spec"].get("restartPolicy").is_some(), !runs_on, "{workload} {run_type}");
            assert_eq!(spec.get("selector").is_some(), runs_on, "{workload}");
            let scales = matches!(workload, "Deployment" | "StatefulSet" | "InPlaceSet");
            assert_eq!(spec.get("replicas").is_some(), scales, "{workload}");
        }
    }
}

#[test]
fn changed_job_gets_new_name() {
    let name = |image: &str| {
        let app = WEB.replace("Deployment", "Job").replace("web:1", image);
        run("web", &[("apps/web/app.yaml", &app)]).unwrap().objects[0].id.name.to_string()
    };
    let (first, second) = (name("web:1"), name("web:2"));
    assert!(first.starts_with("web-") && first.len() == "web-12345678".len(), "{first}");
    assert_ne!(first, second);
    assert_eq!(first, name("web:1"));
}

#[test]
fn config_change_rolls_out_pods() {
    let rendered = component("StatefulSet", "worker", ", config: {app.yaml: 'a: 1'}").unwrap();
    assert_eq!(body(&rendered, "ConfigMap", "web-config")["data"], json!({"app.yaml": "a: 1"}));
    let template =
        |rendered: &RenderedTarget| body(rendered, "StatefulSet", "web")["spec"]["template"].clone();
    let first = template(&rendered);
    assert_eq!(first["spec"]["volumes"][0]["configMap"]["name"], "web-config");
    assert_eq!(first["spec"]["containers"][0]["volumeMounts"][0]["mountPath"], "/etc/web");
    let other = component("StatefulSet", "worker", ", config: {app.yaml: 'a: 2'}").unwrap();
    assert_ne!(first["metadata"]["annotations"], template(&other)["metadata"]["annotations"]);
}

#[test]
fn autoscaler_owns_replicas() {
    let rendered = component("Deployment", "server", ", replicas: 3, autoscale: {maxReplicas: 9}").unwrap();
    assert_eq!(kinds(&rendered), ["Service", "Deployment", "HorizontalPodAutoscaler"]);
    assert_eq!(body(&rendered, "Deployment", "web").pointer(REPLICAS), None);
    let spec = &body(&rendered, "HorizontalPodAutoscaler", "web")["spec"];
    assert_eq!(spec["scaleTargetRef"], json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}));
    assert_eq!((&spec["minReplicas"], &spec["maxReplicas"]), (&json!(3), &json!(9)));
    assert_eq!(spec["metrics"][0]["resource"]["target"]["averageUtilization"], 70);
    let off = component("Deployment", "server", ", replicas: 0, autoscale: {cpu: 50}").unwrap();
    assert_eq!(kinds(&off), ["Service", "Deployment"]);
    assert_eq!(body(&off, "Deployment", "web").pointer(REPLICAS), Some(&json!(0)));
    let both = component("StatefulSet", "worker", ", autoscale: {cpu: 50, memory: 80}").unwrap();
    let metrics = body(&both, "HorizontalPodAutoscaler", "web")["spec"]["metrics"].clone();
    assert_eq!(metrics.as_array().unwrap().len(), 2);
}

#[test]
fn disruption_budget_selects_all_pods_of_app() {
    let values = ("apps/web/layer/values.yaml", "podDisruptionBudget: {maxUnavailable: 1}");
    let rendered = web(&[values]).unwrap();
    let expected = json!({"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}});
    assert_eq!(body(&rendered, "PodDisruptionBudget", "web")["spec"], expected);
}

#[test]
fn pod_and_container_fields_are_copied() {
    let values = "nodeSelector: {disk: ssd}\ncommand: [run]\nvolumes: [{name: v, emptyDir: {}}]\nvolumeMounts: [{name: v, mountPath: /v}]";
    let files = [("apps/web/layer/values.yaml", values)];
    check(&files, "/spec/template/spec/nodeSelector", &json!({"disk": "ssd"}));
    check(&files, "/spec/template/spec/volumes", &json!([{"name": "v", "emptyDir": {}}]));
    check(&files, &format!("{CONTAINER}/command"), &json!(["run"]));
    check(&files, &format!("{CONTAINER}/volumeMounts"), &json!([{"name": "v", "mountPath": "/v"}]));
}

#[test]
fn template_extends_next_lower_template() {
    let middle = "{% extends parent %}{% block container %}\n          tty: true{% endblock %}";
    let top = "{% extends parent %}{% block container %}{{ super() }}\n          stdin: true{% endblock %}";
    let files = [(SHOW, middle), ("apps/web/layer/deployment.yaml.j2", top)];
    check(&files, &format!("{CONTAINER}/tty"), &json!(true));
    check(&files, &format!("{CONTAINER}/stdin"), &json!(true));
    check(&files, &format!("{CONTAINER}/image"), &json!("web:1"));
    check_mistake(
        web(&[("templates/base/x.yaml.j2", "{% extends parent %}")]),
        "error[E3005]: templates/base/x.yaml.j2 extends its parent, and no lower layer has a file of its name",
        "",
    );
}

#[test]
fn include_takes_highest_file_of_name() {
    let files = [
        ("templates/base/_note.j2", "note: low"),
        ("templates/language/go/_note.j2", "note: high"),
        (
            "templates/base/note.yaml.j2",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata:\n  {% include '_note.j2' %}\n",
        ),
    ];
    let rendered = web(&files).unwrap();
    assert_eq!(body(&rendered, "ConfigMap", "note")["data"], json!({"note": "high"}));
    check_mistake(
        web(&[("templates/base/x.yaml.j2", "{% include '/etc/passwd' %}")]),
        "E3005",
        "files of their layers only",
    );
}

#[test]
fn undefined_variable_has_place_and_suggestion() {
    let template = "kind: A\nname: {{ values.prot }}\n";
    let expected =
        "error[E3002]: values.prot is undefined in templates/base/x.yaml.j2 at templates/base/x.yaml.j2:2:10";
    check_mistake(web(&[("templates/base/x.yaml.j2", template)]), expected, "did you mean `port`?");
    let deep = "{% if cluster.meta.a.b == 1 %}{% endif %}";
    check_mistake(web(&[("templates/base/x.yaml.j2", deep)]), "cluster.meta.a is undefined", "");
    let local = "{% for item in [{'a': 1}] %}{{ item.b }}{% endfor %}";
    check_mistake(web(&[("templates/base/x.yaml.j2", local)]), "item.b is undefined", "");
    let filtered = "{{ 'values.x' ~ (values.imgae | tojson) }}";
    check_mistake(
        web(&[("templates/base/x.yaml.j2", filtered)]),
        "values.imgae is undefined",
        "did you mean `image`?",
    );
    let unknown = "{{ valeus }}";
    check_mistake(
        web(&[("templates/base/x.yaml.j2", unknown)]),
        "valeus is undefined",
        "did you mean `values`?",
    );
    let inside = "{% extends parent %}{% block pod %}{% for x in values.list %}{% endfor %}{% endblock %}";
    check_mistake(
        web(&[(SHOW, inside)]),
        "values.list is undefined in templates/workload/deployment/deployment.yaml.j2",
        "",
    );
}

#[test]
fn no_filter_hides_an_undefined_variable() {
    let mut hidden = Vec::new();
    for expression in [
        "| tojson",
        "| string",
        "| upper",
        "| length",
        "| items",
        "| join(',')",
        "~ 'x'",
        "| int",
        "| trim",
        "| list",
        "| b64",
        "| replace('a', 'b')",
        "| bool",
        "| first",
        "| dictsort",
        "| map('upper')",
        "| unique",
        "| sort",
        "| reverse",
        "| last",
        "| max",
        "| sum",
        "| float",
        "| abs",
        "| round",
        "| lower",
        "| capitalize",
        "| title",
        "| batch(2)",
        "| slice(2)",
        "| select",
        "| reject",
        "| selectattr('a')",
        "| groupby('a')",
        "| lines",
        "| split",
        "| indent(2)",
        "| safe",
        "| escape",
        "| pprint",
        "| attr('a')",
        "| min",
        "| format",
        "| count",
        "| chain",
        "| zip",
    ] {
        let template = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {{{{ values.nope {expression} }}}}}}\n"
        );
        let result = web(&[("templates/base/x.yaml.j2", &template)]);
        hidden.extend(result.is_ok().then_some(expression));
    }
    assert_eq!(hidden, Vec::<&str>::new());
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: {{ values.nope | default('b') }}}\n";
    assert_eq!(
        body(&web(&[("templates/base/x.yaml.j2", template)]).unwrap(), "ConfigMap", "a")["data"]["a"],
        "b"
    );
}

#[test]
fn invalid_and_endless_templates_are_refused() {
    let file = "templates/base/x.yaml.j2";
    check_mistake(web(&[(file, "a: 1\n{% if %}\n")]), "E3001", "");
    check_mistake(
        web(&[(file, "a\n{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}")]),
        "E3004",
        "loop",
    );
    check_mistake(web(&[(file, "a: 1\n{{ 'x' | nothing }}")]), "E3003", "");
}

#[test]
fn growing_text_is_refused_at_its_line() {
    let file = "templates/base/x.yaml.j2";
    let check = |text: &str| check_mistake(web(&[(file, text)]), "x.yaml.j2:2:", "loop");
    let doubled = "{% set n = namespace(x='0123456789abcdef') %}{% for i in range(60) %}{% set n.x %}\n{{ n.x }}{{ n.x }}{% endset %}";
    check(&format!("{doubled}{{% endfor %}}"));
    check("{% set x = 'a' * 5000 %}\n{{ x | replace('a', x) }}");
    check("{% set x = 'a' * 5000 %}\n{{ ([x] * 5000) | join }}");
    check("{% set x = 'a' * 99999999 %}\n{{ x }}");
    check("{% set x = 'a\\n' * 999999 %}\n{{ x | indent(900) }}");
    let wrong = web(&[(file, "{{ 'a' * 999999999 }}")]).expect_err("an error");
    assert!(wrong[0].message.contains("too large"), "{wrong:#?}");
}

#[test]
fn template_output_must_be_objects() {
    let file = "templates/base/x.yaml.j2";
    check_mistake(web(&[(file, "kind: {{ 'a: b: c' }}\n")]), "E3011", "line 1 is `kind: a: b: c`");
    check_mistake(
        web(&[(file, "apiVersion: v1\nkind: ConfigMap\nmetadata: {}")]),
        "has no metadata.name",
        "",
    );
    check_mistake(web(&[(file, "kind: ConfigMap\nmetadata: {name: a}")]), "has no apiVersion", "");
    check_mistake(web(&[(file, "- a")]), "is not a Kubernetes object", "");
    check_mistake(
        web(&[(file, "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nsops: {mac: x}")]),
        "is encrypted with SOPS",
        "only files of Objects apps",
    );
    check_mistake(
        web(&[(file, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {b: 1}}")]),
        "labels of ConfigMap a: b is 1",
        "quotes",
    );
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    check_mistake(
        web(&[(file, &format!("{map}---\n{map}"))]),
        "ConfigMap default/a on bj1 is rendered twice",
        "",
    );
    let hook = map.replace("{name: a}", "{name: a, annotations: {helm.sh/hook: pre-install}}\ndata: {b: c}");
    check_mistake(
        web(&[(file, &format!("{map}---\n{hook}"))]),
        "ConfigMap default/a on bj1 is rendered twice",
        "give the hook another name",
    );
    check_mistake(
        web(&[(SHOW, ""), ("templates/workload/deployment/service.yaml.j2", "# none\n")]),
        "default/web on bj1 renders to no object",
        "",
    );
}

#[test]
fn equal_cluster_layers_may_not_conflict() {
    let one = ("templates/cluster/one/layer.yaml", "clusters: {matchLabels: {zone: bj}}");
    let two = ("templates/cluster/two/layer.yaml", "clusters: {matchLabels: {environment: test}}");
    let (file_one, file_two) = ("templates/cluster/one/values.yaml", "templates/cluster/two/values.yaml");
    let result = web(&[one, two, (file_one, "probes: {path: /a}"), (file_two, "probes: {path: /b}")]);
    check_mistake(
        result,
        "templates/cluster/one/ and templates/cluster/two/ both fit cluster bj1 equally well, and both set values.probes.path",
        "more specific",
    );
    check(&[one, two, (file_one, "probes: {path: /a}"), (file_two, "replicas: 3")], REPLICAS, &json!(3));
    let (template_one, template_two) = ("templates/cluster/one/x.yaml.j2", "templates/cluster/two/x.yaml.j2");
    check_mistake(
        web(&[one, two, (template_one, ""), (template_two, "")]),
        "both set the template x.yaml.j2",
        "",
    );
    check_mistake(web(&[("templates/cluster/x/values.yaml", "a: 1")]), "has no layer.yaml", "matchLabels");
    check_mistake(
        web(&[("templates/cluster/x/layer.yaml", "clusters: {matchLables: {}}")]),
        "matchLables",
        "did you mean",
    );
}

#[test]
fn unknown_layer_files_are_refused() {
    check_mistake(
        web(&[("templates/base/patches/a.yml", "{}")]),
        "templates/base/patches/a.yml has no meaning in a layer",
        "patches/*.yaml",
    );
    check_mistake(
        web(&[("templates/base/value.yaml", "{}")]),
        "templates/base/value.yaml has no meaning in a layer",
        "",
    );
    check_mistake(web(&[("templates/base/values.yaml", "- a\n")]), "E3021", "");
}

fn app_set(pod_sets: &str, template: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {{name: bbcc}}\nspec:\n  serviceName: inner.example.com\n  labels: {{team: a}}\n  podSpec: {{template: {template}}}\n  clusterTopology: {{clusters: [{{name: bj1, meta: {{sym-available-zone: bj4}}, podSets: [{pod_sets}]}}]}}\n"
    )
}

const TEMPLATE: &str =
    "{spec: {containers: [{name: main, image: 'r/x:v1', ports: [{containerPort: 80, name: web}]}]}}";

fn bbcc(pod_sets: &str, template: &str, files: &[(&str, &str)]) -> Result<RenderedTarget, Vec<Diagnostic>> {
    run("bbcc", &[&[("apps/bbcc/app.yaml", app_set(pod_sets, template).as_str())], files].concat())
}

const OBJECTS: &str =
    "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: conf}\nspec: {files: [x/*]}\n";

#[test]
fn objects_app_reads_files_and_templates() {
    let files = [
        ("apps/conf/app.yaml", OBJECTS),
        (
            "apps/conf/x/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {raw: '{{ x }}'}\n---\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: other}\nstringData: {k: v}\n",
        ),
        (
            "apps/conf/x/b.yaml.j2",
            "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\nvip: {{ cluster.vip }}\nlist: {{ values.list }}\nnone: {{ ring }}\n",
        ),
        ("templates/base/values.yaml", "list: [1, {a: b}]"),
    ];
    let rendered = run("conf", &files).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    assert_eq!(body(&rendered, "ConfigMap", "a")["data"]["raw"], "{{ x }}");
    assert_eq!(body(&rendered, "ConfigMap", "a")["metadata"]["namespace"], "default");
    assert_eq!(body(&rendered, "Secret", "s")["data"], json!({"k": "dg=="}));
    let thing = body(&rendered, "Thing", "t");
    assert_eq!((&thing["vip"], &thing["list"]), (&json!("10.0.0.1"), &json!([1, {"a": "b"}])));
    assert_eq!(thing.get("none"), Some(&Value::Null), "its server decides");
    assert_eq!(thing["metadata"].get("namespace"), None, "nothing is known of other kinds");
    let ids: Vec<_> = rendered.objects.iter().map(|object| object.id.clone()).collect();
    assert!(ids.is_sorted());
}

#[test]
fn objects_have_our_labels_and_stable_hash() {
    let rendered = web(&[]).unwrap();
    let metadata = &body(&rendered, "Service", "web")["metadata"];
    assert_eq!(metadata["labels"]["tutti.dev/managed-by"], "main");
    assert_eq!(metadata["labels"]["tutti.dev/app"], "default.web");
    assert_eq!(
        metadata["annotations"],
        json!({"tutti.dev/app": "default/web", "tutti.dev/origin": "/Service/default/web"})
    );
    // Files that the app does not read change nothing, those that it reads do.
    let hashes =
        |rendered: &RenderedTarget| rendered.objects.iter().map(|object| object.hash).collect::<Vec<_>>();
    let other = web(&[("README.md", "x"), ("templates/language/java/values.yaml", "replicas: 9")]).unwrap();
    assert_eq!(hashes(&rendered), hashes(&other));
    assert_eq!(rendered.digest(), other.digest());
    let changed = web(&[("templates/language/go/values.yaml", "env: {A: b}")]).unwrap();
    let differing =
        hashes(&rendered).iter().zip(&hashes(&changed)).filter(|(one, other)| one != other).count();
    assert_eq!(differing, 1);
}

#[test]
fn template_that_panics_engine_is_reported() {
    let result = web(&[("apps/web/layer/x.yaml.j2", "{% import '_workload.j2' as w % imp %}")]);
    check_mistake(result, "apps/web/layer/x.yaml.j2 is not a template", "on its left");
}

#[test]
fn template_output_is_bounded() {
    let wide = format!("a: 1\n# {}{{{{ 1 +", "x".repeat(70_000));
    check_mistake(web(&[("apps/web/layer/x.yaml.j2", &wide)]), "apps/web/layer/x.yaml.j2:2:1", "break it");
    let text = "x".repeat(1000);
    let template =
        format!("{{% for a in range(400) %}}{{% for b in range(400) %}}{text}{{% endfor %}}{{% endfor %}}");
    check_mistake(web(&[("apps/web/layer/x.yaml.j2", &template)]), "error[E3006]", "");
}

#[test]
fn revision_is_last_commit_of_inputs() {
    let revision = |changed: &str, files: &[(&str, &str)]| {
        let mut snapshot = snapshot(&[&[("apps/web/app.yaml", WEB)], files].concat());
        snapshot.history = Arc::new(PathHistory {
            commits: vec!["new".into(), "old".into()],
            last_change_index: [("apps/web/app.yaml".to_owned(), 1), (changed.to_owned(), 0)].into(),
        });
        let target = Target { app: AppId::new("default", "web"), cluster: "bj1".into() };
        render(&fleet(&snapshot), &snapshot, &NoCharts, &target).unwrap().revision.to_string()
    };
    for input in ["apps/web/layer/", "templates/base/", "templates/language/go/", "clusters/bj1.yaml"] {
        assert_eq!(revision(input, &[]), "new", "{input}");
    }
    let rings = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec: {rings: [{name: test, clusters: {}}]}\n";
    for other in ["apps/", "README.md", "templates/language/java/", "rings.yaml"] {
        assert_eq!(revision(other, &[("rings.yaml", rings)]), "old", "{other}");
    }
    let reads_ring = ("apps/web/layer/x.yaml.j2", "{% if ring == 'prod' %}{% endif %}");
    assert_eq!(revision("rings.yaml", &[("rings.yaml", rings), reads_ring]), "new");
}

#[test]
fn secret_values_must_be_strings_and_stay_hidden() {
    let check = |fields: &str, line: &str| {
        let file = format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\n{fields}\n");
        let result = web(&[("apps/web/layer/secret.yaml.j2", &file)]);
        let mistakes = result.as_ref().expect_err("an error");
        assert!(!format!("{mistakes:?}").contains("4711"), "{mistakes:?}");
        check_mistake(result, line, "");
    };
    check("stringData: {pin: 4711}", "error[E3018]: stringData of Secret s: pin is not a text");
    check("data: {pin: [4711]}", "error[E3018]: data of Secret s: pin is not a text");
    check("data: 4711", "error[E3018]: data of Secret s is not a map");
}

#[test]
fn ciphertext_is_never_applied() {
    let text = "ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]";
    let secret =
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{pin: '{text}'}}\n");
    check_mistake(
        web(&[("apps/web/layer/secret.yaml.j2", &secret)]),
        "error[E3305]: stringData.pin of Secret s is encrypted with SOPS, and was not opened",
        "the file lost its `sops`",
    );
    check_mistake(
        web(&[("apps/web/layer/values.yaml", &format!("pins: ['{text}']\n"))]),
        "apps/web/layer/values.yaml is encrypted with SOPS",
        "only files of Objects apps",
    );
}

#[test]
fn namespace_follows_scope_of_kind() {
    let definition = |scope: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: tills.x.io}}\nspec: \
             {{group: x.io, scope: {scope}, names: {{kind: Till, plural: tills}}, versions: [{{name: v1}}]}}\n---\n"
        )
    };
    let till = "apiVersion: x.io/v1\nkind: Till\nmetadata: {name: a}\nstatus: {open: true}\n";
    let elsewhere = "apiVersion: x.io/v1\nkind: Till\nmetadata: {name: a, namespace: b}\n";
    let check = |text: &str, namespace: Option<&str>, warnings: usize| {
        let rendered = web(&[("apps/web/layer/more.yaml.j2", text)]).expect("no error");
        let till = rendered.objects.iter().find(|it| &*it.id.kind == "Till").expect("a Till");
        assert_eq!((till.id.namespace.as_deref(), rendered.warnings.len()), (namespace, warnings), "{text}");
        till.body.fields().get("status").is_some()
    };
    assert!(check(&format!("{}{till}", definition("Namespaced")), Some("default"), 0), "its status is kept");
    check(&format!("{}{till}", definition("Cluster")), None, 0);
    check(&format!("{}{elsewhere}", definition("Cluster")), None, 1);
    check(&format!("{}{elsewhere}", definition("Namespaced")), Some("b"), 0);
    assert!(!check(till, None, 0), "nothing is known of the kind");
    check(elsewhere, Some("b"), 0);
}
