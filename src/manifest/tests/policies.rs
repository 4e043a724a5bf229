//! Policies as they are read: none with a mistake is lost.

use std::sync::Arc;

use super::read_texts;
use crate::manifest;
use crate::model::{Policy, Snapshot, SnapshotFile};

const OWN: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec:\n";
const RULES: &str = "  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE]}]}\n";
const TRUE: &str = "  validations: [{expression: 'true'}]\n";
const BINDING: &str = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: b}\nspec:\n";

/// What is to be denied of it: `name action`, whether it is narrowed by an app, a ring or a cluster, and by kinds of objects.
fn shown(policy: &Policy) -> String {
    let selects = if policy.selector == Default::default() { "all" } else { "some" };
    let of = if policy.constraints.is_empty() { "everything" } else { "kinds" };
    let mistake = if policy.has_mistake { "" } else { " fine" };
    format!("{} {} {selects} {of}{mistake}", policy.name, policy.action)
}

#[track_caller]
fn check(text: &str, codes: &[&str], expected: &[&str]) {
    let read = read_texts(&[("policies/p.yaml", text)]);
    let told: Vec<&str> = read.diagnostics.iter().map(|it| it.code).collect();
    assert_eq!(told, codes, "{text}");
    let policies: Vec<String> = read.policies.iter().map(|it| shown(it)).collect();
    assert_eq!(policies, expected, "{text}");
}

#[test]
fn policy_with_mistake_denies_what_it_matches() {
    let own = |spec: &[&str]| format!("{OWN}{}", spec.concat());
    check(&own(&[RULES, TRUE]), &[], &["p deny all kinds fine"]);
    check(&own(&[RULES]), &["E1202"], &["p deny all kinds"]);
    check(&own(&[RULES, TRUE, "  action: warn\n  parms: {}\n"]), &["E1201"], &["p warn all kinds"]);
    check(&own(&[RULES, TRUE, "  action: wran\n"]), &["E1204"], &["p deny all kinds"]);
    let rings = "  select: {rings: [prod]}\n";
    check(&own(&[RULES, rings]), &["E1202"], &["p deny some kinds"]);
    // What cannot be read of its matching narrows nothing.
    check(&own(&[RULES, TRUE, "  select: {rngs: [prod]}\n"]), &["E1201"], &["p deny all kinds"]);
    check(&own(&[&RULES.replace("CREATE", "CRAETE"), TRUE]), &["E1204"], &["p deny all everything"]);
    check(&own(&[&RULES.replace("Constraints", "Constraint"), TRUE]), &["E1201"], &["p deny all everything"]);
    check(
        &own(&[RULES, TRUE]).replace("name: p", "nme: p"),
        &["E1202", "E1201"],
        &["policies/p.yaml deny all kinds"],
    );
}

#[test]
fn possible_policy_denies_everything() {
    let all = &["policies/p.yaml deny all everything"];
    let own = format!("{OWN}{RULES}{TRUE}");
    check(&own.replace("kind: Policy", "kind: Polcy"), &["E1111"], all);
    check(&own.replace("kind: Policy\n", ""), &["E1110"], all);
    check(&own.replace("v1alpha1", "v1"), &["E1112"], all);
    check(&own.replace("tutti.dev", "tuti.dev"), &["E1112"], all);
    check(&own.replace("tutti.dev/v1alpha1", "v1"), &["E1112"], all);
    check("- a\n", &["E1110"], all);
    check(&format!("{own}  a: [\n"), &["E1102"], all);
    check("data: [\n", &["E1102"], all);
    // Those of other kinds deny nothing.
    check(&own.replace("kind: Policy", "kind: Windw"), &["E1111"], &[]);
    let window = "apiVersion: tutti.dev/v1alpha1\nkind: Window\nspec: [\n";
    check(window, &["E1102"], &[]);
    let hook = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n";
    check(hook, &["E1111"], all);
}

