//! Compiles the policies of the repository: those of kind Policy, and each ValidatingAdmissionPolicy with its bindings. Called
//! by `assemble`.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::codes;
use super::text_locations::location_in_text;
use crate::manifest::Manifests;
use crate::manifest::codes::LIMIT;
use crate::manifest::read::suggest;
use crate::model::{
    AdmissionBinding, AdmissionPolicy, Diagnostic, DiagnosticScope, Location, ParamObject, ParamRef, Policy,
    Snapshot,
};
use crate::policy::{Policies, PolicyMistake};

const HELP: &str = "an expression in CEL with the variables of a ValidatingAdmissionPolicy: object, oldObject, request, params, \
                    namespaceObject and variables, and with app, cluster, ring and objects";

/// The bound for policies, and for bindings: every policy is compiled and evaluated for every object.
const MOST_POLICIES: usize = 256;

pub fn compile_policies(manifests: &Manifests, snapshot: &Snapshot) -> (Policies, Vec<Diagnostic>) {
    let (mut bound, mut found) = bound_policies(manifests);
    bound.extend(manifests.policies.iter().take(MOST_POLICIES + 1).cloned());
    bound.sort_by(|one, other| (&one.location, &one.name).cmp(&(&other.location, &other.name)));
    let next = bound.get(MOST_POLICIES).map(|policy| &policy.location);
    let next = next.or(manifests.admission_bindings.get(MOST_POLICIES).map(|binding| &binding.location));
    if let Some(place) = next.cloned() {
        let message = format!(
            "a repository has at most {MOST_POLICIES} policies, and as many bindings: everything is denied"
        );
        let scope = DiagnosticScope::File(place.file.clone());
        let error = Diagnostic::error(LIMIT, message, scope).at(place.clone());
        found.push(error.help("write one policy with several validations"));
        bound.truncate(MOST_POLICIES);
        // This policy denies everything in place of those that are not read.
        bound.push(Arc::new(Policy::unreadable(&place.file, place.clone())));
    }
    let (compiled, mut mistakes) = Policies::of(&bound);
    // A policy without a valid binding is compiled too, to report its mistakes.
    let is_bound = bound_names(manifests.admission_bindings.iter().filter(|it| !it.has_mistake));
    let unbound = manifests.admission_policies.iter().filter(|it| !is_bound.contains(&*it.policy.name));
    let unbound = unbound.take(MOST_POLICIES).map(|it| Arc::new(with_params(it, Some(Value::Null))));
    mistakes.append(&mut Policies::of(&unbound.collect::<Vec<_>>()).1);
    let mut told: Vec<Diagnostic> =
        mistakes.iter().map(|mistake| expression_error(mistake, snapshot)).collect();
    // A policy with several bindings is compiled once for each of them.
    told.sort_by(|one, other| (&one.location, &one.message).cmp(&(&other.location, &other.message)));
    told.dedup();
    found.append(&mut told);
    (compiled, found)
}

fn bound_names<'m>(bindings: impl Iterator<Item = &'m AdmissionBinding>) -> BTreeSet<&'m str> {
    bindings.filter_map(|it| it.policy.as_deref()).collect()
}

fn expression_error(found: &PolicyMistake, snapshot: &Snapshot) -> Diagnostic {
    let PolicyMistake { policy, expression, mistake } = found;
    let message = format!("an expression of policy {policy} cannot be used: {}", mistake.message);
    let place = location_in_text(&expression.location, mistake.line, mistake.column, snapshot);
    let scope = DiagnosticScope::File(expression.location.file.clone());
    Diagnostic::error(codes::POLICY_EXPRESSION, message, scope)
        .at(place)
        .in_path(expression.path.clone())
        .help(HELP)
}

