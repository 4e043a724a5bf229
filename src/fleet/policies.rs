//! The policies of the repository, compiled: those of kind Policy, and each ValidatingAdmissionPolicy with its bindings.

use std::sync::Arc;

use serde_json::Value;

use super::codes;
use super::text_places::within;
use crate::manifest::Manifests;
use crate::manifest::read::suggest;
use crate::model::{
    AdmissionBinding, AdmissionPolicy, Diagnostic, Location, ParamObject, ParamRef, Policy, Scope, Snapshot,
};
use crate::policy::{Policies, PolicyMistake};

const HELP: &str = "an expression in CEL with the variables of a ValidatingAdmissionPolicy: object, oldObject, request, params, \
                    namespaceObject and variables, and with app, cluster, ring and objects";

pub fn of(manifests: &Manifests, snapshot: &Snapshot) -> (Policies, Vec<Diagnostic>) {
    let (mut bound, mut found) = bound(manifests);
    bound.extend(manifests.policies.iter().cloned());
    bound.sort_by(|one, other| (&one.location, &one.name).cmp(&(&other.location, &other.name)));
    let (compiled, mut mistakes) = Policies::of(&bound);
    // What has no binding is read all the same.
    let unbound =
        manifests.admission_policies.iter().filter(|it| bindings_of(it, manifests).next().is_none());
    let unbound: Vec<_> = unbound.map(|it| Arc::new(with_params(it, Some(Value::Null)))).collect();
    mistakes.append(&mut Policies::of(&unbound).1);
    let mut told: Vec<Diagnostic> = mistakes.iter().map(|mistake| told(mistake, snapshot)).collect();
    told.dedup();
    found.append(&mut told);
    (compiled, found)
}

fn told(found: &PolicyMistake, snapshot: &Snapshot) -> Diagnostic {
    let PolicyMistake { policy, expression, mistake } = found;
    let message = format!("an expression of policy {policy} cannot be used: {}", mistake.message);
    let place = within(&expression.location, mistake.line, mistake.column, snapshot);
    let scope = Scope::File(expression.location.file.clone());
    Diagnostic::error(codes::POLICY, message, scope).at(place).in_path(expression.path.clone()).help(HELP)
}

/// One policy for each binding.
fn bound(manifests: &Manifests) -> (Vec<Arc<Policy>>, Vec<Diagnostic>) {
    let (mut bound, mut found) = (Vec::new(), Vec::new());
    for binding in &manifests.admission_bindings {
        let policies = &manifests.admission_policies;
        let Some(of) = policies.iter().find(|it| it.policy.name == binding.policy) else {
            let known: Vec<&str> = policies.iter().map(|it| it.policy.name.as_str()).collect();
            let message =
                format!("binding {} is of policy {}, which is not there", binding.name, binding.policy);
            let help = match known.len() {
                0 => "put the ValidatingAdmissionPolicy into policies/".to_owned(),
                _ => suggest(&binding.policy, &known, &known),
            };
            found.push(error(&binding.policy_location, message, &help));
            continue;
        };
        match params(of, binding, &manifests.policy_params) {
            Ok(Params::Known(params)) => bound.push(Arc::new(joined(of, binding, params))),
            Ok(Params::Missing(reference)) => {
                let message =
                    format!("binding {} is not used: there are no params {}", binding.name, reference.name);
                let help = "put the object into policies/, or remove the binding";
                found.push(warning(&reference.location, message, help));
            }
            Err(mistake) => found.push(*mistake),
        }
    }
    for policy in manifests.admission_policies.iter().filter(|it| bindings_of(it, manifests).next().is_none())
    {
        let message = format!("policy {} has no binding, so it does nothing", policy.policy.name);
        let help = "add a ValidatingAdmissionPolicyBinding to policies/, or write it as kind Policy";
        found.push(warning(&policy.policy.location, message, help));
    }
    for object in &manifests.policy_params {
        let is_named =
            |binding: &&AdmissionBinding| binding.params.as_ref().is_some_and(|it| it.name == object.name);
        if manifests.admission_bindings.iter().find(is_named).is_none() {
            let message = format!("no binding of a policy names {} {}", object.kind, object.name);
            let help = "objects below policies/ are params of policies; move it to the files of an app, or delete it";
            found.push(warning(&object.location, message, help));
        }
    }
    (bound, found)
}

fn bindings_of<'m>(
    policy: &AdmissionPolicy,
    manifests: &'m Manifests,
) -> impl Iterator<Item = &'m AdmissionBinding> {
    manifests.admission_bindings.iter().filter(|it| it.policy == policy.policy.name)
}

fn joined(of: &AdmissionPolicy, binding: &AdmissionBinding, params: Option<Value>) -> Policy {
    let mut policy = with_params(of, params);
    policy.action = binding.action;
    policy.constraints.extend(binding.constraints.clone());
    policy
}

