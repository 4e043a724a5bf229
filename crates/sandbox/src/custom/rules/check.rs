//! Evaluates the rules of a kind on an object.

use std::rc::Rc;

use serde_json::Value;

use super::cost_meter::MAX_WRITE_COST;
use super::evaluate::RuleEvaluation;
use super::fault::RuleFault;
use super::log;
use super::ratchet::{Ratchet, item_of_keys};
use super::rule_tree::{RuleNode, RuleReason, SchemaRule};
use super::value::RuleOperand;
use crate::api_error::FieldError;
use crate::custom::schema::{self, text};

/// Longer messages, and those with line breaks, are ignored.
const LONGEST_MESSAGE: usize = 5 * 1024;
const BLOCKED: &str = "some validation rules were not checked because the object was invalid; \
    correct the existing errors to complete validation";
const NO_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The rule violations. If `mistakes` show that the object violates its schema, no rule is evaluated.
pub(crate) fn check(
    node: &RuleNode,
    definition: &str,
    schema: &Value,
    live: Option<&Value>,
    new: &Value,
    mistakes: &[FieldError],
) -> Vec<FieldError> {
    let blocks = |mistake: &FieldError| {
        matches!(
            mistake.reason,
            "FieldValueNotSupported"
                | "FieldValueRequired"
                | "FieldValueTooLong"
                | "FieldValueTooMany"
                | "FieldValueTypeInvalid"
        )
    };
    if mistakes.iter().any(blocks) {
        return vec![FieldError::invalid("<nil>", &Value::Null, BLOCKED)];
    }
    let mut walk = RuleWalk { definition, left: MAX_WRITE_COST, errors: Vec::new() };
    let place = RuleValue {
        schema,
        path: "",
        new,
        old: live,
        is_whole: true,
        ratchet: Ratchet::of(schema, new, live),
    };
    let _ = walk.value(node, place);
    walk.errors
}

struct RuleWalk<'a> {
    definition: &'a str,
    /// The remaining cost budget.
    left: u64,
    errors: Vec<FieldError>,
}

/// A value of the object, where the walk is.
#[derive(Clone, Copy)]
struct RuleValue<'a> {
    schema: &'a Value,
    path: &'a str,
    new: &'a Value,
    /// Only where it is known which value it was.
    old: Option<&'a Value>,
    is_whole: bool,
    ratchet: Ratchet<'a>,
}

/// No further rule is evaluated.
struct BudgetSpent;