/// One policy for each binding. A binding with a mistake denies all that it matches.
fn bound_policies(manifests: &Manifests) -> (Vec<Arc<Policy>>, Vec<Diagnostic>) {
    let (mut bound, mut found) = (Vec::new(), Vec::new());
    let policies = &manifests.admission_policies;
    for binding in manifests.admission_bindings.iter().take(MOST_POLICIES) {
        if bound.len() > MOST_POLICIES {
            break;
        }
        let named = policies.iter().filter(|it| binding.policy.as_ref() == Some(&it.policy.name));
        let mut named = named.take(MOST_POLICIES + 1).peekable();
        if named.peek().is_none() {
            found.extend(
                binding.policy.as_ref().map(|policy| unknown_policy_error(binding, policy, policies)),
            );
            let lost = Policy::unreadable(&binding.name, binding.location.clone());
            bound.push(Arc::new(apply_binding(lost, binding)));
        }
        for of in named {
            match find_params(of, binding, &manifests.policy_params) {
                Ok(BindingParams::Found(params)) => {
                    bound.push(Arc::new(apply_binding(with_params(of, params), binding)))
                }
                Ok(BindingParams::Missing(reference)) => {
                    let message = format!(
                        "binding {} is not used: there are no params {}",
                        binding.name, reference.name
                    );
                    let help = "put the object into policies/, or remove the binding";
                    found.push(warning(&reference.location, message, help));
                }
                Err(mistake) => {
                    found.push(*mistake);
                    let denying = Policy { has_mistake: true, ..of.policy.clone() };
                    bound.push(Arc::new(apply_binding(denying, binding)));
                }
            }
        }
    }
    let is_bound = bound_names(manifests.admission_bindings.iter());
    let is_unbound = |it: &&AdmissionPolicy| !it.policy.has_mistake && !is_bound.contains(&*it.policy.name);
    for policy in policies.iter().filter(is_unbound) {
        let message = format!("policy {} has no binding, so it does nothing", policy.policy.name);
        let help = "add a ValidatingAdmissionPolicyBinding to policies/, or write it as kind Policy";
        found.push(warning(&policy.policy.location, message, help));
    }
    let references = manifests.admission_bindings.iter().filter_map(|it| it.params.as_ref());
    let named: BTreeSet<&str> = references.map(|it| it.name.as_str()).collect();
    for object in &manifests.policy_params {
        if !named.contains(&*object.name) {
            let message = format!("no binding of a policy names {} {}", object.kind, object.name);
            let help = "objects below policies/ are params of policies; move it to the files of an app, or delete it";
            found.push(warning(&object.location, message, help));
        }
    }
    (bound, found)
}

fn unknown_policy_error(
    binding: &AdmissionBinding,
    policy: &str,
    policies: &[AdmissionPolicy],
) -> Diagnostic {
    let known: Vec<&str> = policies.iter().map(|it| it.policy.name.as_str()).collect();
    let message = format!("binding {} is of policy {policy}, which does not exist", binding.name);
    let help = match known.len() {
        0 => "put the ValidatingAdmissionPolicy into policies/".to_owned(),
        _ => suggest(policy, &known, &known),
    };
    error(&binding.policy_location, message, &help)
}

fn apply_binding(mut policy: Policy, binding: &AdmissionBinding) -> Policy {
    policy.action = binding.action;
    policy.constraints.extend(binding.constraints.clone());
    policy.has_mistake |= binding.has_mistake;
    policy
}

fn with_params(of: &AdmissionPolicy, params: Option<Value>) -> Policy {
    // Without a paramKind, expressions cannot name `params`.
    Policy { params: params.filter(|_| of.param_kind.is_some()), ..of.policy.clone() }
}

enum BindingParams<'a> {
    Found(Option<Value>),
    /// The params object is missing, and the binding allows that.
    Missing(&'a ParamRef),
}

