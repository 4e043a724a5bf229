//! Small repositories that once showed a fault (`tests/fixtures/cases`), each with the correct result.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{live_objects, program};

fn case_folder(case: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases").join(case)
}

/// Findings of `tutti lint -o json`.
fn lint_findings(case: &str) -> Vec<Value> {
    let (output, errors, _) = program::run(&case_folder(case), &["lint", "-o", "json"]);
    assert_eq!(errors, "", "{case}");
    serde_json::from_str(&output).expect("JSON")
}

/// Code, position and message of each mistake.
fn mistake_lines(case: &str) -> Vec<String> {
    let line = |found: &Value| {
        let (place, start) = (&found["location"], &found["location"]["start"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let place = format!("{}:{}:{}", text(&place["file"]), start["line"], start["column"]);
        format!("{} {place} {}", text(&found["code"]), text(&found["message"]))
    };
    lint_findings(case).iter().map(line).collect()
}

#[test]
fn selector_without_value_is_refused() {
    assert_eq!(mistake_lines("emptied-selector"), ["E1202 apps/a/app.yaml:11:7 `names` has no value"]);
}

#[test]
fn mistake_names_its_clusters() {
    let found = lint_findings("label-missing-on-some");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        found[0]["message"],
        "cluster.labels.region is undefined in apps/a/o/cm.yaml.j2 on three and two"
    );
    assert_eq!(found[0]["help"], "on two: did you mean `regoin`? valid: regoin; on three: valid: tier");
    assert_eq!(found[0]["clusters"], serde_json::json!(["three", "two"]));
}

/// The objects that an app of the repository renders to.
fn rendered_objects(case: &str, app: &str) -> Vec<Value> {
    let (output, errors, code) = program::run(&case_folder(case), &["render", app, "-o", "json"]);
    assert!(code == 0 && !errors.contains("error"), "{case}: {errors}");
    serde_json::from_str(&output).expect("JSON")
}

fn object_names(objects: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let name = |it: &Value| {
        format!(
            "{} {}/{}",
            text(&it["kind"]),
            text(&it["metadata"]["namespace"]),
            text(&it["metadata"]["name"])
        )
    };
    objects.iter().map(name).collect()
}

#[test]
fn lists_and_json_files_are_read_like_kubectl() {
    // Without the chart programs one app, which has a chart, cannot be rendered; nothing else is wrong.
    let is_chart = |finding: &Value| finding["code"] == "E3041" && !has_chart_programs();
    let findings: Vec<Value> =
        lint_findings("lists").into_iter().filter(|finding| !is_chart(finding)).collect();
    assert_eq!(findings, Vec::<Value>::new());
    let check = |app: &str, expected: &[&str]| {
        assert_eq!(object_names(&rendered_objects("lists", app)), expected, "{app}")
    };
    check("plain", &["ConfigMap default/a", "ConfigMap default/b"]);
    check("team", &["Role default/reader"]);
    check("js2", &["ConfigMap default/j1", "ConfigMap default/j2"]);
    check("js", &["ConfigMap default/j"]);
}

/// Whether Helm's programs are built; fails where they are required.
fn has_chart_programs() -> bool {
    crate::charts::support::helm_programs().is_some()
}

/// Image and replicas of each workload.
fn workload_images(case: &str) -> Vec<String> {
    let of = |object: &Value| {
        let image = object.pointer("/spec/template/spec/containers/0/image").and_then(Value::as_str);
        Some(format!("{} {} {}", object["metadata"]["name"].as_str()?, object["spec"]["replicas"], image?))
    };
    rendered_objects(case, "a").iter().filter_map(of).collect()
}

#[test]
fn chart_runs_the_image_of_its_pod_set() {
    if !has_chart_programs() {
        return;
    }
    let digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let expected = [
        format!("digest 1 registry.example.com/shop/web@{digest}"),
        "no-registry 1 docker.io/library/nginx:1.27".to_owned(),
        format!("tag-and-digest 1 registry.example.com/shop/web:v1@{digest}"),
        "text-and-version 1 registry.example.com:5000/shop/web:v2".to_owned(),
    ];
    assert_eq!(workload_images("chart-image-forms"), expected);
    assert_eq!(lint_findings("chart-image-forms"), Vec::<Value>::new());
}

#[test]
fn value_missing_in_chart_is_named() {
    if !has_chart_programs() {
        return;
    }
    let check = |line: u32, chart: &str, rest: &str| {
        format!("E3053 apps/a/app.yaml:{line}:20 chart {chart} has no value {rest}")
    };
    let may = "is used only where its templates read it";
    let expected = [
        check(10, "bare", "`replicaCount` or `replicas`: the number of replicas of podSet one is not used"),
        check(10, "bare", "`image`: the version of podSet one is not used"),
        check(11, "bare", "`image`: the image of podSet two is not used"),
        check(12, "part", &format!("`image.repository` or `image.name`: the image of podSet three {may}")),
        check(12, "part", &format!("`image.tag`: the image of podSet three {may}")),
        check(13, "part", &format!("`image.tag`: the version of podSet four {may}")),
    ];
    assert_eq!(mistake_lines("chart-without-values"), expected);
}

#[test]
fn chart_values_are_read_as_helm_reads_them() {
    if !has_chart_programs() {
        return;
    }
    assert_eq!(workload_images("chart-values-quirks"), ["web 3 registry.example.com/shop/web:v2"]);
}

#[test]
fn layer_values_reach_charts_only_on_request() {
    if !has_chart_programs() {
        return;
    }
    assert_eq!(lint_findings("layer-values-in-charts"), Vec::<Value>::new());
    let agent = &rendered_objects("layer-values-in-charts", "agent")[0];
    let container = agent.pointer("/spec/template/spec/containers/0").expect("a container");
    assert_eq!(container["resources"]["limits"]["memory"], "2Gi", "{container}");
}

#[test]
fn definition_in_two_subcharts_is_merged() {
    if !has_chart_programs() {
        return;
    }
    assert_eq!(lint_findings("definition-twice-in-chart"), Vec::<Value>::new());
}

#[test]
fn chart_pods_keep_their_labels() {
    if !has_chart_programs() {
        return;
    }
    for object in rendered_objects("chart-pod-labels", "shop").iter().filter(|it| it["kind"] == "Deployment")
    {
        let labels = object.pointer("/spec/template/metadata/labels").expect("labels");
        assert_eq!(labels, object.pointer("/spec/selector/matchLabels").expect("a selector"));
    }
}

#[test]
fn chart_custom_resource_gets_the_release_namespace() {
    if !has_chart_programs() {
        return;
    }
    let objects = object_names(&rendered_objects("custom-resource-in-chart", "till"));
    assert!(objects.contains(&"Till default/till".to_owned()), "{objects:?}");
}

#[test]
fn key_without_a_value_is_refused_and_named() {
    let expected = [
        "E3025 apps/a/o/n.yaml:5:31 NetworkPolicy only-role has no value at spec.podSelector.matchLabels.db",
        "E3025 apps/a/o/n.yaml:6:50 NetworkPolicy only-role has no value at spec.ingress.0.from.0.podSelector.matchLabels.role",
        "E3025 apps/a/o/n.yaml:11:23 Secret s has no value at stringData.pass",
        "E3025 apps/a/o/n.yaml:12:8 Secret s has no value at data.raw",
        "E3025 apps/a/o/n.yaml:17:27 Service svc has no value at spec.selector.canary",
    ];
    assert_eq!(mistake_lines("nulls"), expected);
}

#[test]
fn object_of_two_apps_names_both() {
    let found = lint_findings("object-in-two-apps");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["code"], "E3091");
    assert_eq!(found[0]["message"], "Namespace n24 is rendered by app n24/a and by app n24/b on bj-test");
    assert_eq!(found[0]["location"]["file"], "apps/b/o/ns.yaml");
    assert_eq!(found[0]["related"][0][0]["file"], "apps/a/o/ns.yaml");
}

