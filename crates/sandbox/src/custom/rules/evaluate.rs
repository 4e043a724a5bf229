//! Expressions on values.

use std::rc::Rc;
use std::sync::Arc;

use kube_cel::cel::IdedExpr;
use kube_cel::cel::Value as Cel;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr};

use super::cost_meter::{CostMeter, STEP};
use super::fault::RuleFault;
use super::names::unescaped;
use super::value::{RuleOperand, RuleResult, RuleText, optional};
use super::{functions, library, macros, operators, syntax};

/// One evaluation: the variables in scope, and what it may still cost.
#[derive(Debug)]
pub(super) struct RuleEvaluation<'a> {
    /// An accumulated value may be an error that a later iteration replaces.
    pub(super) variables: Vec<(&'a str, RuleResult<'a>)>,
    pub(super) meter: CostMeter,
}

impl<'a> RuleEvaluation<'a> {
    pub(super) fn new(own: RuleOperand<'a>, old: Option<RuleOperand<'a>>) -> Self {
        let old = old.map(|old| ("oldSelf", Ok(old)));
        Self { variables: std::iter::once(("self", Ok(own))).chain(old).collect(), meter: CostMeter::new() }
    }

    pub(super) fn run(&mut self, expression: &'a IdedExpr) -> RuleResult<'a> {
        match &expression.expr {
            Expr::Literal(literal) => Ok(self::literal(literal)),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(given) => macros::comprehension(self, given),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Struct(_) | Expr::Unspecified => {
                Err(RuleFault::Unsupported("an object of a named type".to_owned()))
            }
        }
    }

    pub(super) fn truth(&mut self, expression: &'a IdedExpr) -> Result<bool, RuleFault> {
        match self.run(expression)? {
            RuleOperand::Bool(truth) => Ok(truth),
            _ => Err(RuleFault::NoOverload),
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<&RuleResult<'a>> {
        self.variables.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn variable(&mut self, name: &'a str) -> RuleResult<'a> {
        self.meter.charge(STEP)?;
        if let Some(found) = self.find(name) {
            return found.clone();
        }
        match TYPES.iter().find(|known| **known == name) {
            Some(known) => Ok(RuleOperand::Type(known)),
            None => Err(RuleFault::Unsupported(format!("there is no variable `{name}`"))),
        }
    }

    #[inline(never)]
    fn select(&mut self, select: &'a SelectExpr) -> RuleResult<'a> {
        let operand = self.run(&select.operand)?;
        self.meter.charge(STEP)?;
        if select.test {
            return Ok(RuleOperand::Bool(match &operand {
                RuleOperand::Optional(None) => false,
                RuleOperand::Optional(Some(inside)) => {
                    field(inside, &select.field, &mut self.meter)?.is_some()
                }
                plain => field(plain, &select.field, &mut self.meter)?.is_some(),
            }));
        }
        match &operand {
            RuleOperand::Optional(inside) => {
                optional_field(inside.as_deref(), &select.field, &mut self.meter)
            }
            plain => field(plain, &select.field, &mut self.meter)?
                .ok_or_else(|| RuleFault::no_such_key(&select.field)),
        }
    }

    #[inline(never)]
    fn call(&mut self, call: &'a CallExpr) -> RuleResult<'a> {
        let name = call.func_name.as_str();
        if !syntax::is_operator(name) {
            return if macros::is_macro(call) { macros::run(self, call) } else { self.function(call) };
        }
        match (name, &*call.args) {
            ("_?_:_", [condition, then, otherwise]) => {
                let way = if self.truth(condition)? { then } else { otherwise };
                self.run(way)
            }
            ("_&&_", [left, right]) => self.either(left, right, false),
            ("_||_", [left, right]) => self.either(left, right, true),
            ("!_", [one]) => Ok(RuleOperand::Bool(!self.truth(one)?)),
            ("@not_strictly_false", [one]) => match self.truth(one) {
                Err(RuleFault::Cost) => Err(RuleFault::Cost),
                found => Ok(RuleOperand::Bool(found.unwrap_or(true))),
            },
            ("-_", [one]) => {
                let value = self.run(one)?;
                operators::negated(&value)
            }
            ("_?._", [operand, name]) => {
                let (operand, name) = (self.run(operand)?, self.run(name)?);
                let RuleOperand::Text(name) = name else { return Err(RuleFault::NoOverload) };
                self.meter.charge(STEP)?;
                match &operand {
                    RuleOperand::Optional(inside) => {
                        optional_field(inside.as_deref(), &name, &mut self.meter)
                    }
                    plain => optional_field(Some(plain), &name, &mut self.meter),
                }
            }
            ("_[_]", [operand, key]) => {
                let (operand, key) = (self.run(operand)?, self.run(key)?);
                self.meter.charge(STEP)?;
                match &operand {
                    RuleOperand::Optional(None) => Ok(operand),
                    RuleOperand::Optional(Some(inside)) => {
                        or_none(operators::index(inside, &key, &mut self.meter))
                    }
                    plain => operators::index(plain, &key, &mut self.meter),
                }
            }
            ("_[?_]", [operand, key]) => {
                let (operand, key) = (self.run(operand)?, self.run(key)?);
                self.meter.charge(STEP)?;
                match &operand {
                    RuleOperand::Optional(None) => Ok(operand),
                    RuleOperand::Optional(Some(inside)) => {
                        or_none(operators::index(inside, &key, &mut self.meter))
                    }
                    plain => or_none(operators::index(plain, &key, &mut self.meter)),
                }
            }
            (name, [left, right]) => {
                let (left, right) = (self.run(left)?, self.run(right)?);
                self.meter.charge(STEP)?;
                operators::binary(name, &left, &right, &mut self.meter)
            }
            (name, _) => Err(RuleFault::Unsupported(format!("there is no operator `{name}`"))),
        }
    }

    /// `&&` and `||`: one side may decide what the other side cannot.
    fn either(&mut self, left: &'a IdedExpr, right: &'a IdedExpr, decides: bool) -> RuleResult<'a> {
        let left = self.truth(left);
        if left == Ok(decides) || left == Err(RuleFault::Cost) {
            return left.map(RuleOperand::Bool);
        }
        let right = self.truth(right);
        if right == Ok(decides) || right == Err(RuleFault::Cost) {
            return right.map(RuleOperand::Bool);
        }
        left.and(right).map(RuleOperand::Bool)
    }

    #[inline(never)]
    fn function(&mut self, call: &'a CallExpr) -> RuleResult<'a> {
        self.meter.charge(STEP)?;
        if let Some(target) = &call.target
            && let Expr::Ident(name) = &target.expr
            && self.find(name).is_none()
        {
            let qualified = format!("{name}.{}", call.func_name);
            let arguments = self.all(&call.args)?;
            if let Some(made) = functions::of_optional(&qualified, &arguments) {
                return Ok(made);
            }
            let found = library::call(&qualified, None, &arguments, &mut self.meter);
            return match (qualified.as_str(), found) {
                ("format.named", Ok(RuleOperand::Null)) => Ok(optional(None)),
                ("format.named", found) => found.map(|format| optional(Some(format))),
                (_, found) => found,
            };
        }
        let target = call.target.as_deref().map(|target| self.run(target)).transpose()?;
        let arguments = self.all(&call.args)?;
        // One that is written out is compiled once.
        if let ("matches", Some(written), Some(RuleOperand::Text(pattern))) =
            (call.func_name.as_str(), call.args.last(), arguments.last())
            && !matches!(written.expr, Expr::Literal(_))
        {
            self.meter.charge_pattern(pattern, library::compiling(pattern))?;
        }
        functions::call(&call.func_name, target.as_ref(), &arguments, &mut self.meter)
    }

    fn all(&mut self, expressions: &'a [IdedExpr]) -> Result<Vec<RuleOperand<'a>>, RuleFault> {
        expressions.iter().map(|one| self.run(one)).collect()
    }

    #[inline(never)]
    fn list(&mut self, list: &'a ListExpr) -> RuleResult<'a> {
        self.meter.charge(10 * STEP)?;
        let mut items = Vec::with_capacity(list.elements.len());
        for (at, element) in list.elements.iter().enumerate() {
            let item = self.run(element)?;
            match item {
                RuleOperand::Optional(inside) if list.optional_indices.contains(&at) => {
                    items.extend(inside.as_deref().cloned());
                }
                item => items.push(item),
            }
        }
        Ok(RuleOperand::List(Rc::new(items)))
    }

    #[inline(never)]
    fn map(&mut self, map: &'a MapExpr) -> RuleResult<'a> {
        self.meter.charge(30 * STEP)?;
        let mut entries = Vec::with_capacity(map.entries.len());
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return Err(RuleFault::Unsupported("an object of a named type".to_owned()));
            };
            let (key, value) = (self.run(&entry.key)?, self.run(&entry.value)?);
            match value {
                RuleOperand::Optional(inside) if entry.optional => {
                    entries.extend(inside.as_deref().map(|value| (key, value.clone())));
                }
                value => entries.push((key, value)),
            }
        }
        Ok(RuleOperand::Map(Rc::new(entries)))
    }
}

/// Names of types, as values.
const TYPES: &[&str] =
    &["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"];

fn literal(literal: &LiteralValue) -> RuleOperand<'_> {
    match literal {
        LiteralValue::Null => RuleOperand::Null,
        LiteralValue::Boolean(truth) => RuleOperand::Bool(*truth.inner()),
        LiteralValue::Int(number) => RuleOperand::Int(*number.inner()),
        LiteralValue::UInt(number) => RuleOperand::UInt(*number.inner()),
        LiteralValue::Double(number) => RuleOperand::Double(*number.inner()),
        LiteralValue::String(text) => RuleOperand::Text(RuleText::Borrowed(text.inner())),
        LiteralValue::Bytes(bytes) => RuleOperand::Other(Cel::Bytes(Arc::new(bytes.inner().to_vec()))),
    }
}

/// A field by the identifier that an expression has for it.
fn field<'a>(
    value: &RuleOperand<'a>,
    identifier: &str,
    meter: &mut CostMeter,
) -> Result<Option<RuleOperand<'a>>, RuleFault> {
    match value {
        RuleOperand::Object(object) if object.is_map() => Ok(object.get(identifier)),
        RuleOperand::Object(object) => Ok(object.get(&unescaped(identifier))),
        RuleOperand::Map(_) => match operators::index(value, &RuleOperand::made(identifier), meter) {
            Ok(found) => Ok(Some(found)),
            Err(RuleFault::Cost) => Err(RuleFault::Cost),
            Err(_) => Ok(None),
        },
        _ => Err(RuleFault::NoOverload),
    }
}

fn optional_field<'a>(
    value: Option<&RuleOperand<'a>>,
    identifier: &str,
    meter: &mut CostMeter,
) -> RuleResult<'a> {
    let found = value.map(|value| field(value, identifier, meter)).transpose()?;
    Ok(optional(found.flatten()))
}

/// A missing key becomes `optional.none`.
fn or_none(found: RuleResult<'_>) -> RuleResult<'_> {
    match found {
        Err(RuleFault::Cost) => Err(RuleFault::Cost),
        found => Ok(optional(found.ok())),
    }
}
