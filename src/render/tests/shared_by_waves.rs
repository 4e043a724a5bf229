use super::{fleet, snapshot};
use crate::fleet::Target;
use crate::model::{AppId, NoCharts};
use crate::render::{render, shared_by_waves};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: common}\ndata: {a: b}\n";
const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: common}\nstringData: {a: b}\n";
const TWO_WAVES: &str = "waves: [{name: one, groups: [blue]}, {name: two, groups: [green]}]";

fn check(object: &str, strategy: &str, pod: &str, expected: Option<&str>) {
    let app = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {{name: pay}}\nspec:\n  updateStrategy: {{{strategy}}}\n  podSpec: \
         {{template: {{spec: {{{pod}}}}}}}\n  clusterTopology: {{clusters: [{{name: bj1, podSets: [{{name: pay-blue, replicas: 1}}, {{name: \
         pay-green, replicas: 1}}]}}]}}\n"
    );
    let snapshot = snapshot(&[("apps/pay/app.yaml", &app), ("apps/pay/layer/common.yaml.j2", object)]);
    let fleet = fleet(&snapshot);
    let target = Target { app: AppId::new("default", "pay"), cluster: "bj1".into() };
    let rendered = render(&fleet, &snapshot, &NoCharts, &target).unwrap();
    let told = shared_by_waves(&fleet, [&rendered, &rendered]);
    let told: Vec<&str> = told.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(told, expected.into_iter().collect::<Vec<_>>(), "{strategy} {pod}");
}

fn container(more: &str) -> String {
    format!("containers: [{{name: pay, image: 'pay:1'{more}}}]")
}

#[test]
fn config_shared_by_waves_is_reported() {
    let map =
        "ConfigMap default/common is mounted by podSets of several waves of AppSet default/pay: one, two";
    let secret = map.replace("ConfigMap", "Secret");
    for pod in [
        container(", envFrom: [{configMapRef: {name: common}}]"),
        container(", env: [{name: A, valueFrom: {configMapKeyRef: {name: common, key: a}}}]"),
        format!("{}, volumes: [{{name: v, configMap: {{name: common}}}}]", container("")),
        format!(
            "{}, volumes: [{{name: v, projected: {{sources: [{{configMap: {{name: common}}}}]}}}}]",
            container("")
        ),
    ] {
        check(MAP, TWO_WAVES, &pod, Some(map));
    }
    for pod in [
        container(", envFrom: [{secretRef: {name: common}}]"),
        container(", env: [{name: A, valueFrom: {secretKeyRef: {name: common, key: a}}}]"),
        format!("{}, volumes: [{{name: v, secret: {{secretName: common}}}}]", container("")),
        format!(
            "{}, volumes: [{{name: v, projected: {{sources: [{{secret: {{name: common}}}}]}}}}]",
            container("")
        ),
    ] {
        check(SECRET, TWO_WAVES, &pod, Some(&secret));
    }
}

#[test]
fn config_of_one_wave_is_fine() {
    let pod = container(", envFrom: [{configMapRef: {name: common}}]");
    check(MAP, "waves: [{name: one}]", &pod, None);
    check(MAP, "", &pod, None);
    check(MAP, TWO_WAVES, &container(""), None);
    check(MAP, TWO_WAVES, &container(", envFrom: [{configMapRef: {name: elsewhere}}]"), None);
}

#[test]
fn definition_shared_by_waves_is_reported() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: tills.x.io}\nspec: {group: x.io, \
                      scope: Namespaced, names: {kind: Till, plural: tills}, versions: [{name: v1, served: true, storage: true, schema: \
                      {openAPIV3Schema: {type: object}}}]}\n";
    let told = "CustomResourceDefinition tills.x.io comes with podSets of several waves of AppSet default/pay: one, two";
    check(definition, TWO_WAVES, &container(""), Some(told));
    check(definition, "waves: [{name: one}]", &container(""), None);
}
