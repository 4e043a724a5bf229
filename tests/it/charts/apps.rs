//! Tests of chart apps: from the manifest to objects, through all stages of `tutti render`.

use serde_json::{Value, json};
use tutti::chart::{
    ChartLint, ChartRenderLimits, ChartRenderer, ChartService, RendererProgram, RequestRecorder,
};
use tutti::fleet::assemble;
use tutti::manifest;
use tutti::model::{ChartProvider, Diagnostic, NoCharts, ObjectHook, RenderedObject, Snapshot};
use tutti::render::{self, RenderCache, Renders};

use super::support::{helm_programs, library_renderer};

const CLUSTER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bj1}\nspec: {connection: {sandbox: {}}}\n";
const INSTANCE: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {charts: \
                        {repositories: [{name: dmall, url: charts/}]}}\n";
const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
const VALUES: &str = "replicaCount: 1\nimage: {registry: docker.io, repository: web, tag: v0}\ncolour: red\nsize: 1\n\
                      gone: {a: 1, b: 2}\n";
const TEMPLATE: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  \
                        replicas: {{ .Values.replicaCount }}\n  selector: {matchLabels: {x: a}}\n  template:\n    \
                        metadata: {labels: {x: a}}\n    spec: {containers: [{name: a, image: {{ .Values.image | toJson \
                        | quote }}, args: [{{ .Values.colour }}, {{ .Values.size | quote }}, {{ .Values.gone | toJson | \
                        quote }}]}]}\n";

fn app(pod_set: &str, more: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {{name: web{more}}}\nspec:\n  podSpec: {{deployType: \
         Helm, chart: {{chartUrl: {{url: dmall/web, chartVersion: 1.0.0}}}}}}\n  clusterTopology: {{clusters: [{{name: \
         bj1, podSets: [{{name: web-blue{pod_set}}}]}}]}}\n"
    )
}

fn renders(app: &str, files: &[(&str, &str)], service: &dyn ChartProvider) -> Renders {
    let of_all = [
        ("clusters/bj1.yaml", CLUSTER),
        ("tutti.yaml", INSTANCE),
        ("charts/web/Chart.yaml", CHART),
        ("charts/web/values.yaml", VALUES),
        ("apps/web/app.yaml", app),
    ];
    let template = ("charts/web/templates/a.yaml", TEMPLATE);
    let replaced = files.iter().any(|(path, _)| *path == template.0);
    let template = (!replaced).then_some(template);
    let snapshot = Snapshot::of_texts(of_all.into_iter().chain(template).chain(files.iter().copied()));
    let fleet = assemble(manifest::read(&snapshot), &snapshot);
    assert_eq!(
        fleet.diagnostics.iter().filter(|it| it.is_error()).collect::<Vec<_>>(),
        Vec::<&Diagnostic>::new()
    );
    render::FleetRenderer::new(&fleet, &snapshot, service).render_all(&mut RenderCache::default())
}

fn service(helm: &live::HelmPrograms) -> ChartService {
    ChartService::new(library_renderer(helm, ChartRenderLimits::default()), None)
}

fn single_app_objects(renders: &Renders) -> Result<Vec<RenderedObject>, Vec<Diagnostic>> {
    let render = renders.results().next().expect("a target").clone();
    render.map(|rendered| rendered.objects.to_vec())
}

#[track_caller]
fn objects(app: &str, files: &[(&str, &str)]) -> Option<Vec<RenderedObject>> {
    let helm = helm_programs()?;
    Some(
        single_app_objects(&renders(app, files, &service(&helm)))
            .unwrap_or_else(|mistakes| panic!("{mistakes:#?}")),
    )
}

#[track_caller]
fn mistake(app: &str, files: &[(&str, &str)]) -> Option<Diagnostic> {
    let helm = helm_programs()?;
    let mistakes = single_app_objects(&renders(app, files, &service(&helm))).expect_err("an error");
    assert_eq!(mistakes.len(), 1, "{mistakes:#?}");
    mistakes.into_iter().next()
}

