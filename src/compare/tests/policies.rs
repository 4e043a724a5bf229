//! What policies say of a change.

use std::sync::Arc;

use super::*;
use crate::model::{Capabilities, KindInfo};

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
fn denied_changed_object_is_a_new_error() {
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
fn policy_with_mistake_denies_changed_objects() {
    let base = ruled(&LOW.replace("  validations", "  vlidations"));
    let changed = |head: &mut Texts| {
        objects(head, "maps", &(config_map("a", "low") + &config_map("b", "high")));
    };
    check_errors(
        &compared_from(&base, changed),
        &["policy low denies ConfigMap shop/a on bj1: the policy has an error: policies/low.yaml:3:18"],
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

#[test]
fn namespace_labels_are_unknown_until_all_apps_render() {
    let policy =
        LOW.replace("{resourceRules", "{namespaceSelector: {matchLabels: {tier: prod}}, resourceRules");
    let base = ruled(&policy);
    let namespace = |tier: &str| {
        format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, labels: {{tier: {tier}}}}}\n")
    };
    let check = |space: Option<String>, is_denied: bool| {
        let plan = compared_from(&base, |head| {
            if let Some(space) = &space {
                objects(head, "space", space);
            }
            objects(head, "maps", &config_map("a", "higher"));
        });
        let denied = "policy low denies ConfigMap shop/a on bj1: not low".to_owned();
        assert_eq!(messages(&plan.errors).contains(&denied), is_denied, "{space:?}: {:?}", plan.errors);
    };
    check(None, false);
    check(Some(namespace("test")), false);
    check(Some(namespace("prod")), true);
    // Its render has a mistake.
    check(Some(namespace("prod") + "---\nkind: [\n"), true);
    check(Some("apiVersion: v1\nkind: ConfigMap\n".to_owned()), true);
}

fn definition(plural: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.example.com}}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {{plural: {plural}, singular: till, kind: Till}}\n  versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}]\n"
    )
}

#[test]
fn custom_kind_has_plural_of_app_or_cluster() {
    let policy = LOW.replace("['', apps]", "[example.com]").replace("configmaps, deployments", "till");
    let till = |level: &str| {
        format!(
            "apiVersion: example.com/v1\nkind: Till\nmetadata: {{name: a, namespace: shop}}\ndata: {{level: {level}}}\n"
        )
    };
    let denied = "policy low denies Till shop/a on bj1: not low".to_owned();
    let check = |definitions: &[(&str, &str)], served: Option<&str>, is_denied: bool| {
        let mut base = ruled(&policy);
        for (app, plural) in definitions {
            objects(&mut base, app, &definition(plural));
        }
        objects(&mut base, "till", &till("high"));
        let mut head = base.clone();
        objects(&mut head, "till", &till("higher"));
        let (base, head) = (snapshot(&base, "ba5eba5e"), snapshot(&head, "4ead4ead"));
        let mut capabilities = Capabilities::declared(None, &[]);
        let facts =
            |plural: &str| KindInfo { namespaced: true, has_status: false, plural: Some(plural.into()) };
        capabilities.kinds.extend(served.map(|it| ("example.com/v1/Till".to_owned(), facts(it))));
        let discovered = DiscoveredCapabilities::from([("bj1".into(), Arc::new(capabilities))]);
        let mut reading = manifest::ManifestCache::default();
        let before = fleet_after(&base, &mut reading, None);
        let after = fleet_after(&head, &mut reading, Some(&before));
        let side = |fleet, snapshot| ComparedRevision {
            fleet,
            snapshot,
            charts: &NoCharts,
            discovered: discovered.clone(),
        };
        let mut kept = ComparisonCache::default();
        // The second time what the base defines is known, and other apps are not rendered.
        for _ in 0..2 {
            let plan = compare(&side(&before, &base), &side(&after, &head), &mut kept, None);
            let is_told = messages(&plan.errors).contains(&denied);
            assert_eq!(is_told, is_denied, "{definitions:?} {served:?}: {:?}", plan.errors);
        }
    };
    check(&[], None, false);
    check(&[], Some("till"), true);
    check(&[("a", "till")], None, true);
    check(&[("a", "other")], None, false);
    check(&[("a", "other")], Some("till"), true);
}
