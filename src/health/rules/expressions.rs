//! Health rules in CEL, with the functions of Kubernetes.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::{Context, ExecutionError, Program, Value as Cel};
use serde_json::{Map, Value};

use super::super::generic::GOALS;
use super::super::json_fields::{StatusCondition, outdated_condition, outdated_status};
use super::cost::{self, ObjectExtent};
use super::rule_source::{Expressions, RuleMistake, RulePart};
use crate::cel;
use crate::model::{Health, HealthStatus};

/// Top-level fields that always exist, if only empty, so that `has(status.phase)` works.
const ALWAYS: [&str; 3] = ["metadata", "spec", "status"];

/// The expressions of one rule, in evaluation order.
pub struct CompiledExpressions {
    parts: Vec<(RulePart, Program)>,
    /// Conditions that they name.
    conditions: Vec<&'static str>,
}

impl fmt::Debug for CompiledExpressions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts.iter().map(|(part, _)| part)).finish()
    }
}

impl CompiledExpressions {
    pub fn of(texts: &Expressions) -> Result<Self, Vec<RuleMistake>> {
        let (mut parts, mut mistakes) = (Vec::new(), Vec::new());
        let given = [
            (RulePart::InProgress, texts.in_progress.as_deref()),
            (RulePart::Failed, texts.failed.as_deref()),
            (RulePart::Current, Some(&*texts.current)),
        ];
        for (part, text) in given {
            let Some(text) = text else { continue };
            match compile(part, text) {
                Ok(program) => parts.push((part, program)),
                Err(mut found) => mistakes.append(&mut found),
            }
        }
        let names = |name: &&str| {
            let quoted = ['\'', '"'].map(|quote| format!("{quote}{name}{quote}"));
            let texts = given.iter().filter_map(|(_, text)| *text);
            texts.into_iter().any(|text| quoted.iter().any(|quoted| text.contains(quoted)))
        };
        let conditions = GOALS.into_iter().filter(names).collect();
        if mistakes.is_empty() { Ok(Self { parts, conditions }) } else { Err(mistakes) }
    }

    /// The health, or why it cannot be evaluated.
    pub fn health_of(&self, object: &Value) -> Result<Health, String> {
        // An outdated status is of an older spec, whatever the rule says.
        if let Some(old) = outdated_status(object, false) {
            return Ok(old);
        }
        if let Some(old) = self.conditions.iter().find_map(|name| outdated_condition(object, name)) {
            return Ok(old);
        }
        cel::with_functions(|functions| self.in_scope(object, functions.new_inner_scope()))
    }

    fn in_scope(&self, object: &Value, mut scope: Context<'_>) -> Result<Health, String> {
        let extent = ObjectExtent::of(object);
        let empty = Value::Object(Map::new());
        for name in ALWAYS {
            scope.add_variable_from_value(name, cel::to_library(&empty));
        }
        for (name, value) in object.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
            scope.add_variable_from_value(name.as_str(), cel::to_library(value));
        }
        for (part, program) in &self.parts {
            if holds(program, &scope, extent).map_err(|why| format!("{}: {why}", part.name()))? {
                return Ok(Health::new(part.status(), reason_text(*part, object)));
            }
        }
        let words = main_condition(object).unwrap_or_else(|| "none of the expressions holds".to_owned());
        Ok(Health::new(HealthStatus::InProgress, words))
    }
}

impl RulePart {
    pub fn name(self) -> &'static str {
        match self {
            Self::InProgress => "inProgress",
            Self::Failed => "failed",
            Self::Current => "current",
            Self::Script => "script",
        }
    }

    fn status(self) -> HealthStatus {
        match self {
            Self::InProgress => HealthStatus::InProgress,
            Self::Failed => HealthStatus::Failed,
            Self::Current => HealthStatus::Current,
            Self::Script => HealthStatus::Unknown,
        }
    }
}

fn compile(part: RulePart, text: &str) -> Result<Program, Vec<RuleMistake>> {
    cel::parse_known(text, Program::compile, Program::expression).map_err(|mistakes| {
        let of_rule = mistakes.into_iter().map(|it| {
            let cel::ExpressionMistake { line, column, message } = it;
            RuleMistake { source: 0, part, line, column, message }
        });
        of_rule.collect()
    })
}

fn holds(program: &Program, scope: &Context<'_>, extent: ObjectExtent) -> Result<bool, String> {
    if cost::max_cost(program.expression(), extent) > cost::LIMIT {
        return Err("it could take too long on an object of this size".to_owned());
    }
    match catch_unwind(AssertUnwindSafe(|| program.execute(scope))) {
        Ok(Ok(Cel::Bool(holds))) => Ok(holds),
        Ok(Ok(other)) => Err(format!("it is a {}, not true or false", other.type_of())),
        Ok(Err(error)) => Err(describe_error(&error)),
        Err(_) => Err("the evaluator crashed".to_owned()),
    }
}

/// The error without values, which may be anything.
fn describe_error(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(name) => format!("there is no field `{name}`; ask `has(…)` first"),
        ExecutionError::UndeclaredReference(name) => {
            format!("there is no field `{name}` at the top of the object")
        }
        ExecutionError::NoSuchOverload
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..) => {
            "an operator has values that it does not take".to_owned()
        }
        ExecutionError::FunctionError { function, .. } => format!("the function `{function}` failed"),
        ExecutionError::InvalidArgumentCount { expected, actual } => {
            format!("a function takes {expected} arguments, not {actual}")
        }
        ExecutionError::UnexpectedType { got, want } => format!("a {got}, but a {want} is required"),
        ExecutionError::IndexOutOfBounds(_) => "the index is past the end of the list".to_owned(),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "a division by zero".to_owned()
        }
        ExecutionError::Overflow(..) => "a number is too large".to_owned(),
        ExecutionError::NotSupportedAsMethod { method, .. } => {
            format!("the function `{method}` does not take such a value")
        }
        _ => "it cannot be evaluated".to_owned(),
    }
}

/// An expression gives no reason; most kinds have one in their conditions.
fn reason_text(part: RulePart, object: &Value) -> String {
    if part == RulePart::Current {
        return String::new();
    }
    main_condition(object).unwrap_or_else(|| format!("`{}` holds", part.name()))
}

fn main_condition(object: &Value) -> Option<String> {
    let stalled = StatusCondition::of(object, "Stalled").filter(|condition| condition.has_status("True"));
    let goal = GOALS.into_iter().find_map(|name| StatusCondition::of(object, name));
    Some(stalled.or(goal.filter(|goal| !goal.has_status("True")))?.summary())
}
