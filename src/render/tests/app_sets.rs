use super::*;

#[test]
fn app_set_overrides_its_layers() {
    let rendered = bbcc(
        "{name: b-blue, replicas: 2, version: v3}, {name: b-canary, image: 'r/y:w', version: w}",
        TEMPLATE,
        &[],
    );
    let rendered = rendered.unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    assert_eq!(rendered.objects.len(), 3, "two Deployments behind one Service");
    let blue = body(&rendered, "Deployment", "b-blue");
    let containers = blue["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1, "the container of the layers is the app's");
    assert_eq!(containers[0]["image"], "r/x:v3");
    assert_eq!(containers[0]["ports"], json!([{"name": "web", "containerPort": 80, "protocol": "TCP"}]));
    let labels = &blue["spec"]["template"]["metadata"]["labels"];
    for (key, value) in [
        ("app", "bbcc"),
        ("version", "v3"),
        ("sym-group", "blue"),
        ("sym-available-zone", "bj4"),
        ("lightningDomain0", "inner.example.com"),
        ("team", "a"),
    ] {
        assert_eq!(labels[key], value, "{key}");
    }
    assert_eq!(labels.get("sym-cluster-info"), None, "a missing value omits the label");
    assert!(labels.as_object().unwrap().keys().all(|key| !key.starts_with("tutti.dev/")));
    let canary = body(&rendered, "Deployment", "b-canary");
    assert_eq!(
        canary["spec"]["template"]["spec"]["containers"][0]["image"], "r/y:w",
        "an image wins over a version"
    );
    assert_eq!(canary["metadata"]["labels"]["version"], "w");
    assert_eq!(body(&rendered, "Service", "bbcc")["spec"]["selector"], json!({"app": "bbcc"}));
}

#[test]
fn app_set_without_matching_workload_is_refused() {
    check_mistake(
        bbcc("{name: b, replicas: 1}", "{spec: {containers: [{name: a, image: b, $patch: delete}]}}", &[]),
        "E3032",
        "null",
    );
    check_mistake(
        bbcc(
            "{name: b, replicas: 1}",
            "{metadata: {labels: {app: other}}, spec: {containers: [{name: a, image: b}]}}",
            &[],
        ),
        "do not have the label app",
        "remove app",
    );
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ podSet.name }}}\n";
    check_mistake(
        bbcc("{name: b, replicas: 1}", TEMPLATE, &[(SHOW, other)]),
        "no Deployment b",
        "podSet.name",
    );
    check_mistake(bbcc("{name: b, replicas: 1}", "{spec: {}}", &[]), "values.image is undefined", "");
}

#[test]
fn equal_objects_of_pod_sets_are_merged() {
    let file = "templates/base/x.yaml.j2";
    let pod_sets = "{name: a, replicas: 1}, {name: b, replicas: 1}";
    let alike = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {app: {{ app.name }}}\n";
    assert_eq!(bbcc(pod_sets, TEMPLATE, &[(file, alike)]).unwrap().objects.len(), 4);
    let different = alike.replace("app.name", "podSet.name");
    check_mistake(
        bbcc(pod_sets, TEMPLATE, &[(file, &different)]),
        "podSets a and b both render ConfigMap default/one on bj1",
        "podSet.name",
    );
}
