//! What a Policy and a ValidatingAdmissionPolicy have in common: the rules, with the fields of admissionregistration.k8s.io/v1.

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, ReadContext};
use super::super::yaml::YamlNode;
use super::expression;
use super::placement;
use super::target_selector::{read_all, refuse_empty};
use crate::model::{MatchConstraints, NamedExpression, ResourceRule, Validation};

const OPERATIONS: &[(&str, &str)] =
    &[("*", "*"), ("CONNECT", "CONNECT"), ("CREATE", "CREATE"), ("DELETE", "DELETE"), ("UPDATE", "UPDATE")];

/// Why a validation fails, to an API server's client; it has no meaning here.
const REASONS: &[(&str, ())] =
    &[("Forbidden", ()), ("Invalid", ()), ("RequestEntityTooLarge", ()), ("Unauthorized", ())];

/// Conditions, variables and validations of one policy: more conditions an API server does not take.
const MOST_EXPRESSIONS: usize = 64;
/// Values in what selects apps or objects: each may be compared with each object.
const MOST_VALUES: usize = 1024;

/// The fields `matchConditions`, `variables` and `validations`.
pub struct PolicyRuleFields {
    pub conditions: Vec<NamedExpression>,
    pub variables: Vec<NamedExpression>,
    pub validations: Vec<Validation>,
}

pub fn read(fields: &mut ManifestFields<'_>, reading: &mut ReadContext<'_>) -> Option<PolicyRuleFields> {
    let mut named = |field: &'static str, is_variable: bool, reading: &mut ReadContext<'_>| {
        let Some(list) = fields.optional(field, reading) else { return Some(Vec::new()) };
        check_expression_count(&list, reading)?;
        let read = read_all(&list, reading, |item, reading| named_expression(item, is_variable, reading))?;
        let names: Vec<&str> = read.iter().map(|it| it.name.as_str()).collect();
        if let Some(twice) = (1..names.len()).find(|index| names[..*index].contains(&names[*index])) {
            let message = format!("`{}` has two items named {}", list.name(), names[twice]);
            let place = read[twice].expression.location.clone();
            reading.mistake(codes::DUPLICATE_ITEM, message, place, &list.path).help("rename one of them");
            return None;
        }
        Some(read)
    };
    let conditions = named("matchConditions", false, reading);
    let variables = named("variables", true, reading);
    let validations = fields.required("validations", reading).and_then(|list| {
        refuse_empty(&list, reading)?;
        check_expression_count(&list, reading)?;
        read_all(&list, reading, validation)
    });
    Some(PolicyRuleFields { conditions: conditions?, variables: variables?, validations: validations? })
}

