//! What policies say of a change.

use super::*;

const LOW: &str = "apiVersion: tutti.dev/v1alpha1
kind: Policy
metadata: {name: low}
spec:
  matchConstraints: {resourceRules: [{apiGroups: ['', apps], apiVersions: [v1], resources: [configmaps, deployments], operations: [CREATE, UPDATE]}]}
  validations: [{expression: \"object.?data.level.orValue('') == 'low'\", message: not low}]
";

/// A repository with this policy and two ConfigMaps that it denies.
fn ruled(policy: &str) -> Texts {
    let mut base = repository();
    put(&mut base, "policies/low.yaml", policy);
    put(&mut base, "apps/pay/app.yaml", &component("pay", "1.0.0").replace("Deployment", "StatefulSet"));
    put(&mut base, "apps/cart/app.yaml", &component("cart", "1.0.0").replace("Deployment", "StatefulSet"));
    objects(&mut base, "maps", &(config_map("a", "high") + &config_map("b", "high")));
    base
}

/// Messages of the errors, of one cluster alone.
fn messages(errors: &[crate::model::Diagnostic]) -> Vec<String> {
    let messages = errors.iter().map(|it| it.message.clone());
    messages.filter(|it| !it.contains("on bj2") && !it.contains("on gz1")).collect()
}

#[track_caller]
fn check_errors(plan: &Comparison, errors: &[&str], known: &[&str]) {
    assert_eq!(messages(&plan.errors), errors);
    assert_eq!(messages(&plan.known_errors), known);
}

#[test]
fn denied_object_that_a_change_touches_is_its_error() {
    let base = ruled(LOW);
    let (a, b) = (
        "policy low denies ConfigMap shop/a on bj1: not low",
        "policy low denies ConfigMap shop/b on bj1: not low",
    );
    let maps = |a: &str, b: &str| {
        let texts = config_map("a", a) + &config_map("b", b);
        move |head: &mut Texts| objects(head, "maps", &texts)
    };
    check_errors(&compared_from(&base, maps("higher", "high")), &[a], &[b]);
    check_errors(&compared_from(&base, maps("low", "high")), &[], &[b]);
    check_errors(&compared_from(&base, maps("low", "higher")), &[b], &[]);
    // What has not changed is that of the base.
    let beside = |head: &mut Texts| put(head, "apps/x/README.md", "x");
    check_errors(&compared_from(&base, beside), &[], &[]);
    let raised =
        |head: &mut Texts| put(head, "policies/low.yaml", &LOW.replace("spec:", "spec:\n  description: x"));
    check_errors(&compared_from(&base, raised), &[], &[a, b]);
}

#[test]
fn policy_with_mistake_is_an_error_of_what_changes() {
    let base = ruled(&LOW.replace("  validations", "  vlidations"));
    let changed = |head: &mut Texts| {
        objects(head, "maps", &(config_map("a", "low") + &config_map("b", "high")));
    };
    check_errors(
        &compared_from(&base, changed),
        &["policy low denies ConfigMap shop/a on bj1: it has a mistake"],
        &["`validations` is missing", "unknown field `vlidations` in `spec`"],
    );
}

#[test]
fn definition_renames_no_kind_of_kubernetes() {
    let base = ruled(LOW);
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: 'a:1'}]}}\n---\n";
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: others.apps}\nspec:\n  group: apps\n  scope: Namespaced\n  names: {plural: others, singular: other, kind: Deployment}\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n";
    for documents in [deployment.to_owned(), format!("{deployment}{definition}")] {
        let plan = compared_from(&base, |head| objects(head, "web", &documents));
        let denied = "policy low denies Deployment shop/web on bj1: not low";
        assert!(messages(&plan.errors).contains(&denied.to_owned()), "{documents}: {:?}", plan.errors);
    }
}