impl RuleWalk<'_> {
    fn value(&mut self, node: &RuleNode, place: RuleValue<'_>) -> Result<(), BudgetSpent> {
        if place.new.is_null() {
            return Ok(());
        }
        for rule in &node.rules {
            self.rule(rule, place)?;
        }
        match place.new {
            Value::Array(items) => self.items(node, place, items),
            Value::Object(fields) => {
                for (name, field) in fields {
                    let declared = node.properties.iter().find(|(known, _)| known == name);
                    let (below, path) = match (declared, &node.additional) {
                        (Some((_, below)), _) => (below, joined(place.path, name)),
                        (None, Some(below)) => (&**below, format!("{}[{name}]", place.path)),
                        (None, None) => continue,
                    };
                    let schema =
                        schema::property(place.schema, name).or_else(|| schema::additional(place.schema));
                    let Some(schema) = schema else { continue };
                    let old = place.old.and_then(|old| old.get(name)).filter(|old| !old.is_null());
                    let ratchet = place.ratchet.key(name);
                    self.value(
                        below,
                        RuleValue { schema, path: &path, new: field, old, is_whole: false, ratchet },
                    )?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn items(&mut self, node: &RuleNode, place: RuleValue<'_>, items: &[Value]) -> Result<(), BudgetSpent> {
        let (Some(below), Some(schema)) = (&node.items, schema::items(place.schema)) else { return Ok(()) };
        let old = place
            .old
            .and_then(Value::as_array)
            .filter(|_| text(place.schema, "x-kubernetes-list-type") == "map");
        for (at, item) in items.iter().enumerate() {
            let old = old.and_then(|all| item_of_keys(place.schema, all, item));
            let path = format!("{}[{at}]", place.path);
            let ratchet = place.ratchet.index(at);
            self.value(below, RuleValue { schema, path: &path, new: item, old, is_whole: false, ratchet })?;
        }
        Ok(())
    }

    fn rule(&mut self, rule: &SchemaRule, place: RuleValue<'_>) -> Result<(), BudgetSpent> {
        let program = &rule.program;
        let Ok(expression) = &program.expression else { return Ok(()) };
        if program.uses_old && place.old.is_none() && !rule.has_optional_old {
            return Ok(());
        }
        if self.left == 0 {
            self.refuse(place, NO_BUDGET);
            return Err(BudgetSpent);
        }
        let (own, old) = place.values();
        let plain_old = old.clone();
        let old = if rule.has_optional_old { Some(RuleOperand::Optional(old.map(Rc::new))) } else { old };
        let mut evaluation = RuleEvaluation::new(own.clone(), old);
        let found = evaluation.run(expression);
        self.spend(&evaluation, place)?;
        match found {
            Ok(RuleOperand::Bool(true)) => return Ok(()),
            Ok(RuleOperand::Bool(false)) => {}
            Ok(other) => {
                log::accepted(
                    self.definition,
                    &program.text,
                    &format!("it is a {}, not true or false", other.type_name()),
                );
                return Ok(());
            }
            Err(RuleFault::Unsupported(why)) => {
                log::accepted(self.definition, &program.text, &why);
                return Ok(());
            }
            Err(RuleFault::Message(why)) => {
                self.refuse(place, &format!("{why} evaluating rule: {}", rule.shown()));
                return Ok(());
            }
            Err(RuleFault::NoOverload) => {
                let why = "'no such overload': call arguments did not match a supported operator, function or macro signature";
                self.refuse(place, &format!("{why} for rule: {}", rule.shown()));
                return Ok(());
            }
            Err(RuleFault::Cost) => {
                let why = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run \
                    due to call cost exceeds limit";
                self.refuse(place, &format!("{why} for rule: {}", rule.shown()));
                return Err(BudgetSpent);
            }
        }
        if !program.uses_old && place.ratchet.is_unchanged() {
            return Ok(());
        }
        let message = match self.message(rule, own, plain_old, place)? {
            Some(message) => message,
            None if rule.message.is_empty() => format!("failed rule: {}", program.text.trim()),
            None => rule.message.clone(),
        };
        self.errors.push(broken(rule, place, &message));
        Ok(())
    }

    /// The result of the rule's message expression; `None` if it is unusable.
    fn message(
        &mut self,
        rule: &SchemaRule,
        own: RuleOperand<'_>,
        old: Option<RuleOperand<'_>>,
        place: RuleValue<'_>,
    ) -> Result<Option<String>, BudgetSpent> {
        let Some(program) = &rule.message_expression else { return Ok(None) };
        let Ok(expression) = &program.expression else { return Ok(None) };
        let mut evaluation = RuleEvaluation::new(own, old);
        let said = evaluation.run(expression);
        self.spend(&evaluation, place)?;
        match said {
            Ok(RuleOperand::Text(said)) => {
                let said = said.trim();
                let is_usable = !said.is_empty() && said.len() <= LONGEST_MESSAGE && !said.contains('\n');
                Ok(is_usable.then(|| said.to_owned()))
            }
            Err(RuleFault::Cost) => {
                let why = "no further validation rules will be run due to call cost exceeds limit for messageExpression";
                self.refuse(place, &format!("{why}: {:?}", program.text));
                Err(BudgetSpent)
            }
            Err(RuleFault::Unsupported(why)) => {
                log::without_message(self.definition, &program.text, &why);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn spend(&mut self, evaluation: &RuleEvaluation<'_>, place: RuleValue<'_>) -> Result<(), BudgetSpent> {
        match self.left.checked_sub(evaluation.meter.spent()) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.refuse(place, NO_BUDGET);
                Err(BudgetSpent)
            }
        }
    }

    /// An evaluation error shows the type instead of the value.
    fn refuse(&mut self, place: RuleValue<'_>, why: &str) {
        let kind = Value::from(text(place.schema, "type"));
        self.errors.push(FieldError::invalid(place.field(), &kind, why));
    }
}

impl<'a> RuleValue<'a> {
    fn values(self) -> (RuleOperand<'a>, Option<RuleOperand<'a>>) {
        let value = |value| RuleOperand::of(value, self.schema, self.is_whole);
        (value(self.new), self.old.map(value))
    }

    fn field(self) -> String {
        if self.path.is_empty() { "<nil>".to_owned() } else { self.path.to_owned() }
    }

    /// Messages have no value that may be large.
    fn invalid(self, field: String, why: &str) -> FieldError {
        match self.new {
            Value::Object(_) | Value::Array(_) => {
                FieldError { field, reason: "FieldValueInvalid", message: format!("Invalid value: {why}") }
            }
            plain => FieldError::invalid(field, plain, why),
        }
    }

    fn duplicate(self, field: String) -> FieldError {
        let message = match self.new {
            Value::Object(_) | Value::Array(_) => "Duplicate value".to_owned(),
            plain => format!("Duplicate value: {plain}"),
        };
        FieldError { field, reason: "FieldValueDuplicate", message }
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn broken(rule: &SchemaRule, place: RuleValue<'_>, message: &str) -> FieldError {
    let field = match &rule.field_path {
        Some(below) => joined(place.path, below),
        None => place.field(),
    };
    match rule.reason {
        RuleReason::Invalid => place.invalid(field, message),
        RuleReason::Forbidden => FieldError::forbidden(field, message),
        RuleReason::Required => FieldError::required(field, message),
        RuleReason::Duplicate => place.duplicate(field),
    }
}
