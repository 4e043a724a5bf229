//! ValidatingAdmissionPolicy and its binding, below `policies/`, as the API server reads them.

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext, likely_typo_of, suggest};
use super::super::yaml::YamlNode;
use super::target_selector::{read_all, refuse_empty};
use super::{expression, group_of, policy_rules, read_envelope, spec_fields};
use crate::model::{
    AdmissionBinding, AdmissionPolicy, Diagnostic, ParamObject, ParamRef, Policy, PolicyAction,
};

const GROUP: &str = "admissionregistration.k8s.io";
const VERSIONS: [&str; 2] = ["admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1"];
const POLICY: &str = "ValidatingAdmissionPolicy";
const KINDS: [&str; 2] = [POLICY, "ValidatingAdmissionPolicyBinding"];

const ACTIONS: &[(&str, PolicyAction)] =
    &[("Deny", PolicyAction::Deny), ("Warn", PolicyAction::Warn), ("Audit", PolicyAction::Audit)];

/// An admission manifest. A policy or binding with a mistake denies what it matches, as far as that can be read.
#[derive(Debug)]
pub enum AdmissionManifest {
    Policy(Box<AdmissionPolicy>),
    Binding(Box<AdmissionBinding>),
    Params(Box<ParamObject>),
}

/// Reads a Kubernetes document below `policies/`. `None`: its kind is unknown.
pub fn read(
    api_version: &str,
    kind: &str,
    root: &YamlNode,
    reading: &mut ReadContext<'_>,
) -> Option<AdmissionManifest> {
    if KINDS.contains(&kind) || likely_typo_of(group_of(api_version), &[GROUP]).is_some() {
        let place = |key, reading: &ReadContext<'_>| {
            reading.location(ManifestValue::root(root).entry(key, reading.file).node)
        };
        let known = likely_typo_of(kind, &KINDS);
        if known != Some(kind) {
            let (place, message) = (place("kind", reading), format!("{kind} of {api_version} is not read"));
            let help = suggest(kind, &KINDS, &KINDS);
            reading.mistake(codes::UNKNOWN_KIND, message, place, "kind").help(help);
        } else if !VERSIONS.contains(&api_version) {
            let (place, message) =
                (place("apiVersion", reading), format!("{kind} of {api_version} is not read"));
            let help = format!("write {}", VERSIONS[0]);
            reading.mistake(codes::UNKNOWN_API_VERSION, message, place, "apiVersion").help(help);
        }
        return Some(match known? {
            POLICY => AdmissionManifest::Policy(Box::new(read_policy(root, reading))),
            _ => AdmissionManifest::Binding(Box::new(read_binding(root, reading))),
        });
    }
    let text = |path: &[&str]| root.find(path).and_then(YamlNode::as_str).map(str::to_owned);
    let Some(name) = text(&["metadata", "name"]) else {
        let (place, message) = (reading.location(root), "`metadata.name` is missing");
        reading.mistake(codes::MISSING_FIELD, message, place, "metadata.name");
        return None;
    };
    Some(AdmissionManifest::Params(Box::new(ParamObject {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: text(&["metadata", "namespace"]),
        name,
        value: root.to_json(),
        location: reading.location(root),
    })))
}

/// As far as it can be read.
fn read_policy(root: &YamlNode, reading: &mut ReadContext<'_>) -> AdmissionPolicy {
    let policy = Policy::unreadable(name_of(root, reading), reading.location(root));
    let mut read = AdmissionPolicy { policy, param_kind: None };
    read_policy_into(&mut read, root, reading);
    read.policy.has_mistake = is_wrong(reading);
    read
}