fn find_params<'a>(
    of: &AdmissionPolicy,
    binding: &'a AdmissionBinding,
    objects: &[ParamObject],
) -> Result<BindingParams<'a>, Box<Diagnostic>> {
    let (reference, (api_version, kind)) = match (&binding.params, &of.param_kind) {
        // Other mismatches may follow from the mistake.
        _ if binding.has_mistake || of.policy.has_mistake => {
            return Ok(BindingParams::Found(Some(Value::Null)));
        }
        (None, _) => return Ok(BindingParams::Found(Some(Value::Null))),
        (Some(reference), None) => {
            let message = format!("policy {} has no paramKind, so it takes no params", of.policy.name);
            return Err(Box::new(error(
                &reference.location,
                message,
                "remove paramRef, or add paramKind to the policy",
            )));
        }
        (Some(reference), Some(kind)) => (reference, kind),
    };
    let is_it = |it: &&ParamObject| {
        (&it.api_version, &it.kind, &it.name) == (api_version, kind, &reference.name)
            && (reference.namespace.is_none() || it.namespace == reference.namespace)
    };
    match objects.iter().find(is_it) {
        Some(object) if object.namespace.is_some() && reference.namespace.is_none() => {
            let message = format!("params {} are in a namespace, and paramRef has none", reference.name);
            let help = "write paramRef.namespace: params of the namespace of each object are not supported";
            Err(Box::new(error(&reference.location, message, help)))
        }
        Some(object) => Ok(BindingParams::Found(Some(object.value.clone()))),
        None if reference.is_required => {
            let message = format!("there is no {kind} {} of {api_version} below policies/", reference.name);
            let help = "params of a policy are below policies/, or parameterNotFoundAction is Allow";
            Err(Box::new(error(&reference.location, message, help)))
        }
        None => Ok(BindingParams::Missing(reference)),
    }
}

fn error(place: &Location, message: String, help: &str) -> Diagnostic {
    let scope = DiagnosticScope::File(place.file.clone());
    Diagnostic::error(codes::POLICY_BINDING, message, scope).at(place.clone()).help(help)
}

fn warning(place: &Location, message: String, help: &str) -> Diagnostic {
    let scope = DiagnosticScope::File(place.file.clone());
    Diagnostic::warning(codes::POLICY_BINDING, message, scope).at(place.clone()).help(help)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::MOST_POLICIES;
    use crate::fleet::{Fleet, assemble};
    use crate::manifest;
    use crate::model::{AppId, ClusterFacts, GroupVersionKind, PolicyAction, Snapshot};
    use crate::policy::{PolicyObjectChange, PolicyTarget};

    const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: least}
spec:
  failurePolicy: Fail
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  variables: [{name: least, expression: 'params == null ? 2 : int(params.data.least)'}]
  validations:
    - expression: object.spec.replicas >= variables.least
      messageExpression: \"'at least ' + string(variables.least)\"
      reason: Invalid
  auditAnnotations: [{key: replicas, valueExpression: string(object.spec.replicas)}]