fn with_params(of: &AdmissionPolicy, params: Option<Value>) -> Policy {
    // Without a paramKind, `params` is unknown to its expressions.
    Policy { params: params.filter(|_| of.param_kind.is_some()), ..of.policy.clone() }
}

enum Params<'a> {
    Known(Option<Value>),
    /// And the binding allows that.
    Missing(&'a ParamRef),
}

fn params<'a>(
    of: &AdmissionPolicy,
    binding: &'a AdmissionBinding,
    objects: &[ParamObject],
) -> Result<Params<'a>, Box<Diagnostic>> {
    let (reference, (api_version, kind)) = match (&binding.params, &of.param_kind) {
        (None, _) => return Ok(Params::Known(Some(Value::Null))),
        (Some(reference), None) => {
            let message = format!("policy {} has no paramKind, so it takes no params", binding.policy);
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
        Some(object) => Ok(Params::Known(Some(object.value.clone()))),
        None if reference.is_required => {
            let message = format!("there is no {kind} {} of {api_version} below policies/", reference.name);
            let help = "params of a policy stand below policies/, or parameterNotFoundAction is Allow";
            Err(Box::new(error(&reference.location, message, help)))
        }
        None => Ok(Params::Missing(reference)),
    }
}

fn error(place: &Location, message: String, help: &str) -> Diagnostic {
    let scope = Scope::File(place.file.clone());
    Diagnostic::error(codes::POLICY_BINDING, message, scope).at(place.clone()).help(help)
}

fn warning(place: &Location, message: String, help: &str) -> Diagnostic {
    let scope = Scope::File(place.file.clone());
    Diagnostic::warning(codes::POLICY_BINDING, message, scope).at(place.clone()).help(help)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use crate::fleet::{Fleet, assemble};
    use crate::manifest;
    use crate::model::{AppId, ClusterFacts, Kind, PolicyAction, Snapshot};
    use crate::policy::{Change, PolicyTarget};

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

    /// Of a Deployment with this spec: action and message.
    #[expect(clippy::needless_pass_by_value, reason = "cases are written in place")]
    fn said(fleet: &Fleet, spec: serde_json::Value) -> Vec<(PolicyAction, String)> {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "shop"}, "spec": spec});
        let (labels, app) = (BTreeMap::new(), AppId::new("shop", "web"));
        let cluster = ClusterFacts { name: "bj", labels: &labels, ring: None };
        let target = PolicyTarget { app: &app, app_labels: &labels, version: None, cluster, objects: &[] };
        let change = Change {
            kind: &Kind::new("apps", "v1", "Deployment"),
            plural: None,
            object: Some(&object),
            old_object: None,
            namespace_labels: None,
            hides_values: false,
        };
        let verdicts = fleet.policies.chosen(&target).judge(&change).verdicts;
        verdicts.into_iter().map(|it| (it.action, it.message)).collect()
    }

    #[test]
    fn admission_policy_is_read_with_its_bindings() {
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
        // What cannot be evaluated is denied.
        let (action, message) = &said(&fleet, json!({}))[0];
        assert_eq!(*action, PolicyAction::Deny);
        assert!(message.contains("there is no field `replicas`"), "{message}");
    }

    #[test]
    fn failures_are_ignored_where_a_policy_says_so() {
        let policy = POLICY.replace("failurePolicy: Fail", "failurePolicy: Ignore");
        let fleet = fleet(&[&policy, &binding("deny", "  validationActions: [Deny]\n")]);
        assert_eq!(said(&fleet, json!({})), []);
        assert_eq!(said(&fleet, json!({"replicas": 1})).len(), 1);
    }

    #[test]
    fn bindings_fit_their_policy() {
        let check = |documents: &[&str], expected: &[&str]| assert_eq!(told(&fleet(documents)), expected);
        let deny = binding("deny", "  validationActions: [Deny]\n");
        check(&[POLICY], &["3 E2143 policy least has no binding, so it does nothing"]);
        check(&[&deny], &["5 E2143 binding deny is of policy least, which is not there"]);
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
            &[
                "3 E2143 policy least has no binding, so it does nothing",
                "22 E1202 `name` is missing",
                "22 E1290 paramRef.selector is not supported yet",
            ],
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
        check(&[&unknown], &["5 E1201 unknown field `failurPolicy` in `spec`"]);
        let wrong = POLICY.replace("object.spec.replicas >=", "authorizer.x >=");
        check(
            &[&wrong, &deny],
            &[
                "11 E2141 an expression of policy least cannot be used: `authorizer` asks a cluster, and policies are evaluated without one",
            ],
        );
    }
}