/// The repository of a case, with one embedded cluster in place of its own clusters.
async fn case_stage(case: &str) -> program::CommandFixture {
    let root = case_folder(case);
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root).expect("inside").display().to_string();
                let text = std::fs::read_to_string(&path).expect("text").replace("name: one", "name: bj1");
                files.push((name, text));
            }
        }
    }
    let files: Vec<(&str, &str)> = files
        .iter()
        .filter(|(name, _)| name != "tutti.yaml" && !name.starts_with("clusters/"))
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    program::CommandFixture::new(&files).await
}

#[tokio::test]
async fn one_run_creates_definitions_and_their_objects() {
    if !has_chart_programs() {
        return;
    }
    let stage = case_stage("own-definition-late").await;
    let (output, errors, code) = stage.run(&["run", "--once", "--timeout", "30s"]).await;
    assert_eq!(code, 0, "{output}{errors}");
    let (plan, errors, code) = stage.run(&["plan"]).await;
    assert!(code == 0 && !plan.contains("create"), "{plan}{errors}");
}

#[tokio::test]
async fn upgrade_hook_waits_for_the_first_upgrade() {
    if !has_chart_programs() {
        return;
    }
    let stage = case_stage("upgrade-hook-at-install").await;
    let (plan, errors, _) = stage.run(&["plan", "--all"]).await;
    let skipped =
        plan.lines().find(|line| line.contains("vol-check")).unwrap_or_else(|| panic!("{plan}{errors}"));
    assert!(
        skipped.contains("skip")
            && skipped.ends_with("a hook of upgrades, and this is the first release here")
    );
    let (plan, errors, _) = stage.run(&["plan"]).await;
    assert!(plan.contains("vol-release") && !plan.contains("vol-check"), "{plan}{errors}");
    let (output, errors, code) = stage.run(&["run", "--once", "--timeout", "30s"]).await;
    assert_eq!(code, 0, "{output}{errors}");
    assert_eq!(live_objects::names(&stage.sandbox, "Job").await, Vec::<String>::new());

    let chart = "charts/vol/templates/all.yaml";
    let text = std::fs::read_to_string(case_folder("upgrade-hook-at-install").join(chart)).expect("text");
    let second = text.replace("version: \"1\"", "version: \"2\"");
    stage.repository.commit("Second", &[(chart, Some(&second))]);
    let (output, errors, code) = stage.run(&["run", "--once", "--timeout", "30s"]).await;
    assert_eq!(code, 0, "{output}{errors}");
    let jobs = live_objects::names(&stage.sandbox, "Job").await;
    assert!(jobs.len() == 1 && jobs[0].starts_with("vol-check-"), "{jobs:?}");
    let release =
        live_objects::get(&stage.sandbox, "ConfigMap", "default", "vol-release").await.expect("it is there");
    assert_eq!(release["data"]["version"], "2");
}
