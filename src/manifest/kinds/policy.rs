//! Kind Policy: rules over objects, with apps and clusters that they are for.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNode;
use super::target_selector::{self, read_all};
use super::{policy_rules, read_envelope, spec_fields};
use crate::model::{Diagnostic, Policy, PolicyAction, PolicyExample};

/// The folder of policies. Write access to it decides what may be deployed.
pub const FOLDER: &str = "policies/";

const ACTIONS: &[(&str, PolicyAction)] = &[("deny", PolicyAction::Deny), ("warn", PolicyAction::Warn)];

/// A policy with a mistake denies what it matches, as far as that can be read: a policy with a typo must not count as absent.
pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> Policy {
    let name = root.find(&["metadata", "name"]).and_then(YamlNode::as_str).unwrap_or(reading.file);
    let mut policy = Policy::unreadable(name, reading.location(root));
    read_into(&mut policy, root, reading);
    policy.has_mistake = reading.mistakes.iter().any(Diagnostic::is_error);
    policy
}

fn read_into(policy: &mut Policy, root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<()> {
    let (metadata, spec) = read_envelope(root, NameRule::Subdomain, false, reading)?;
    if let Some(metadata) = metadata {
        (policy.name, policy.location) = (metadata.name, metadata.location);
    }
    let mut fields = spec_fields(root, spec, reading)?;
    if let Some(action) = fields.optional("action", reading) {
        policy.action = reading.choice(&action, ACTIONS, &[], false).unwrap_or_default();
    }
    policy.description = fields.optional("description", reading).and_then(|it| reading.text(&it));
    if let Some(select) = fields.optional_selector("select", reading) {
        let selector = policy_rules::check_value_count(&select, reading);
        policy.selector = selector.and_then(|()| target_selector::read(&select, reading)).unwrap_or_default();
    }
    let constraints = fields.optional_selector("matchConstraints", reading);
    policy.constraints.extend(constraints.and_then(|it| policy_rules::constraints(&it, false, reading)));
    if let Some(rules) = policy_rules::read(&mut fields, reading) {
        policy.conditions = rules.conditions;
        policy.variables = rules.variables;
        policy.validations = rules.validations;
    }
    policy.params = fields.optional("params", reading).and_then(|it| read_map(&it, reading));
    let examples = fields.optional("examples", reading);
    policy.examples = examples.and_then(|list| read_all(&list, reading, read_example)).unwrap_or_default();
    fields.finish(reading);
    Some(())
}

/// Given and wrong is not the same as not given.
#[expect(clippy::option_option, reason = "absent and wrong are not the same")]
fn all_read<T>(given: Option<Option<T>>) -> Option<Option<T>> {
    given.map_or(Some(None), |read| read.map(Some))
}

fn read_map(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Json> {
    let json = value.node.to_json();
    if !json.is_object() {
        reading.wrong_type(value, "a map");
        return None;
    }
    Some(json)
}

fn read_example(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<PolicyExample> {
    let mut fields = ManifestFields::of(value, reading)?;
    let name = fields.required("name", reading).and_then(|it| reading.text(&it));
    let object = fields.optional("object", reading).map(|it| read_map(&it, reading));
    let old_object = fields.optional("oldObject", reading).map(|it| read_map(&it, reading));
    let others = match fields.optional("others", reading) {
        Some(list) => read_all(&list, reading, read_map),
        None => Some(Vec::new()),
    };
    let is_allowed = fields.required("allowed", reading).and_then(|it| reading.boolean(&it));
    let ring = fields.optional("ring", reading).map(|it| reading.word(&it));
    let cluster_labels = match fields.optional("clusterLabels", reading) {
        Some(labels) => reading.labels(&labels),
        None => Some(BTreeMap::new()),
    };
    if object.is_none() && old_object.is_none() {
        let (place, path) = (fields.location().clone(), fields.path_of("object"));
        reading
            .mistake(codes::MISSING_FIELD, "`object` is missing", place, &path)
            .help("write the object, or oldObject alone for a delete");
    }
    fields.finish(reading);
    Some(PolicyExample {
        name: name?,
        object: all_read(object)?,
        old_object: all_read(old_object)?,
        others: others?,
        is_allowed: is_allowed?,
        ring: all_read(ring)?,
        cluster_labels: cluster_labels?,
        location: reading.location(value.node),
    })
}