#[track_caller]
fn check_image(app: &str, files: &[(&str, &str)], replicas: u32, image: Value, arguments: [&str; 3]) {
    let Some(objects) = objects(app, files) else { return };
    let spec = &objects[0].body.fields()["spec"];
    let container = &spec["template"]["spec"]["containers"][0];
    let seen: Value = serde_json::from_str(container["image"].as_str().unwrap()).unwrap();
    assert_eq!((&spec["replicas"], seen), (&json!(replicas), image));
    assert_eq!(container["args"], json!(arguments));
}

#[test]
fn values_of_chart_layers_and_pod_set_merge() {
    let image = |registry: &str, repository: &str, tag: &str| json!({"registry": registry, "repository": repository, "tag": tag});
    let gone = r#"{"a":1,"b":2}"#;
    check_image(&app("", ""), &[], 1, image("docker.io", "web", "v0"), ["red", "1", gone]);
    let base = ("templates/base/values.yaml", "colour: green\nsize: 2\n");
    check_image(&app("", ""), &[base], 1, image("docker.io", "web", "v0"), ["red", "1", gone]);
    for charts in ["charts: true", "charts: '*'", "charts: [web]"] {
        let layer = ("templates/base/layer.yaml", charts);
        check_image(&app("", ""), &[base, layer], 1, image("docker.io", "web", "v0"), ["green", "2", gone]);
    }
    let base_of_charts = ("templates/base/layer.yaml", "charts: true");
    let others = ("templates/base/layer.yaml", "charts: [other]");
    check_image(&app("", ""), &[base, others], 1, image("docker.io", "web", "v0"), ["red", "1", gone]);
    let own = ("apps/web/layer/values.yaml", "size: 3\n");
    check_image(
        &app("", ""),
        &[base, base_of_charts, own],
        1,
        image("docker.io", "web", "v0"),
        ["green", "3", gone],
    );
    let raw = ", replicas: 4, version: v7, rawValues: \"size: 4\\ngone: {a: null}\\n\"";
    check_image(
        &app(raw, ""),
        &[base, base_of_charts, own],
        4,
        image("docker.io", "web", "v7"),
        ["green", "4", r#"{"b":2}"#],
    );
    let map = ", replicas: 4, image: 'r.example.com:5000/a/b:v9', rawValues: {replicaCount: 6}";
    check_image(&app(map, ""), &[], 6, image("r.example.com:5000", "a/b", "v9"), ["red", "1", gone]);
}

#[test]
fn values_below_a_chart_name_reach_that_chart() {
    let (base, file) =
        (("templates/base/values.yaml", "colour: green\nsize: 2\n"), "templates/base/layer.yaml");
    let image = || json!({"registry": "docker.io", "repository": "web", "tag": "v0"});
    let gone = r#"{"a":1,"b":2}"#;
    let check = |layer: &str, more: &[(&str, &str)], arguments: [&str; 3]| {
        check_image(&app("", ""), &[&[base, (file, layer)], more].concat(), 1, image(), arguments);
    };
    check("charts: {web: {colour: blue, gone: {a: null}}, other: true}", &[], ["blue", "1", r#"{"b":2}"#]);
    check("charts: {web: true, other: {colour: blue}}", &[], ["green", "2", gone]);
    let own = [
        ("apps/web/layer/values.yaml", "size: 3\ncolour: grey\n"),
        ("apps/web/layer/layer.yaml", "charts: {web: {size: 4}}"),
    ];
    check("charts: {web: {colour: blue, size: 2}}", &own, ["grey", "4", gone]);

    let below = [(file, "charts: {web: {replicaCount: 2, colour: blue}}")];
    let layers = json!({"registry": "docker.io", "repository": "web", "tag": "v7"});
    let arguments = ["pink", "1", gone];
    check_image(
        &app(", replicas: 4, version: v7, rawValues: {colour: pink}", ""),
        &below,
        4,
        layers,
        arguments,
    );
}

#[test]
fn the_pod_set_image_replaces_that_of_layers() {
    let check = |pod_set: &str, layer: &str, expected: Value| {
        let (chart, own) = ("charts/web/values.yaml", "apps/web/layer/values.yaml");
        let plain = "replicaCount: 1\nimage: {repository: web, tag: v0}\ncolour: red\nsize: 1\ngone: {}\n";
        check_image(&app(pod_set, ""), &[(chart, plain), (own, layer)], 1, expected, ["red", "1", "{}"]);
    };
    let digest = "image: {digest: 'sha256:0f'}";
    check(", version: v1", digest, json!({"repository": "web", "tag": "v1", "digest": ""}));
    check("", digest, json!({"repository": "web", "tag": "v0", "digest": "sha256:0f"}));
    let mirror = "image: {registry: mirror}";
    check(
        ", image: 'quay.io/x/y:1'",
        mirror,
        json!({"registry": "quay.io", "repository": "x/y", "tag": "1"}),
    );
    check(", version: v1", mirror, json!({"registry": "mirror", "repository": "web", "tag": "v1"}));
    let raw = ", version: v1, rawValues: {image: {digest: 'sha256:0a'}}";
    check(raw, "{}", json!({"repository": "web", "tag": "v1", "digest": "sha256:0a"}));
}

#[test]
fn braces_are_told_at_their_value() {
    let Some(helm) = helm_programs() else { return };
    let told = |values: &str| {
        let renders = renders(&app("", ""), &[("apps/web/layer/values.yaml", values)], &service(&helm));
        let rendered = renders.results().next().expect("a target").clone().expect("rendered");
        let places = rendered.warnings.iter().filter(|it| it.code == "E3054").map(|it| {
            let place = it.location.clone().expect("a place");
            format!("{}:{}", place.file, place.start.line)
        });
        places.collect::<Vec<_>>()
    };
    assert_eq!(told("# {{ one }}\ncolour: blue\n"), Vec::<String>::new());
    assert_eq!(told("# {{ one }}\nmore:\n- a\n- '{{ b }}'\n"), ["apps/web/layer/values.yaml:4"]);
}

#[test]
fn values_that_are_encrypted_are_refused() {
    let encrypted = "pin: ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]\n";
    for file in ["charts/web/values.yaml", "charts/web/charts/db/values.yaml", "templates/base/values.yaml"] {
        let mistakes =
            single_app_objects(&renders(&app("", ""), &[(file, encrypted)], &NoCharts)).expect_err("refused");
        let said: Vec<String> = mistakes.iter().map(|mistake| mistake.message.clone()).collect();
        assert_eq!(said, [format!("{file} is encrypted with SOPS, which is not supported here yet")]);
    }
    let below = format!("charts: {{web: {{{}}}}}", encrypted.trim_end().replace("ENC", "'ENC") + "'");
    let file = "templates/base/layer.yaml";
    let mistakes =
        single_app_objects(&renders(&app("", ""), &[(file, &below)], &NoCharts)).expect_err("refused");
    assert_eq!(
        mistakes[0].message,
        format!("{file} is encrypted with SOPS, which is not supported here yet")
    );
}

#[test]
fn objects_carry_our_labels_and_their_template() {
    let check = |more: &str, expected: Value| {
        let Some(objects) = objects(&app(", version: v7", more), &[]) else { return };
        let [object] = objects.as_slice() else { panic!("{objects:#?}") };
        assert_eq!(object.source.to_string(), "charts/web/templates/a.yaml:1:1");
        assert_eq!(object.id.to_string(), "Deployment default/web-blue");
        assert_eq!(object.body.fields()["spec"]["template"]["metadata"]["labels"], expected);
    };
    check(", labels: {a: b}", json!({"x": "a"}));
    let asked = ", annotations: {tutti.dev/chart-labels: apply}";
    check(asked, json!({"x": "a", "app": "web", "version": "v7", "sym-group": "blue"}));
}

#[test]
fn policies_definitions_lists_and_namespaces() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, \
                annotations: {helm.sh/resource-policy: keep}}}\n- {apiVersion: v1, kind: Secret, metadata: {name: \
                s}}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r, namespace: \
                x}\nrules: []\n";
    let crd =
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b.c}\n";
    let files = [("charts/web/templates/a.yaml", text), ("charts/web/crds/a.yaml", crd)];
    let Some(objects) = objects(&app("", ""), &files) else { return };
    let kept = |object: &RenderedObject| {
        object.body.fields()["metadata"]["annotations"]["tutti.dev/prune"] == "keep"
    };
    let seen: Vec<_> = objects.iter().map(|object| (object.id.to_string(), kept(object))).collect();
    let expected = [
        ("PersistentVolumeClaim default/data", true),
        ("Secret default/s", false),
        ("CustomResourceDefinition a.b.c", true),
        ("ClusterRole r", false),
    ];
    assert_eq!(seen, expected.map(|(id, kept)| (id.to_owned(), kept)));
}