fn read_policy_into(
    read: &mut AdmissionPolicy,
    root: &YamlNode,
    reading: &mut ReadContext<'_>,
) -> Option<()> {
    let policy = &mut read.policy;
    let (metadata, spec) = read_envelope(root, NameRule::Subdomain, false, reading)?;
    if let Some(metadata) = metadata {
        (policy.name, policy.location) = (metadata.name, metadata.location);
    }
    let mut fields = spec_fields(root, spec, reading)?;
    let param_kind = fields.optional("paramKind", reading);
    read.param_kind = param_kind.and_then(|it| read_param_kind(&it, reading));
    let constraints = fields.required("matchConstraints", reading);
    policy.constraints.extend(constraints.and_then(|it| policy_rules::constraints(&it, true, reading)));
    if let Some(failures) = fields.optional("failurePolicy", reading) {
        let choices = [("Fail", false), ("Ignore", true)];
        policy.ignores_failures = reading.choice(&failures, &choices, &[], false).unwrap_or_default();
    }
    if let Some(rules) = policy_rules::read(&mut fields, reading) {
        policy.conditions = rules.conditions;
        policy.variables = rules.variables;
        policy.validations = rules.validations;
    }
    // They go into the audit log of an API server, and there is none here.
    if let Some(list) = fields.optional("auditAnnotations", reading) {
        read_all(&list, reading, |item, reading| {
            let mut fields = ManifestFields::of(item, reading)?;
            fields.required("key", reading).and_then(|key| reading.text(&key));
            fields.required("valueExpression", reading).and_then(|it| expression::read(&it, reading));
            fields.finish(reading);
            Some(())
        });
    }
    fields.finish(reading);
    Some(())
}

fn name_of<'n>(root: &'n YamlNode, reading: &ReadContext<'n>) -> &'n str {
    root.find(&["metadata", "name"]).and_then(YamlNode::as_str).unwrap_or(reading.file)
}

fn is_wrong(reading: &ReadContext<'_>) -> bool {
    reading.mistakes.iter().any(Diagnostic::is_error)
}

fn read_param_kind(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<(String, String)> {
    let mut fields = ManifestFields::of(value, reading)?;
    let api_version = fields.required("apiVersion", reading).and_then(|it| reading.word(&it));
    let kind = fields.required("kind", reading).and_then(|it| reading.word(&it));
    fields.finish(reading);
    Some((api_version?, kind?))
}

/// As far as it can be read.
fn read_binding(root: &YamlNode, reading: &mut ReadContext<'_>) -> AdmissionBinding {
    let place = reading.location(root);
    let mut binding = AdmissionBinding {
        name: name_of(root, reading).to_owned(),
        policy: None,
        policy_location: place.clone(),
        action: PolicyAction::Deny,
        constraints: None,
        params: None,
        has_mistake: true,
        location: place,
    };
    read_binding_into(&mut binding, root, reading);
    binding.has_mistake = is_wrong(reading);
    binding
}

fn read_binding_into(
    binding: &mut AdmissionBinding,
    root: &YamlNode,
    reading: &mut ReadContext<'_>,
) -> Option<()> {
    let (metadata, spec) = read_envelope(root, NameRule::Subdomain, false, reading)?;
    if let Some(metadata) = metadata {
        (binding.name, binding.location) = (metadata.name, metadata.location);
    }
    let mut fields = spec_fields(root, spec, reading)?;
    if let Some(policy) = fields.required("policyName", reading) {
        binding.policy_location = reading.location(policy.node);
        binding.policy = reading.word(&policy);
    }
    let actions = fields.required("validationActions", reading).and_then(|list| {
        refuse_empty(&list, reading)?;
        read_all(&list, reading, |item, reading| reading.choice(item, ACTIONS, &[], false))
    });
    binding.action = actions.and_then(|actions| actions.into_iter().min()).unwrap_or_default();
    let constraints = fields.optional("matchResources", reading);
    binding.constraints = constraints.and_then(|it| policy_rules::constraints(&it, false, reading));
    binding.params = fields.optional("paramRef", reading).and_then(|it| read_param_ref(&it, reading));
    fields.finish(reading);
    Some(())
}

fn read_param_ref(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ParamRef> {
    let mut fields = ManifestFields::of(value, reading)?;
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
