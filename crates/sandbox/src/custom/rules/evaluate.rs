//! Expressions on values.

use std::rc::Rc;
use std::sync::Arc;

use kube_cel::cel::IdedExpr;
use kube_cel::cel::Value as Cel;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr};

use super::meter::{Meter, STEP};
use super::names::unescaped;
use super::value::{Text, Val};
use super::{functions, library, macros, operators, syntax};

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    /// The server's message: `no such key: x`.
    Message(String),
    /// A function or operator does not take such values.
    NoOverload,
    /// It costs more than it may.
    Cost,
    /// A server could evaluate it.
    Unsupported(String),
}

pub(super) type Outcome<'a> = Result<Val<'a>, Fault>;

/// One evaluation: the variables in scope, and what it may still cost.
#[derive(Debug)]
pub(super) struct Evaluation<'a> {
    /// An accumulated value may be an error that a later iteration replaces.
    pub(super) variables: Vec<(&'a str, Outcome<'a>)>,
    pub(super) meter: Meter,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(own: Val<'a>, old: Option<Val<'a>>) -> Self {
        let old = old.map(|old| ("oldSelf", Ok(old)));
        Self { variables: std::iter::once(("self", Ok(own))).chain(old).collect(), meter: Meter::new() }
    }

    pub(super) fn run(&mut self, expression: &'a IdedExpr) -> Outcome<'a> {
        match &expression.expr {
            Expr::Literal(literal) => Ok(self::literal(literal)),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(given) => macros::comprehension(self, given),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Struct(_) | Expr::Unspecified => {
                Err(Fault::Unsupported("an object of a named type".to_owned()))
            }
        }
    }

    pub(super) fn truth(&mut self, expression: &'a IdedExpr) -> Result<bool, Fault> {
        match self.run(expression)? {
            Val::Bool(truth) => Ok(truth),
            _ => Err(Fault::NoOverload),
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<&Outcome<'a>> {
        self.variables.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn variable(&mut self, name: &'a str) -> Outcome<'a> {
        self.meter.charge(STEP)?;
        if let Some(found) = self.find(name) {
            return found.clone();
        }
        match TYPES.iter().find(|known| **known == name) {
            Some(known) => Ok(Val::Type(known)),
            None => Err(Fault::Unsupported(format!("there is no variable `{name}`"))),
        }
    }

    #[inline(never)]
    fn select(&mut self, select: &'a SelectExpr) -> Outcome<'a> {
        let operand = self.run(&select.operand)?;
        self.meter.charge(STEP)?;
        if select.test {
            return Ok(Val::Bool(match &operand {
                Val::Optional(None) => false,
                Val::Optional(Some(inside)) => field(inside, &select.field, &mut self.meter)?.is_some(),
                plain => field(plain, &select.field, &mut self.meter)?.is_some(),
            }));
        }
        match &operand {
            Val::Optional(inside) => chosen(inside.as_deref(), &select.field, &mut self.meter),
            plain => field(plain, &select.field, &mut self.meter)?.ok_or_else(|| no_such_key(&select.field)),
        }
    }

    #[inline(never)]
    fn call(&mut self, call: &'a CallExpr) -> Outcome<'a> {
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
            ("!_", [one]) => Ok(Val::Bool(!self.truth(one)?)),
            ("@not_strictly_false", [one]) => match self.truth(one) {
                Err(Fault::Cost) => Err(Fault::Cost),
                found => Ok(Val::Bool(found.unwrap_or(true))),
            },
            ("-_", [one]) => {
                let value = self.run(one)?;
                operators::negated(&value)
            }
            ("_?._", [operand, name]) => {
                let (operand, name) = (self.run(operand)?, self.run(name)?);
                let Val::Text(name) = name else { return Err(Fault::NoOverload) };
                self.meter.charge(STEP)?;
                match &operand {
                    Val::Optional(inside) => chosen(inside.as_deref(), &name, &mut self.meter),
                    plain => chosen(Some(plain), &name, &mut self.meter),
                }
            }
            ("_[_]", [operand, key]) => {
                let (operand, key) = (self.run(operand)?, self.run(key)?);
                self.meter.charge(STEP)?;
                match &operand {
                    Val::Optional(None) => Ok(operand),
                    Val::Optional(Some(inside)) => found(operators::index(inside, &key, &mut self.meter)),
                    plain => operators::index(plain, &key, &mut self.meter),
                }
            }
            ("_[?_]", [operand, key]) => {
                let (operand, key) = (self.run(operand)?, self.run(key)?);
                self.meter.charge(STEP)?;
                match &operand {
                    Val::Optional(None) => Ok(operand),
                    Val::Optional(Some(inside)) => found(operators::index(inside, &key, &mut self.meter)),
                    plain => found(operators::index(plain, &key, &mut self.meter)),
                }
            }
            (name, [left, right]) => {
                let (left, right) = (self.run(left)?, self.run(right)?);
                self.meter.charge(STEP)?;
                operators::binary(name, &left, &right, &mut self.meter)
            }
            (name, _) => Err(Fault::Unsupported(format!("there is no operator `{name}`"))),
        }
    }

    /// `&&` and `||`: one side may decide what the other side cannot.
    fn either(&mut self, left: &'a IdedExpr, right: &'a IdedExpr, decides: bool) -> Outcome<'a> {
        let left = self.truth(left);
        if left == Ok(decides) || left == Err(Fault::Cost) {
            return left.map(Val::Bool);
        }
        let right = self.truth(right);
        if right == Ok(decides) || right == Err(Fault::Cost) {
            return right.map(Val::Bool);
        }
        left.and(right).map(Val::Bool)
    }

    #[inline(never)]
    fn function(&mut self, call: &'a CallExpr) -> Outcome<'a> {
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
                ("format.named", Ok(Val::Null)) => Ok(optional(None)),
                ("format.named", found) => found.map(|format| optional(Some(format))),
                (_, found) => found,
            };
        }
        let target = call.target.as_deref().map(|target| self.run(target)).transpose()?;
        let arguments = self.all(&call.args)?;
        // One that is written out is compiled once.
        if let ("matches", Some(written), Some(Val::Text(pattern))) =
            (call.func_name.as_str(), call.args.last(), arguments.last())
            && !matches!(written.expr, Expr::Literal(_))
        {
            self.meter.charge_pattern(pattern, library::compiling(pattern))?;
        }
        functions::call(&call.func_name, target.as_ref(), &arguments, &mut self.meter)
    }

    fn all(&mut self, expressions: &'a [IdedExpr]) -> Result<Vec<Val<'a>>, Fault> {
        expressions.iter().map(|one| self.run(one)).collect()
    }

    #[inline(never)]
    fn list(&mut self, list: &'a ListExpr) -> Outcome<'a> {
        self.meter.charge(10 * STEP)?;
        let mut items = Vec::with_capacity(list.elements.len());
        for (at, element) in list.elements.iter().enumerate() {
            let item = self.run(element)?;
            match item {
                Val::Optional(inside) if list.optional_indices.contains(&at) => {
                    items.extend(inside.as_deref().cloned());
                }
                item => items.push(item),
            }
        }
        Ok(Val::List(Rc::new(items)))
    }

    #[inline(never)]
    fn map(&mut self, map: &'a MapExpr) -> Outcome<'a> {
        self.meter.charge(30 * STEP)?;
        let mut entries = Vec::with_capacity(map.entries.len());
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return Err(Fault::Unsupported("an object of a named type".to_owned()));
            };
            let (key, value) = (self.run(&entry.key)?, self.run(&entry.value)?);
            match value {
                Val::Optional(inside) if entry.optional => {
                    entries.extend(inside.as_deref().map(|value| (key, value.clone())));
                }
                value => entries.push((key, value)),
            }
        }
        Ok(Val::Map(Rc::new(entries)))
    }
}

/// Names of types, as values.
const TYPES: &[&str] =
    &["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"];

fn literal(literal: &LiteralValue) -> Val<'_> {
    match literal {
        LiteralValue::Null => Val::Null,
        LiteralValue::Boolean(truth) => Val::Bool(*truth.inner()),
        LiteralValue::Int(number) => Val::Int(*number.inner()),
        LiteralValue::UInt(number) => Val::UInt(*number.inner()),
        LiteralValue::Double(number) => Val::Double(*number.inner()),
        LiteralValue::String(text) => Val::Text(Text::Found(text.inner())),
        LiteralValue::Bytes(bytes) => Val::Other(Cel::Bytes(Arc::new(bytes.inner().to_vec()))),
    }
}

/// A field by the identifier that an expression has for it.
fn field<'a>(value: &Val<'a>, identifier: &str, meter: &mut Meter) -> Result<Option<Val<'a>>, Fault> {
    match value {
        Val::Object(object) if object.is_map() => Ok(object.get(identifier)),
        Val::Object(object) => Ok(object.get(&unescaped(identifier))),
        Val::Map(_) => match operators::index(value, &Val::made(identifier), meter) {
            Ok(found) => Ok(Some(found)),
            Err(Fault::Cost) => Err(Fault::Cost),
            Err(_) => Ok(None),
        },
        _ => Err(Fault::NoOverload),
    }
}

fn chosen<'a>(value: Option<&Val<'a>>, identifier: &str, meter: &mut Meter) -> Outcome<'a> {
    let found = value.map(|value| field(value, identifier, meter)).transpose()?;
    Ok(optional(found.flatten()))
}

/// A missing key becomes `optional.none`.
fn found(found: Outcome<'_>) -> Outcome<'_> {
    match found {
        Err(Fault::Cost) => Err(Fault::Cost),
        found => Ok(optional(found.ok())),
    }
}

/// `optional.of`; an optional in an optional is one.
pub(super) fn optional(value: Option<Val<'_>>) -> Val<'_> {
    match value {
        Some(Val::Optional(inside)) => Val::Optional(inside),
        Some(value) => Val::Optional(Some(Rc::new(value))),
        None => Val::Optional(None),
    }
}

pub(super) fn no_such_key(key: &str) -> Fault {
    Fault::Message(format!("no such key: {key}"))
}