";
    const PARAMS: &str =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: least, namespace: shop}\ndata: {least: '5'}\n";

    fn binding(name: &str, spec: &str) -> String {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: {name}}}\nspec:\n  policyName: least\n{spec}"
        )
    }

    fn fleet(documents: &[&str]) -> Fleet {
        let text = documents.join("---\n");
        let snapshot = Snapshot::of_texts([("policies/a.yaml", text.as_str())]);
        assemble(manifest::read(&snapshot), &snapshot)
    }

    /// `line code message` of each mistake.
    fn told(fleet: &Fleet) -> Vec<String> {
        let line = |it: &crate::model::Diagnostic| it.location.as_ref().map_or(0, |at| at.start.line);
        fleet.diagnostics.iter().map(|it| format!("{} {} {}", line(it), it.code, it.message)).collect()
    }

    /// Action and message for a Deployment with this spec.
    #[expect(clippy::needless_pass_by_value, reason = "cases are written in place")]
    fn said(fleet: &Fleet, spec: serde_json::Value) -> Vec<(PolicyAction, String)> {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "shop"}, "spec": spec});
        let (labels, app) = (BTreeMap::new(), AppId::new("shop", "web"));
        let cluster = ClusterFacts { name: "bj", labels: &labels, ring: None };
        let target = PolicyTarget { app: &app, app_labels: &labels, version: None, cluster, objects: &[] };
        let change = PolicyObjectChange {
            kind: &GroupVersionKind::new("apps", "v1", "Deployment"),
            plurals: &[],
            object: Some(&object),
            old_object: None,
            namespace_labels: Some(&labels),
            hides_values: false,
        };
        let verdicts = fleet.policies.select(&target).evaluate(&change).verdicts;
        verdicts.into_iter().map(|it| (it.action, it.message)).collect()
    }

    #[test]
    fn admission_policy_is_compiled_with_its_bindings() {
        let deny = binding("deny", "  validationActions: [Audit, Deny]\n");
        let warn = binding(
            "warn",
            "  validationActions: [Warn]\n  paramRef: {name: least, namespace: shop, parameterNotFoundAction: Deny}\n",
        );
        let audit = binding(
            "audit",
            "  validationActions: [Audit]\n  matchResources: {namespaceSelector: {matchLabels: {tier: web}}}\n",
        );
        let fleet = fleet(&[POLICY, &deny, &warn, &audit, PARAMS]);
        assert_eq!(told(&fleet), [""; 0]);
        let two = (PolicyAction::Deny, "at least 2".to_owned());
        let five = (PolicyAction::Warn, "at least 5".to_owned());
        assert_eq!(said(&fleet, json!({"replicas": 1})), [two, five.clone()]);
        assert_eq!(said(&fleet, json!({"replicas": 3})), [five]);
        assert_eq!(said(&fleet, json!({"replicas": 5})), []);
        // An expression that fails denies.
        let (action, message) = &said(&fleet, json!({}))[0];
        assert_eq!(*action, PolicyAction::Deny);
        assert!(message.contains("there is no field `replicas`"), "{message}");
    }

    #[test]
    fn failure_policy_ignore_skips_failures() {
        let policy = POLICY.replace("failurePolicy: Fail", "failurePolicy: Ignore");
        let fleet = fleet(&[&policy, &binding("deny", "  validationActions: [Deny]\n")]);
        assert_eq!(said(&fleet, json!({})), []);
        assert_eq!(said(&fleet, json!({"replicas": 1})).len(), 1);
    }

    #[test]
    fn broken_policy_denies_what_it_matches() {
        let mistake = || vec![(PolicyAction::Deny, "the policy has an error".to_owned())];
        let check = |documents: &[&str], expected: Vec<(PolicyAction, String)>| {
            let said = said(&fleet(documents), json!({"replicas": 9})).into_iter();
            let short =
                |text: String| text.split(": policies/").next().map(str::to_owned).unwrap_or_default();
            let said: Vec<_> = said.map(|(action, text)| (action, short(text))).collect();
            assert_eq!(said, expected, "{documents:?}");
        };
        let deny = binding("deny", "  validationActions: [Deny]\n");
        let with = |spec: &str| format!("{deny}{spec}");
        let of_services = "  matchResources: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [services], operations: ['*']}]}\n";
        let unknown = POLICY.replace("failurePolicy", "failurPolicy");
        check(&[POLICY, &deny], vec![]);
        check(&[&unknown, &deny], mistake());
        check(&[&unknown.replace("deployments", "services"), &deny], vec![]);
        check(&[&unknown], vec![]);
        check(&[&deny], mistake());
        check(&[&with(of_services)], vec![]);
        check(&[POLICY, &deny.replace("policyName: least", "policyName: [least]")], mistake());
        check(&[POLICY, &with("  paramRef: {name: most}\n")], mistake());
        check(&[POLICY, &with("  paramRef: {name: most, parameterNotFoundAction: Allow}\n")], vec![]);
        check(&[POLICY, &with("  paramRef: {selector: {}}\n")], mistake());
        let strict = POLICY.replace("replicas >=", "replicas > 99 && object.spec.replicas >=");
        check(&[POLICY, &strict, &deny], vec![(PolicyAction::Deny, "at least 2".to_owned())]);
        // The unreadable document may be the params of another binding.
        check(&[POLICY, &deny, "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"], mistake());
    }

    #[test]
    fn number_of_policies_and_bindings_is_bounded() {
        let own = |number: usize| {
            format!(
                "apiVersion: tutti.dev/v1alpha1\nkind: Policy\nmetadata: {{name: p{number}}}\nspec: {{validations: [{{expression: 'true'}}]}}\n"
            )
        };
        let bound = |number: usize| binding(&format!("b{number}"), "  validationActions: [Deny]\n");
        let check = |documents: Vec<String>, is_over: bool| {
            let documents: Vec<&str> =
                std::iter::once(POLICY).chain(documents.iter().map(String::as_str)).collect();
            let fleet = fleet(&documents);
            let limit = fleet.diagnostics.iter().any(|it| it.code == super::LIMIT);
            assert_eq!((limit, fleet.policies.all().count() <= MOST_POLICIES + 1), (is_over, true));
            assert_eq!(said(&fleet, json!({"replicas": 9})).len(), usize::from(is_over));
        };
        check((0..MOST_POLICIES).map(own).collect(), false);
        check((0..=MOST_POLICIES).map(own).collect(), true);
        check((0..MOST_POLICIES).map(bound).collect(), false);
        check((0..=MOST_POLICIES).map(bound).collect(), true);
        check((0..200).map(bound).chain((0..57).map(own)).collect(), true);
    }

    #[test]
    fn bindings_must_fit_their_policy() {
        let check = |documents: &[&str], expected: &[&str]| assert_eq!(told(&fleet(documents)), expected);
        let deny = binding("deny", "  validationActions: [Deny]\n");
        check(&[POLICY], &["3 E2143 policy least has no binding, so it does nothing"]);
        check(&[&deny], &["5 E2143 binding deny is of policy least, which does not exist"]);
        let with =
            |params: &str| binding("deny", &format!("  validationActions: [Deny]\n  paramRef: {params}\n"));
        let own = POLICY
            .replace("  paramKind: {apiVersion: v1, kind: ConfigMap}\n", "")
            .replace("params == null ? 2 : int(params.data.least)", "2");
        check(
            &[&own, &with("{name: least}")],
            &["21 E2143 policy least has no paramKind, so it takes no params"],
        );
        check(
            &[POLICY, &with("{name: most}")],
            &["22 E2143 there is no ConfigMap most of v1 below policies/"],
        );
        check(
            &[POLICY, &with("{name: most, parameterNotFoundAction: Allow}")],
            &["22 E2143 binding deny is not used: there are no params most"],
        );
        check(
            &[POLICY, &with("{name: least}"), PARAMS],
            &["22 E2143 params least are in a namespace, and paramRef has none"],
        );
        check(
            &[POLICY, &with("{selector: {}}")],
            &["22 E1202 `name` is missing", "22 E1290 paramRef.selector is not supported yet"],
        );
        check(&[POLICY, &deny, PARAMS], &["23 E2143 no binding of a policy names ConfigMap least"]);
        check(
            &[POLICY, &deny, &deny],
            &[
                "25 E2001 ValidatingAdmissionPolicyBinding deny has the identity of ValidatingAdmissionPolicyBinding deny at policies/a.yaml:18:18",
            ],
        );
        let old = POLICY.replace("k8s.io/v1", "k8s.io/v1alpha1");
        check(
            &[&old],
            &["1 E1112 ValidatingAdmissionPolicy of admissionregistration.k8s.io/v1alpha1 is not read"],
        );
        let unknown = POLICY.replace("failurePolicy", "failurPolicy");
        // Expressions of a policy are compiled whatever its bindings are.
        let dotted = POLICY.replace("object.spec.replicas >=", "object..spec >=");
        let told = told(&fleet(&[&dotted, &with("{selector: {}}")]));
        assert!(told.iter().any(|it| it.contains("E2141")), "{told:?}");
        check(&[&unknown], &["5 E1201 unknown field `failurPolicy` in `spec`"]);
        let wrong = POLICY.replace("object.spec.replicas >=", "authorizer.x >=");
        let twice = wrong.replace("string(object.spec.replicas)", "'a'").replace(
            "  validations:",
            "  matchConditions: [{name: a, expression: authorizer.y == 1}]\n  validations:",
        );
        let other = binding("other", "  validationActions: [Warn]\n");
        let told = self::told(&fleet(&[&twice, &deny, &other]));
        assert_eq!(told.iter().filter(|it| it.contains("E2141")).count(), 2, "{told:?}");
        check(
            &[&wrong, &deny],
            &[
                "11 E2141 an expression of policy least cannot be used: `authorizer` asks a cluster, and policies are evaluated without one",
            ],
        );
    }
}
