//! ValidatingAdmissionPolicy and its binding, below `policies/`, as the API server reads them.

use super::super::codes;
use super::super::read::{Fields, NameRule, Reading, Value};
use super::super::yaml::Node;
use super::target_selector::{read_all, refuse_empty};
use super::{envelope, expression, policy_rules, spec_fields};
use crate::model::{
    AdmissionBinding, AdmissionPolicy, ParamObject, ParamRef, Policy, PolicyAction, TargetSelector,
};

const GROUP: &str = "admissionregistration.k8s.io/";
const VERSIONS: [&str; 2] = ["admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1"];

const ACTIONS: &[(&str, PolicyAction)] =
    &[("Deny", PolicyAction::Deny), ("Warn", PolicyAction::Warn), ("Audit", PolicyAction::Audit)];

#[derive(Debug)]
pub enum Read {
    Policy(Box<AdmissionPolicy>),
    Binding(Box<AdmissionBinding>),
    Params(Box<ParamObject>),
}

/// A Kubernetes document below `policies/`.
pub fn read(api_version: &str, kind: &str, root: &Node, reading: &mut Reading<'_>) -> Option<Read> {
    if api_version.starts_with(GROUP) {
        if !VERSIONS.contains(&api_version) {
            let value = Value::root(root).entry("apiVersion", reading.file);
            let place = reading.location(value.node);
            let message = format!("{kind} of {api_version} is not read");
            reading
                .mistake(codes::UNKNOWN_API_VERSION, message, place, "apiVersion")
                .help(format!("write {}", VERSIONS[0]));
            return None;
        }
        match kind {
            "ValidatingAdmissionPolicy" => return policy(root, reading).map(Box::new).map(Read::Policy),
            "ValidatingAdmissionPolicyBinding" => {
                return binding(root, reading).map(Box::new).map(Read::Binding);
            }
            _ => {}
        }
    }
    let text = |path: &[&str]| root.find(path).and_then(Node::as_str).map(str::to_owned);
    let Some(name) = text(&["metadata", "name"]) else {
        let (place, message) = (reading.location(root), "`metadata.name` is missing");
        reading.mistake(codes::MISSING_FIELD, message, place, "metadata.name");
        return None;
    };
    Some(Read::Params(Box::new(ParamObject {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: text(&["metadata", "namespace"]),
        name,
        value: root.to_json(),
        location: reading.location(root),
    })))
}

fn policy(root: &Node, reading: &mut Reading<'_>) -> Option<AdmissionPolicy> {
    let (metadata, spec) = envelope(root, NameRule::Subdomain, false, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let param_kind = fields.optional("paramKind", reading).map(|it| read_param_kind(&it, reading));
    let constraints = fields.required("matchConstraints", reading);
    let constraints = constraints.and_then(|it| policy_rules::constraints(&it, true, reading));
    let ignores_failures = match fields.optional("failurePolicy", reading) {
        Some(policy) => reading.choice(&policy, &[("Fail", false), ("Ignore", true)], &[], false),
        None => Some(false),
    };
    let rules = policy_rules::read(&mut fields, reading);
    // They go into the audit log of an API server, and there is none here.
    if let Some(list) = fields.optional("auditAnnotations", reading) {
        read_all(&list, reading, |item, reading| {
            let mut fields = Fields::of(item, reading)?;
            fields.required("key", reading).and_then(|key| reading.text(&key));
            fields.required("valueExpression", reading).and_then(|it| expression::read(&it, reading));
            fields.finish(reading);
            Some(())
        });
    }
    fields.finish(reading);
    let (metadata, rules) = (metadata?, rules?);
    Some(AdmissionPolicy {
        policy: Policy {
            name: metadata.name,
            action: PolicyAction::Deny,
            description: None,
            selector: TargetSelector::default(),
            constraints: vec![constraints?],
            conditions: rules.conditions,
            variables: rules.variables,
            validations: rules.validations,
            params: None,
            ignores_failures: ignores_failures?,
            examples: Vec::new(),
            location: metadata.location,
        },
        param_kind: param_kind.map_or(Some(None), |read| read.map(Some))?,
    })
}

fn read_param_kind(value: &Value<'_>, reading: &mut Reading<'_>) -> Option<(String, String)> {
    let mut fields = Fields::of(value, reading)?;
    let api_version = fields.required("apiVersion", reading).and_then(|it| reading.word(&it));
    let kind = fields.required("kind", reading).and_then(|it| reading.word(&it));
    fields.finish(reading);
    Some((api_version?, kind?))
}

fn binding(root: &Node, reading: &mut Reading<'_>) -> Option<AdmissionBinding> {
    let (metadata, spec) = envelope(root, NameRule::Subdomain, false, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let policy = fields.required("policyName", reading);
    let policy_location = policy.as_ref().map(|it| reading.location(it.node));
    let policy = policy.and_then(|it| reading.word(&it));
    let actions = fields.required("validationActions", reading).and_then(|list| {
        refuse_empty(&list, reading)?;
        read_all(&list, reading, |item, reading| reading.choice(item, ACTIONS, &[], false))
    });
    let constraints =
        fields.optional("matchResources", reading).map(|it| policy_rules::constraints(&it, false, reading));
    let params = fields.optional("paramRef", reading).map(|it| read_param_ref(&it, reading));
    fields.finish(reading);
    let metadata = metadata?;
    Some(AdmissionBinding {
        name: metadata.name,
        policy: policy?,
        policy_location: policy_location?,
        action: actions?.into_iter().min()?,
        constraints: constraints.map_or(Some(None), |read| read.map(Some))?,
        params: params.map_or(Some(None), |read| read.map(Some))?,
        location: metadata.location,
    })
}

fn read_param_ref(value: &Value<'_>, reading: &mut Reading<'_>) -> Option<ParamRef> {
    let mut fields = Fields::of(value, reading)?;
    if let Some(selector) = fields.optional("selector", reading) {
        reading.not_yet("paramRef.selector", &selector);
    }
    let name = fields.required("name", reading).and_then(|it| reading.word(&it));
    let namespace = fields.optional("namespace", reading).map(|it| reading.name(&it, NameRule::Label));
    let is_required = match fields.optional("parameterNotFoundAction", reading) {
        Some(action) => reading.choice(&action, &[("Allow", false), ("Deny", true)], &[], false),
        None => Some(true),
    };
    fields.finish(reading);
    Some(ParamRef {
        name: name?,
        namespace: namespace.map_or(Some(None), |read| read.map(Some))?,
        is_required: is_required?,
        location: reading.location(value.node),
    })
}
