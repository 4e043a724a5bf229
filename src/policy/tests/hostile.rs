use super::*;
use crate::policy::PolicyVerdict;
use crate::policy::compiled_policy::{CompileBudget, CompiledPolicy};
use crate::policy::policy_set::MOST_STEPS;

const PARTS: [&str; 46] = [
    "object",
    ".spec",
    ".metadata",
    ".containers",
    "[0]",
    "oldObject",
    "request",
    "params",
    "namespaceObject",
    "app",
    "cluster",
    "ring",
    "variables.a",
    "variables.b",
    ".all(x, ",
    ".map(x, ",
    ".filter(x, ",
    ".exists(x, ",
    "x",
    ")",
    "(",
    " && ",
    " || ",
    " == ",
    " + ",
    " in ",
    "'a'",
    "1",
    "[1, 2]",
    "{'a': 1}",
    ".size()",
    ".matches('(a*)*b')",
    ".join(',')",
    ".replace('a', 'aaaa')",
    "'%.60000f'.format([1.0])",
    "lists.range(999999)",
    ".?x",
    ".orValue(1)",
    "has(",
    "!",
    "-",
    " ? ",
    " : ",
    "quantity('1Gi')",
    "true",
    "true || ",
];

/// Every policy and object gives a verdict within the limits.
#[test]
fn hostile_policies_end() {
    let mut seed = 7_u64;
    let mut next = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap_or(0) % most
    };
    let items: Vec<Json> =
        (0..300).map(|it| json!({"name": format!("a{it}"), "x": [it, null, 1.5]})).collect();
    let objects = [
        deployment(1),
        json!({"spec": {"containers": items}, "metadata": {"name": ["a"], "namespace": 7, "labels": [1]}}),
        json!({"metadata": null, "spec": "a".repeat(100_000)}),
        json!([]),
    ];
    let (mut usable, mut denied, mut allowed) = (0, 0, 0);
    for _ in 0..400 {
        let mut text = || -> String {
            let mut text: String = (0..=next(8)).map(|_| PARTS[next(PARTS.len())]).collect();
            let open = text.matches('(').count().saturating_sub(text.matches(')').count());
            text.push_str(&")".repeat(open));
            text
        };
        let mut hostile = policy(&[&text(), &text()]);
        hostile.validations[0].message_expression = Some(expression(&text(), 3));
        hostile.variables = vec![named("a", &text()), named("b", &text())];
        hostile.params = Some(json!({"spec": [1, 2]}));
        let (policies, mistakes) = Policies::of(&[Arc::new(hostile)]);
        usable += usize::from(mistakes.is_empty());
        // Most texts are invalid, so one policy has a single valid expression.
        let usable_text = text();
        let (single, wrong) = Policies::of(&[Arc::new(policy(&[&usable_text]))]);
        usable += usize::from(wrong.is_empty());
        for object in &objects {
            for (new, old) in [(Some(object), None), (Some(object), Some(&objects[0])), (None, Some(object))]
            {
                for policies in [&policies, &single] {
                    let judgement = judged(policies, new, old);
                    assert!(judgement.steps <= 1_000_000, "{policies:?}");
                    denied += judgement.verdicts.len();
                    allowed += usize::from(judgement.verdicts.is_empty());
                }
            }
        }
    }
    assert!(usable > 20 && denied > 100 && allowed > 10, "{usable} {denied} {allowed}");
}

#[test]
fn compiling_all_policies_is_bounded() {
    let short = Arc::new(policy(&["true"]));
    let dear = Arc::new(policy(&["'a'.matches('[a-z]{90}') || 'b'.matches('[a-z]{90}')"]));
    let mistakes =
        |policy: &Arc<Policy>, budget: &mut CompileBudget| CompiledPolicy::of(policy, budget).1.len();
    let mut budget = CompileBudget(10_000);
    assert_eq!(mistakes(&short, &mut budget), 0);
    assert_eq!(mistakes(&dear, &mut budget), 1);
    assert_eq!(mistakes(&short, &mut budget), 1, "nothing is left for those that come after");
    let (_, wrong) = Policies::of(&[Arc::new(policy(&[&format!(
        "{} == true",
        vec!["'a'.matches('[a-z]{900}')"; 20].join(" || ")
    )]))]);
    assert_eq!(wrong[0].mistake.message, "its regular expressions are too large together");
}

#[test]
fn levels_of_a_value_are_bounded() {
    let nested = |of: &str, levels: usize| format!("{}{of}{}", "[".repeat(levels), "]".repeat(levels));
    let verdict = |variables: usize, validation: &str| {
        let mut deep = policy(&[validation]);
        let variable = |index: usize| {
            let of = if index == 0 { "1".to_owned() } else { format!("variables.v{}", index - 1) };
            named(&format!("v{index}"), &nested(&of, 35))
        };
        deep.variables = (0..variables).map(variable).collect();
        deep.variables.push(named("all", &format!("variables.v{}", variables - 1)));
        let verdicts = judged(&compiled(vec![deep]), Some(&deployment(1)), None).verdicts;
        verdicts.into_iter().map(|it| it.message).collect::<Vec<_>>()
    };
    for validation in [
        "variables.all == variables.all",
        "'%s'.format([variables.all]) != ''",
        "sets.contains([variables.all], [variables.all])",
    ] {
        assert_eq!(verdict(3, validation), [""; 0], "{validation}");
        let denied = verdict(62, validation);
        assert!(denied[0].ends_with("a value has too many levels"), "{denied:?}");
    }
}

#[test]
fn verdicts_of_an_object_are_bounded() {
    let count = |action: PolicyAction| {
        let rule = |number: usize| Policy { name: format!("p{number}"), action, ..policy(&["false"; 10]) };
        let denying = Policy { name: "last".to_owned(), ..policy(&["false"]) };
        let policies = compiled((0..50).map(rule).chain([denying]).collect());
        let verdicts = judged(&policies, Some(&deployment(1)), None).verdicts;
        (verdicts.len(), verdicts.iter().filter(|it| it.action == PolicyAction::Deny).count())
    };
    assert_eq!(count(PolicyAction::Deny), (70, 70));
    assert_eq!(count(PolicyAction::Warn), (71, 1));
}

#[test]
fn policies_share_the_steps_of_an_object() {
    let items: Vec<u32> = (0..2000).collect();
    let endless = policy(&["object.all(a, object.all(b, object.all(c, a < 3000)))"]);
    let rule = |name: String| Policy { name, ..endless.clone() };
    let policies =
        compiled((0..30).map(|number| rule(format!("p{number}"))).chain([policy(&["true"])]).collect());
    let judgement = judged(&policies, Some(&json!(items)), None);
    assert_eq!(judgement.steps, MOST_STEPS);
    assert_eq!(judgement.verdicts.len(), 31, "the last one, too, for which nothing is left");
    let is_long = |it: &PolicyVerdict| it.message.contains("it takes too long on an object of this size");
    assert!(judgement.verdicts.iter().all(is_long), "{judgement:?}");
}