fn check_expression_count(list: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<()> {
    reading.check_count(list, list.node.as_seq().map_or(0, <[_]>::len), MOST_EXPRESSIONS)
}

/// Of what selects apps or objects, with all lists in it.
pub fn check_value_count(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<()> {
    reading.check_count(value, values_in(value.node), MOST_VALUES)
}

fn values_in(node: &YamlNode) -> usize {
    let items = node.as_seq().unwrap_or_default().iter();
    let fields = node.as_map().unwrap_or_default().iter().map(|entry| &entry.value);
    1 + items.chain(fields).map(values_in).sum::<usize>()
}

fn named_expression(
    value: &ManifestValue<'_>,
    is_variable: bool,
    reading: &mut ReadContext<'_>,
) -> Option<NamedExpression> {
    let mut fields = ManifestFields::of(value, reading)?;
    let name = fields.required("name", reading).and_then(|name| {
        let text = reading.word(&name)?;
        let is_letter = |it: char| it.is_ascii_alphanumeric() || it == '_';
        if is_variable && (!text.chars().all(is_letter) || text.starts_with(|it: char| it.is_ascii_digit())) {
            let message = format!("{text:?} is not the name of a variable");
            reading.bad_value(&name, message, "write letters, digits and _, as in variables.allContainers");
            return None;
        }
        Some(text)
    });
    let expression = fields.required("expression", reading).and_then(|it| expression::read(&it, reading));
    fields.finish(reading);
    Some(NamedExpression { name: name?, expression: expression? })
}

fn validation(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Validation> {
    let mut fields = ManifestFields::of(value, reading)?;
    let expression = fields.required("expression", reading).and_then(|it| expression::read(&it, reading));
    let message = fields.optional("message", reading).map(|it| reading.text(&it));
    let of_message = fields.optional("messageExpression", reading).map(|it| expression::read(&it, reading));
    if let Some(reason) = fields.optional("reason", reading) {
        reading.choice(&reason, REASONS, &[], false);
    }
    fields.finish(reading);
    let message = message.map_or(Some(None), |read| read.map(Some))?;
    let message_expression = of_message.map_or(Some(None), |read| read.map(Some))?;
    Some(Validation { expression: expression?, message, message_expression })
}

/// `matchConstraints`, and `matchResources` of a binding. `needs_rules`: it must say which resources.
pub fn constraints(
    value: &ManifestValue<'_>,
    needs_rules: bool,
    reading: &mut ReadContext<'_>,
) -> Option<MatchConstraints> {
    check_value_count(value, reading)?;
    let mut fields = ManifestFields::of(value, reading)?;
    let rules = match needs_rules {
        true => fields.required("resourceRules", reading),
        false => fields.optional("resourceRules", reading),
    };
    let list = |list: Option<ManifestValue<'_>>, reading: &mut ReadContext<'_>| match list {
        Some(list) => read_all(&list, reading, resource_rule),
        None => Some(Vec::new()),
    };
    if let Some(rules) = rules.as_ref().filter(|_| needs_rules) {
        refuse_empty(rules, reading);
    }
    let rules = list(rules, reading);
    let excluded = fields.optional("excludeResourceRules", reading);
    let excluded = list(excluded, reading);
    let namespaces =
        fields.optional("namespaceSelector", reading).map(|it| placement::label_selector(&it, reading));
    let objects =
        fields.optional("objectSelector", reading).map(|it| placement::label_selector(&it, reading));
    let is_exact = fields.optional("matchPolicy", reading);
    let is_exact = match is_exact {
        Some(policy) => reading.choice(&policy, &[("Equivalent", false), ("Exact", true)], &[], false),
        None => Some(false),
    };
    fields.finish(reading);
    Some(MatchConstraints {
        rules: rules?,
        excluded: excluded?,
        namespaces: namespaces.map_or(Some(None), |read| read.map(Some))?,
        objects: objects.map_or(Some(None), |read| read.map(Some))?,
        is_exact: is_exact?,
    })
}

fn resource_rule(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ResourceRule> {
    let mut fields = ManifestFields::of(value, reading)?;
    let mut list = |name: &'static str, reading: &mut ReadContext<'_>| {
        let list = fields.required(name, reading)?;
        refuse_empty(&list, reading)?;
        Some(list)
    };
    let groups = list("apiGroups", reading).and_then(|list| reading.texts(&list));
    let versions = list("apiVersions", reading).and_then(|list| reading.texts(&list));
    let resources = list("resources", reading).and_then(|list| reading.texts(&list));
    let operations = list("operations", reading);
    let operations = operations.and_then(|list| {
        read_all(&list, reading, |item, reading| reading.choice(item, OPERATIONS, &[], false))
    });
    let names = match fields.optional("resourceNames", reading) {
        Some(names) => reading.texts(&names),
        None => Some(Vec::new()),
    };
    let scope = match fields.optional("scope", reading) {
        Some(scope) => {
            let scopes = [("*", None), ("Cluster", Some(false)), ("Namespaced", Some(true))];
            reading.choice(&scope, &scopes, &[], false)
        }
        None => Some(None),
    };
    fields.finish(reading);
    Some(ResourceRule {
        groups: groups?,
        versions: versions?,
        resources: resources?,
        operations: operations?.into_iter().map(str::to_owned).collect(),
        names: names?,
        is_namespaced: scope?,
    })
}
