//! The compiled rules of a schema.

use std::sync::Arc;

use serde_json::Value;

use super::log;
use super::program::RuleProgram;
use crate::custom::schema::{self, is, list, text};

/// One level of a schema with rules on it or below.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RuleNode {
    pub(super) rules: Vec<SchemaRule>,
    pub(super) properties: Vec<(String, RuleNode)>,
    pub(super) items: Option<Box<RuleNode>>,
    pub(super) additional: Option<Box<RuleNode>>,
}

#[derive(Debug, PartialEq)]
pub(super) struct SchemaRule {
    pub(super) program: Arc<RuleProgram>,
    /// Empty when none is set.
    pub(super) message: String,
    pub(super) message_expression: Option<Arc<RuleProgram>>,
    pub(super) reason: RuleReason,
    /// Relative to the level, without the first point.
    pub(super) field_path: Option<String>,
    pub(super) has_optional_old: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RuleReason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

impl RuleNode {
    /// `None` when the schema has no rules.
    pub(crate) fn of(definition: &str, schema: &Value) -> Option<Self> {
        let below = |schema: &Value| Self::of(definition, schema);
        let node = Self {
            rules: list(schema, "x-kubernetes-validations")
                .iter()
                .filter_map(|rule| SchemaRule::of(definition, rule, schema))
                .collect(),
            properties: schema::properties(schema)
                .filter_map(|(name, field)| Some((name.clone(), below(field)?)))
                .collect(),
            items: schema::items(schema).and_then(below).map(Box::new),
            additional: schema::additional(schema).and_then(below).map(Box::new),
        };
        (node != Self::default()).then_some(node)
    }
}

impl SchemaRule {
    fn of(definition: &str, said: &Value, schema: &Value) -> Option<Self> {
        let program = |text: &str, tell: fn(&str, &str, &str)| {
            let program = RuleProgram::of(text);
            if let Err(why) = &program.expression {
                tell(definition, text, why);
            }
            program
        };
        let rule = text(said, "rule");
        let message_expression = text(said, "messageExpression");
        (!rule.trim().is_empty()).then(|| Self {
            program: program(rule, log::accepted),
            message: text(said, "message").trim().to_owned(),
            message_expression: (!message_expression.is_empty())
                .then(|| program(message_expression, log::without_message)),
            reason: match text(said, "reason") {
                "FieldValueForbidden" => RuleReason::Forbidden,
                "FieldValueRequired" => RuleReason::Required,
                "FieldValueDuplicate" => RuleReason::Duplicate,
                _ => RuleReason::Invalid,
            },
            field_path: field_path(text(said, "fieldPath"), schema),
            has_optional_old: is(said, "optionalOldSelf"),
        })
    }

    /// The text of the rule in messages.
    pub(super) fn shown(&self) -> &str {
        if self.message.is_empty() { self.program.text.trim() } else { &self.message }
    }
}

/// `.spec.x` is `spec.x`, and `.spec.map['a']` is `spec.map[a]`, as a server writes them.
pub(crate) fn field_path(said: &str, mut schema: &Value) -> Option<String> {
    let mut path = String::new();
    let mut rest = said.trim();
    while !rest.is_empty() {
        let (name, after) = if let Some(quoted) = rest.strip_prefix("['") {
            quoted.split_once("']")?
        } else {
            let plain = rest.strip_prefix('.')?;
            plain.split_at(plain.find(['.', '[']).unwrap_or(plain.len()))
        };
        match schema::property(schema, name) {
            Some(below) => {
                path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                schema = below;
            }
            None => {
                path = format!("{path}[{name}]");
                schema = schema::additional(schema)?;
            }
        }
        rest = after;
    }
    (!path.is_empty()).then_some(path)
}