#[test]
fn hook_runs_are_named_after_their_release() {
    const FILE: &str = "charts/web/templates/a.yaml";
    let hook = |kind: &str, name: &str, more: &str| {
        let version = if kind == "Job" { "batch/v1" } else { "v1" };
        format!(
            "---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}, annotations: {{{more}}}}}\nspec: \
             {{ttlSecondsAfterFinished: 5}}\n"
        )
    };
    let hooks = [
        hook("Job", "migrate", "helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-weight: '-3'"),
        hook("Job", "seed", "helm.sh/hook: pre-install"),
        hook("Pod", "warm", "helm.sh/hook: 'post-upgrade,test'"),
        hook("ServiceAccount", "robot", "helm.sh/hook: pre-install"),
        hook("Pod", "try", "helm.sh/hook: test"),
    ]
    .concat();
    let text = format!("{TEMPLATE}{hooks}");
    let shown = |objects: &[RenderedObject]| -> Vec<String> {
        let hooked = objects.iter().filter_map(|object| Some((object, object.hook?)));
        hooked
            .map(|(object, hook)| {
                let ObjectHook { stage, weight, occasion, runs } = hook;
                format!("{} {stage:?} {weight} {occasion:?} runs {runs}", object.id)
            })
            .collect()
    };
    let Some(first) = objects(&app("", ""), &[(FILE, &text)]) else { return };
    let found = shown(&first);
    let (run, rest) = found.iter().partition::<Vec<&String>, _>(|line| !line.contains("Install"));
    assert_eq!(
        rest,
        [
            "ServiceAccount default/robot Before 0 Install runs false",
            "Job default/seed Before 0 Install runs true",
        ]
    );
    assert!(
        run[0].starts_with("Pod default/warm-") && run[0].ends_with(" After 0 Upgrade runs true"),
        "{run:?}"
    );
    assert!(run[1].starts_with("Job default/migrate-"), "{run:?}");
    assert!(run[1].ends_with(" Before -3 Each runs true"), "{run:?}");
    for object in first.iter().filter(|object| object.hook.is_some()) {
        assert_eq!(object.body.fields()["metadata"]["name"], *object.id.name);
        assert_eq!(object.body.fields()["metadata"]["annotations"]["tutti.dev/origin"], object.id.origin());
        let job = &*object.id.kind == "Job";
        assert!(!job || object.body.fields()["spec"].get("ttlSecondsAfterFinished").is_none(), "{object:?}");
    }
    // The same with another value in an object that is no hook.
    assert_eq!(objects(&app("", ""), &[(FILE, &text)]).map(|again| shown(&again)), Some(found.clone()));
    let changed = objects(&app(", version: v9", ""), &[(FILE, &text)]).expect("rendered");
    let changed = shown(&changed);
    assert!(
        changed.iter().filter(|line| found.contains(line)).eq(&rest.into_iter().cloned().collect::<Vec<_>>())
    );

    let counted = |decision: &str| {
        let annotation = format!(", annotations: {{tutti.dev/chart-hooks: {decision}}}");
        let objects = objects(&app("", &annotation), &[(FILE, &text)]).expect("rendered");
        (objects.len(), shown(&objects).len())
    };
    assert_eq!(counted("apply"), (5, 0));
    assert_eq!(counted("skip"), (2, 0));
    let wrong = mistake(&app("", ", annotations: {tutti.dev/chart-hooks: run}"), &[(FILE, &text)]);
    let wrong = wrong.expect("refused").to_string();
    assert!(
        wrong.starts_with("error[E3049]: annotation tutti.dev/chart-hooks of default/web is \"run\""),
        "{wrong}"
    );
}

