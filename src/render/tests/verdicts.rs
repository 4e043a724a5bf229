//! Limits of policies on a whole revision.

use super::super::policy_verdicts::policy_verdicts_within;
use super::super::{Admission, FleetRenderer, RenderCache};
use super::*;

const POLICY: &str = "apiVersion: tutti.dev/v1alpha1
kind: Policy
metadata: {name: long}
spec: {validations: [{expression: 'lists.range(1000).all(x, x >= 0)'}]}
";

#[test]
fn verdicts_of_a_revision_are_bounded() {
    let check = |policy: &str, (steps, most): (u64, usize), goes_on: bool, expected: &[&str]| {
        let snapshot = snapshot(&[("apps/web/app.yaml", WEB), ("policies/a.yaml", policy)]);
        let fleet = fleet(&snapshot);
        let mut renderer = FleetRenderer::new(&fleet, &snapshot, &NoCharts);
        let renders = renderer.render_all(&mut RenderCache::default());
        let clock = (&(|| goes_on) as &dyn Fn() -> bool, &(|| false) as &dyn Fn() -> bool);
        let told = policy_verdicts_within((steps, most), &renderer, &renders, None, clock).all;
        let shown = |it: &Diagnostic| {
            assert!(
                it.code != "E1108" || it.location.as_ref().is_some_and(|at| at.file == "policies/a.yaml")
            );
            it.code
        };
        assert_eq!(told.iter().map(shown).collect::<Vec<_>>(), expected, "{told:?}");
    };
    let all = (1_000_000, 10);
    check(POLICY, all, true, &[]);
    check(POLICY, (5000, 10), true, &["E1108"]);
    check(POLICY, all, false, &["E1108"]);
    let of_one = "spec: {matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: ['*']}]}, ";
    let denies = POLICY.replace("spec: {", of_one).replace(">= 0", "> 0");
    check(&denies, all, true, &["E3111"]);
    check(&denies, (1_000_000, 0), true, &["E1108"]);
    check(&denies.replace(of_one, &format!("{of_one}action: warn, ")), (1_000_000, 0), true, &[]);
}

#[test]
fn secret_values_stay_out_of_verdict_messages() {
    let policy = "apiVersion: tutti.dev/v1alpha1
kind: Policy
metadata: {name: told}
spec:
  validations: [{expression: 'false', message: hidden, messageExpression: \"'kept: ' + oldObject.spec.token\"}]
";
    let snapshot = snapshot(&[("apps/web/app.yaml", WEB), ("policies/a.yaml", policy)]);
    let fleet = Arc::new(fleet(&snapshot));
    let renders = FleetRenderer::new(&fleet, &snapshot, &NoCharts).render_all(&mut RenderCache::default());
    let admission = Admission::of(&fleet, &renders).expect("there is a policy");
    let rendered = renders.results().flatten().next().expect("it is rendered");
    let around = admission.admission_context(&fleet.apps[&rendered.app], rendered, |_| None);
    let target = admission.target(rendered, &around);
    let old = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}, "spec": {"token": "secret"}});
    let said = |denial: Option<crate::model::PolicyDenial>| denial.expect("it is denied").message.to_string();
    let object = &rendered.objects[0];
    assert_eq!(said(target.denies(object, Some((&old, false)))), "kept: secret");
    assert_eq!(said(target.denies(object, Some((&old, true)))), "hidden");
    assert_eq!(said(target.denies_delete(&object.id, &object.kind, &old)), "hidden");
    assert_eq!(said(admission.denies_delete(&rendered.app, &rendered.cluster, &old, "configmaps")), "hidden");
}

#[test]
fn broken_file_makes_namespace_labels_unknown() {
    let policy = "apiVersion: tutti.dev/v1alpha1
kind: Policy
metadata: {name: prod}
spec:
  matchConstraints: {namespaceSelector: {matchLabels: {tier: prod}}}
  validations: [{expression: 'false', message: hidden}]
";
    let denies = |more: &[(&str, &str)]| {
        let files = [("apps/web/app.yaml", WEB), ("policies/a.yaml", policy)];
        let snapshot = snapshot(&[&files[..], more].concat());
        let fleet = Arc::new(assemble(manifest::read(&snapshot), &snapshot));
        let renders =
            FleetRenderer::new(&fleet, &snapshot, &NoCharts).render_all(&mut RenderCache::default());
        let admission = Admission::of(&fleet, &renders).expect("there is a policy");
        let rendered = renders.results().flatten().next().expect("it is rendered");
        let around = admission.admission_context(&fleet.apps[&rendered.app], rendered, |_| None);
        admission.target(rendered, &around).denies(&rendered.objects[0], None).is_some()
    };
    assert!(!denies(&[]));
    assert!(denies(&[("apps/space/app.yaml", "kind: [")]));
}
