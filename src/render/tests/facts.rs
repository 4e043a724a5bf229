//! Cluster facts in templates, labels and variables.

use super::*;

const FILES: [(&str, &str); 1] =
    [("apps/web/layer/values.yaml", "podDisruptionBudget: {maxUnavailable: 1}\nautoscale: {cpu: 50}")];

fn versions(cluster: &str) -> Vec<String> {
    let text = CLUSTER.replace("vip: 10.0.0.1", cluster);
    let rendered = web(&[&FILES[..], &[("clusters/bj1.yaml", text.as_str())]].concat());
    let objects = rendered.unwrap_or_else(|mistakes| panic!("{mistakes:#?}")).objects;
    let of = |kind: &str| {
        let object = objects.iter().find(|object| &*object.kind.kind == kind).expect("the kind");
        object.kind.api_version()
    };
    ["HorizontalPodAutoscaler", "PodDisruptionBudget"].map(of).to_vec()
}

#[test]
fn shipped_templates_use_api_versions_of_cluster() {
    assert_eq!(versions("vip: a"), ["autoscaling/v2", "policy/v1"]);
    assert_eq!(versions("version: 1.20"), ["autoscaling/v2beta2", "policy/v1beta1"]);
    assert_eq!(versions("version: v1.22.3"), ["autoscaling/v2beta2", "policy/v1"]);
    assert_eq!(versions("version: v1.20.3, capabilities: [policy/v1]"), ["autoscaling/v2beta2", "policy/v1"]);
}

#[test]
fn templates_see_cluster_capabilities() {
    let text =
        CLUSTER.replace("vip: 10.0.0.1", "version: '1.24', capabilities: [gateway.networking.k8s.io/v1]");
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  version: {{ cluster.version.gitVersion }}\n  minor: \"{{ cluster.capabilities.version.minor }}\"\n  gateway: \"{{ (cluster.capabilities is has('gateway.networking.k8s.io/v1')) | tojson }}\"\n  in: \"{{ ('x/v1' in cluster.capabilities.apiVersions) | tojson }}\"\n";
    let rendered = web(&[("clusters/bj1.yaml", &text), ("templates/base/c.yaml.j2", template)]).unwrap();
    let expected = json!({"version": "v1.24.0", "minor": "24", "gateway": "true", "in": "false"});
    assert_eq!(body(&rendered, "ConfigMap", "c")["data"], expected);
}

fn of_table(table: &str) -> (Value, Value) {
    let instance = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\nspec: {{labels: {table}}}\n"
    );
    let rendered = bbcc("{name: b-blue, replicas: 2, version: v3}", TEMPLATE, &[("tutti.yaml", &instance)]);
    let rendered = rendered.unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    let template = &body(&rendered, "Deployment", "b-blue")["spec"]["template"];
    (template["metadata"]["labels"].clone(), template["spec"]["containers"][0]["env"].clone())
}

#[test]
fn instance_overrides_derived_labels() {
    let (labels, env) = of_table("{}");
    assert_eq!(
        (&labels["sym-group"], &labels["sym-available-zone"], &env),
        (&json!("blue"), &json!("bj4"), &json!(null))
    );
    let (labels, env) = of_table(
        "{labels: {sym-group: null, zone: cluster.labels.zone, ring: ring, release: podSet.name}, env: {SYM_GROUP: podSet.group, LDC: meta.sym-ldc, VIP: cluster.vip}}",
    );
    assert_eq!((labels.get("sym-group"), labels.get("ring")), (None, None), "what has no value is left out");
    assert_eq!(
        (&labels["zone"], &labels["release"], &labels["version"]),
        (&json!("bj"), &json!("b-blue"), &json!("v3"))
    );
    assert_eq!(env, json!([{"name": "SYM_GROUP", "value": "blue"}, {"name": "VIP", "value": "10.0.0.1"}]));
}

#[test]
fn unknown_label_facts_are_refused() {
    let check = |spec: &str, message: &str, help: &str| {
        let instance = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\nspec: {spec}\n"
        );
        let mistakes = manifest::read(&snapshot(&[("tutti.yaml", &instance)])).diagnostics;
        assert_eq!(mistakes.len(), 1, "{mistakes:#?}");
        assert!(mistakes[0].message.contains(message), "{}", mistakes[0].message);
        assert!(mistakes[0].help.as_deref().unwrap_or_default().contains(help), "{:?}", mistakes[0].help);
    };
    check("{labels: {labels: {a: podset.group}}}", "is not a fact of an app", "did you mean `podSet.group`?");
    check("{labels: {env: {1A: ring}}}", "is not the name of a variable", "no digit first");
    check("{labels: {label: {a: ring}}}", "unknown field `label`", "labels");
}