#[test]
fn hooks_of_argo_in_a_chart_are_hooks() {
    let job = |name: &str, annotations: &str| {
        format!(
            "---\napiVersion: batch/v1\nkind: Job\nmetadata: {{{name}, annotations: {{{annotations}}}}}\n"
        )
    };
    let argo = |kind: &str| format!("argocd.argoproj.io/hook: {kind}");
    let text = [
        job("generateName: migrate-", &argo("PreSync")),
        job("name: by-hand", &argo("Skip")),
        job("name: failed", &argo("SyncFail")),
        job("name: both", &format!("{}, helm.sh/hook: post-install", argo("PreSync"))),
        job("name: plain", ""),
    ]
    .concat();
    let Some(objects) = objects(&app("", ""), &[("charts/web/templates/a.yaml", &text)]) else { return };
    let shown = objects.iter().map(|object| {
        let name = object.id.name.split_once('-').map_or(&*object.id.name, |(name, _)| name);
        format!("{name} {:?}", object.hook.map(|hook| (hook.stage, hook.occasion)))
    });
    let shown: std::collections::BTreeSet<String> = shown.collect();
    let expected = ["both Some((After, Install))", "migrate Some((Before, Each))", "plain None"];
    assert_eq!(shown.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn failures_name_template_line_and_value() {
    let text = "a: 1\nb: {{ .Values.nothing.here }}\n";
    if let Some(mistake) = mistake(&app("", ""), &[("charts/web/templates/a.yaml", text)]) {
        assert_eq!(
            mistake.to_string(),
            "error[E3045]: charts/web/templates/a.yaml line 2: nil pointer evaluating interface {}.here \
             (.Values.nothing.here) at charts/web/templates/a.yaml:2:14"
        );
        assert_eq!(mistake.related[0].0.file, "apps/web/app.yaml");
    }
    let schema = ("charts/web/values.schema.json", r#"{"properties": {"size": {"type": "string"}}}"#);
    if let Some(mistake) = mistake(&app("", ""), &[schema]) {
        assert!(
            mistake.to_string().starts_with(
                "error[E3044]: chart charts/web: the values do not fit the schema: .Values.size"
            ),
            "{mistake}"
        );
    }
    let outside = ("charts/web/values.schema.json", r#"{"$ref": "file:///etc/passwd"}"#);
    if let Some(mistake) = mistake(&app("", ""), &[outside]) {
        assert!(mistake.message.contains("the schema refers to file:///etc/passwd"), "{mistake}");
    }
}

#[test]
fn schema_violation_names_the_line_of_the_value() {
    let rule = r#"{"properties": {"size": {"type": "integer"}, "gone": {"properties": {"a": {"maximum": 1}}},
                  "replicaCount": {"maximum": 3}, "image": {"properties": {"tag": {"pattern": "^v"},
                  "pullPolicy": {"type": "string"}}}}}"#;
    let schema = ("charts/web/values.schema.json", rule);
    let base = ("templates/base/values.yaml", "colour: green\n# Memory.\nsize: large\n");
    let of_charts = ("templates/base/layer.yaml", "charts: true");
    let check = |pod_set: &str, more: &[(&str, &str)], value: &str, place: &str| {
        let files = [&[schema], more].concat();
        let Some(mistake) = mistake(&app(pod_set, ""), &files) else { return };
        assert_eq!(mistake.code, "E3044");
        assert!(mistake.message.contains(value), "{mistake}");
        let found = mistake.location.clone().expect("a place");
        assert_eq!(format!("{}:{}", found.file, found.start.line), place, "{mistake}");
        assert_eq!(mistake.related[0].0.file, "apps/web/app.yaml");
    };
    check("", &[base, of_charts], ".Values.size", "templates/base/values.yaml:3");
    let own = ("apps/web/layer/values.yaml", "gone:\n  b: 1\n  a: 2\n");
    check("", &[own], ".Values.gone.a", "apps/web/layer/values.yaml:3");
    check(", rawValues: {size: large}", &[], ".Values.size", "apps/web/app.yaml:6");
    check(", replicas: 4", &[], ".Values.replicaCount", "apps/web/app.yaml:6");
    check(", version: '7'", &[], ".Values.image.tag", "apps/web/app.yaml:6");
    let policy = ("apps/web/layer/values.yaml", "image:\n  pullPolicy: 1\n");
    let below = ("templates/base/layer.yaml", "charts:\n  other: {size: 1}\n  web:\n    gone:\n      a: 2\n");
    check("", &[below], ".Values.gone.a", "templates/base/layer.yaml:5");
    check(", version: v7", &[policy], ".Values.image.pullPolicy", "apps/web/layer/values.yaml:2");
    let values = ("charts/web/values.yaml", "replicaCount: 1\ncolour: red\nsize: small\n");
    check("", &[values], ".Values.size", "charts/web/values.yaml:3");
}

#[test]
fn a_missing_renderer_is_named_with_its_installation() {
    let service = ChartService::new(
        ChartRenderer::new(RendererProgram::Missing(None), ChartRenderLimits::default()),
        None,
    );
    let mistakes = single_app_objects(&renders(&app("", ""), &[], &service)).expect_err("a refusal");
    assert_eq!(mistakes[0].code, "E3041");
    assert!(mistakes[0].help.as_deref().is_some_and(|help| help.contains("cargo xtask helm-render")));
}

#[test]
fn both_renderers_make_the_same_app() {
    let Some(helm) = helm_programs() else { return };
    let command = ChartService::new(
        ChartRenderer::new(RendererProgram::Helm(helm.helm.clone()), ChartRenderLimits::default()),
        None,
    );
    let app = app(", replicas: 4, version: v7, rawValues: {size: 9}", "");
    assert_eq!(
        single_app_objects(&renders(&app, &[], &command)),
        single_app_objects(&renders(&app, &[], &service(&helm)))
    );
}

#[test]
fn a_request_is_rendered_once() {
    let Some(helm) = helm_programs() else { return };
    let service = service(&helm);
    let random =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: {{ randAlphaNum 20 | quote }}}\n";
    let files = [("charts/web/templates/a.yaml", random)];
    let one = single_app_objects(&renders(&app("", ""), &files, &service));
    assert_eq!(one, single_app_objects(&renders(&app("", ""), &files, &service)));
}

#[test]
fn lookups_and_random_values_are_warnings() {
    let Some(helm) = helm_programs() else { return };
    let service = service(&helm);
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: {{ randAlphaNum 20 | quote }}, y: {{ \
                lookup \"v1\" \"Pod\" \"\" \"\" | toJson | quote }}}\n";
    let recorder = RequestRecorder::new(&service);
    let renders = renders(&app("", ""), &[("charts/web/templates/a.yaml", text)], &recorder);
    assert!(single_app_objects(&renders).is_ok());
    let file = "charts/web/templates/a.yaml".to_owned();
    assert_eq!(
        recorder.lint(),
        [
            ChartLint::Lookup { file: file.clone(), line: 4 },
            ChartLint::UnstableObject { file, object: "ConfigMap a".to_owned() },
        ]
    );
}