#[test]
fn lists_of_a_policy_are_bounded() {
    let own = |spec: &[&str]| format!("{OWN}{}", spec.concat());
    let list = |item: &str, count: usize| vec![item; count].join(", ");
    let rules = |count: usize| RULES.replace("[deployments]", &format!("[{}]", list("deployments", count)));
    check(&own(&[&rules(900), TRUE]), &[], &["p deny all kinds fine"]);
    check(&own(&[&rules(1100), TRUE]), &["E1108"], &["p deny all everything"]);
    let rings = format!("  select: {{rings: [{}]}}\n", list("prod", 1100));
    check(&own(&[RULES, TRUE, &rings]), &["E1108"], &["p deny all kinds"]);
    let validations = |count: usize| format!("  validations: [{}]\n", list("{expression: 'true'}", count));
    check(&own(&[RULES, &validations(64)]), &[], &["p deny all kinds fine"]);
    check(&own(&[RULES, &validations(65)]), &["E1108"], &["p deny all kinds"]);
    let conditions =
        (0..65).map(|it| format!("{{name: a{it}, expression: 'true'}}")).collect::<Vec<_>>().join(", ");
    for field in ["matchConditions", "variables"] {
        check(
            &own(&[RULES, TRUE, &format!("  {field}: [{conditions}]\n")]),
            &["E1108"],
            &["p deny all kinds"],
        );
    }
}

#[test]
fn file_that_cannot_be_read_denies_everything() {
    let large = format!("{OWN}{RULES}{TRUE}# {}\n", "x".repeat(manifest::yaml::FILE_LIMIT));
    check(&large, &["E1101"], &["policies/p.yaml deny all everything"]);
    let garbled = SnapshotFile { content: vec![0xff, 0xfe, 0x00].into(), ..SnapshotFile::link("x") };
    for file in [SnapshotFile::link("x"), garbled] {
        for (path, expected) in [
            ("policies/p.yaml", Some("policies/p.yaml deny all everything")),
            ("policies", Some("policies deny all everything")),
            ("docs/p.yaml", None),
        ] {
            if path == "policies" && !file.is_link() {
                continue;
            }
            let mut snapshot = Snapshot::of_texts([("docs/a.yaml", "a: b\n")]);
            Arc::make_mut(&mut snapshot.files).insert(path.to_owned(), file.clone());
            let read = manifest::read(&snapshot);
            assert!(read.diagnostics.iter().any(|it| it.code == "E1101"), "{path}");
            let policies: Vec<String> = read.policies.iter().map(|it| shown(it)).collect();
            assert_eq!(policies.first().map(String::as_str), expected, "{path}");
        }
    }
}

#[test]
fn admission_policy_with_mistake_is_read() {
    let read = |text: &str| read_texts(&[("policies/p.yaml", text)]);
    let admission = OWN
        .replace("tutti.dev/v1alpha1", "admissionregistration.k8s.io/v1")
        .replace("kind: ", "kind: ValidatingAdmission");
    let check = |text: &str, codes: &[&str], expected: &str| {
        let read = read(text);
        let told: Vec<&str> = read.diagnostics.iter().map(|it| it.code).collect();
        assert_eq!(told, codes, "{text}");
        let [policy] = &read.admission_policies[..] else { panic!("{text}: {read:?}") };
        assert_eq!((shown(&policy.policy), read.policies.len()), (expected.to_owned(), 0), "{text}");
    };
    let good = format!("{admission}{RULES}{TRUE}");
    check(&good, &[], "p deny all kinds fine");
    check(&format!("{admission}{RULES}"), &["E1202"], "p deny all kinds");
    check(&format!("{admission}{TRUE}"), &["E1202"], "p deny all everything");
    check(&good.replace("k8s.io/v1", "k8s.io/v1alpha1"), &["E1112"], "p deny all kinds");
    check(&good.replace("k8s.io/v1", "k8s.o/v1"), &["E1112"], "p deny all kinds");
    check(&good.replace("AdmissionPolicy", "AdmisionPolicy"), &["E1111"], "p deny all kinds");

    let check = |spec: &str, codes: &[&str], expected: (Option<&str>, bool)| {
        let read = read(&format!("{BINDING}{spec}"));
        let told: Vec<&str> = read.diagnostics.iter().map(|it| it.code).collect();
        assert_eq!(told, codes, "{spec}");
        let [binding] = &read.admission_bindings[..] else { panic!("{spec}: {read:?}") };
        assert_eq!((binding.policy.as_deref(), binding.has_mistake), expected, "{spec}");
    };
    check("  policyName: p\n  validationActions: [Deny]\n", &[], (Some("p"), false));
    check("  policyName: p\n  validationActions: [Dny]\n", &["E1204"], (Some("p"), true));
    check("  policyNme: p\n  validationActions: [Deny]\n", &["E1202", "E1201"], (None, true));
}
