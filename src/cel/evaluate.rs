//! Evaluates the nodes of an expression.

use std::rc::Rc;

use kube_cel::cel::Value as Other;

use super::meter::{Failure, Meter};
use super::optional;
use super::tree::{Literal, Loop, Node, Operator, Order};
use super::value::{List, Map, Text, Value, compare, equal};
use crate::model::short_line;

/// The values of roots and variables.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    /// In the order of the roots in `Names`.
    pub roots: Vec<Value<'a>>,
    /// `None`: not evaluated yet. The caller evaluates the variables of an expression first.
    pub variables: Vec<Option<Result<Value<'a>, Failure>>>,
}

pub fn value<'a>(node: &'a Node, scope: &Scope<'a>, meter: &mut Meter) -> Result<Value<'a>, Failure> {
    Run { scope, meter, locals: Vec::new() }.value(node)
}

pub(super) struct Run<'s, 'a> {
    scope: &'s Scope<'a>,
    pub(super) meter: &'s mut Meter,
    /// An accumulator may hold a failure: a later item may still decide.
    pub(super) locals: Vec<Result<Value<'a>, Failure>>,
}

impl<'a> Run<'_, 'a> {
    pub(super) fn value(&mut self, node: &'a Node) -> Result<Value<'a>, Failure> {
        self.meter.step()?;
        Ok(match node {
            Node::Literal(literal) => of_literal(literal),
            Node::Root(index) => self.scope.roots.get(*index).cloned().unwrap_or(Value::Null),
            Node::Variable(index) => match self.scope.variables.get(*index) {
                Some(Some(known)) => known.clone()?,
                _ => Value::Null,
            },
            Node::Local(index) => self.locals.get(*index).cloned().unwrap_or(Ok(Value::Null))?,
            Node::Field(of, name) => match self.value(of)? {
                Value::Map(map) => map.field(name, self.meter)?.ok_or_else(|| no_field(name))?,
                Value::Optional(of) => optional::field(of.as_deref(), name, self.meter)?,
                other => return Err(no_fields(&other)),
            },
            Node::OptionalField(of, name) => match self.value(of)? {
                Value::Optional(of) => optional::field(of.as_deref(), name, self.meter)?,
                Value::Map(map) => optional::of(map.field(name, self.meter)?),
                Value::Null => Value::Optional(None),
                other => return Err(no_fields(&other)),
            },
            Node::Has(of, name) => match self.value(of)? {
                Value::Map(map) => Value::Bool(map.field(name, self.meter)?.is_some()),
                Value::Optional(of) => {
                    let field = optional::field(of.as_deref(), name, self.meter)?;
                    Value::Bool(matches!(field, Value::Optional(Some(_))))
                }
                other => return Err(no_fields(&other)),
            },
            Node::Index(of, key) => {
                let (of, key) = (self.value(of)?, self.value(key)?);
                match of {
                    Value::Optional(of) => self.optional_index(of.as_deref(), &key)?,
                    of => self.index(&of, &key)?.ok_or_else(|| missing(&of, &key))?,
                }
            }
            Node::OptionalIndex(of, key) => {
                let (of, key) = (self.value(of)?, self.value(key)?);
                match of {
                    Value::Optional(of) => self.optional_index(of.as_deref(), &key)?,
                    of => optional::of(self.index(&of, &key)?),
                }
            }
            Node::And(left, right) => Value::Bool(self.joined(left, right, false)?),
            Node::Or(left, right) => Value::Bool(self.joined(left, right, true)?),
            Node::Not(of) => Value::Bool(!self.boolean(of, "!")?),
            Node::Negate(of) => match self.value(of)? {
                Value::Int(it) => Value::Int(it.checked_neg().ok_or(OVERFLOW)?),
                Value::Double(it) => Value::Double(-it),
                _ => return Err(Failure::NoOverload("-")),
            },
            Node::NotStrictlyFalse(of) => Value::Bool(!matches!(self.value(of), Ok(Value::Bool(false)))),
            Node::Conditional(condition, one, other) => {
                let chosen = if self.boolean(condition, "?:")? { one } else { other };
                self.value(chosen)?
            }
            Node::Equal(left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                Value::Bool(equal(&left, &right, self.meter)?)
            }
            Node::NotEqual(left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                Value::Bool(!equal(&left, &right, self.meter)?)
            }
            Node::Compare(order, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let found = compare(&left, &right, self.meter)?;
                Value::Bool(match order {
                    Order::Less => found.is_some_and(|it| it.is_lt()),
                    Order::LessOrEqual => found.is_some_and(|it| it.is_le()),
                    Order::Greater => found.is_some_and(|it| it.is_gt()),
                    Order::GreaterOrEqual => found.is_some_and(|it| it.is_ge()),
                })
            }
            Node::Arithmetic(operator, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.arithmetic(*operator, left, right)?
            }
            Node::In(item, of) => {
                let (item, of) = (self.value(item)?, self.value(of)?);
                match of {
                    Value::List(list) => Value::Bool(self.contains(&list, &item)?),
                    Value::Map(map) => Value::Bool(map.get(&item, self.meter)?.is_some()),
                    _ => return Err(Failure::NoOverload("in")),
                }
            }
            Node::List(nodes) => {
                let mut items = Vec::new();
                for (node, is_optional) in nodes {
                    match self.value(node)? {
                        Value::Optional(inner) if *is_optional => items.extend(inner.map(|it| (*it).clone())),
                        item => items.push(item),
                    }
                }
                self.meter.hold(ITEM * (1 + items.len()))?;
                Value::List(List::Owned(Rc::new(items)))
            }
            Node::Map(nodes) => {
                let mut entries: Vec<(Value<'a>, Value<'a>)> = Vec::new();
                for (key, value, is_optional) in nodes {
                    let key = self.value(key)?;
                    for (known, _) in &entries {
                        if equal(known, &key, self.meter)? {
                            return Err(Failure::Said("a map has a key twice".into()));
                        }
                    }
                    match self.value(value)? {
                        Value::Optional(inner) if *is_optional => {
                            entries.extend(inner.map(|it| (key, (*it).clone())));
                        }
                        value => entries.push((key, value)),
                    }
                }
                self.meter.hold(2 * ITEM * (1 + entries.len()))?;
                Value::Map(Map::Owned(Rc::new(entries)))
            }
            Node::Loop(it) => self.looped(it)?,
            Node::Pairs(it) => self.pairs(it)?,
            Node::Append(local, item) => {
                let item = self.value(item)?;
                self.meter.hold(ITEM)?;
                let list = self.locals.get_mut(*local).map(|list| std::mem::replace(list, Ok(Value::Null)));
                let Some(Value::List(List::Owned(mut items))) = list.transpose()? else {
                    return Err(Failure::NoOverload("+"));
                };
                Rc::make_mut(&mut items).push(item);
                Value::List(List::Owned(items))
            }
            Node::OptionalMap(of, body, is_flat) => match self.value(of)? {
                Value::Optional(None) => Value::Optional(None),
                Value::Optional(Some(inner)) => {
                    self.locals.push(Ok((*inner).clone()));
                    let mapped = self.value(body);
                    self.locals.pop();
                    if *is_flat { mapped? } else { Value::some(mapped?) }
                }
                _ => return Err(Failure::NoOverload("optMap")),
            },
            Node::Native(native, nodes) => {
                let args = self.all(nodes)?;
                native.call(args, self.meter)?
            }
            Node::Library(library, nodes) => {
                let args = self.all(nodes)?;
                library.call(&args, self.meter)?
            }
        })
    }

    fn all(&mut self, nodes: &'a [Node]) -> Result<Vec<Value<'a>>, Failure> {
        nodes.iter().map(|node| self.value(node)).collect()
    }

    pub(super) fn boolean(&mut self, node: &'a Node, operator: &'static str) -> Result<bool, Failure> {
        match self.value(node)? {
            Value::Bool(it) => Ok(it),
            _ => Err(Failure::NoOverload(operator)),
        }
    }

    /// A deciding operand is enough, even if the other one fails.
    fn joined(&mut self, left: &'a Node, right: &'a Node, decides: bool) -> Result<bool, Failure> {
        let operator = if decides { "||" } else { "&&" };
        let left = self.boolean(left, operator);
        if left == Ok(decides) {
            return Ok(decides);
        }
        let right = self.boolean(right, operator);
        if right == Ok(decides) { Ok(decides) } else { left.and(right) }
    }

    fn looped(&mut self, it: &'a Loop) -> Result<Value<'a>, Failure> {
        let (range, start) = (self.value(&it.range)?, self.value(&it.start)?);
        let list = match range {
            Value::List(list) => list,
            Value::Map(map) => List::Owned(Rc::new(map.keys(self.meter)?)),
            other => {
                return Err(Failure::Said(format!("a {} is no list and no map", other.type_name()).into()));
            }
        };
        let depth = self.locals.len();
        self.locals.extend([Ok(start), Ok(Value::Null)]);
        let result = self.turns(it, &list, depth);
        self.locals.truncate(depth);
        result
    }

    fn turns(&mut self, it: &'a Loop, list: &List<'a>, depth: usize) -> Result<Value<'a>, Failure> {
        for index in 0..list.len() {
            if !self.boolean(&it.condition, "all")? {
                break;
            }
            let item = list.get(index).unwrap_or(Value::Null);
            if let Some(local) = self.locals.get_mut(depth + 1) {
                *local = Ok(item);
            }
            let next = self.value(&it.step);
            if let Some(local) = self.locals.get_mut(depth) {
                *local = next;
            }
        }
        self.value(&it.result)
    }

    fn index(&mut self, of: &Value<'a>, key: &Value<'_>) -> Result<Option<Value<'a>>, Failure> {
        match (of, key) {
            (Value::Map(map), key) => map.get(key, self.meter),
            (Value::List(list), Value::Int(index)) => {
                Ok(usize::try_from(*index).ok().and_then(|index| list.get(index)))
            }
            (Value::List(list), Value::Uint(index)) => {
                Ok(usize::try_from(*index).ok().and_then(|index| list.get(index)))
            }
            _ => Err(Failure::NoOverload("[]")),
        }
    }

    fn optional_index(&mut self, of: Option<&Value<'a>>, key: &Value<'_>) -> Result<Value<'a>, Failure> {
        match of {
            Some(of) => Ok(optional::of(self.index(of, key)?)),
            None => Ok(Value::Optional(None)),
        }
    }

    fn contains(&mut self, list: &List<'a>, item: &Value<'_>) -> Result<bool, Failure> {
        for index in 0..list.len() {
            if let Some(known) = list.get(index)
                && equal(&known, item, self.meter)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn arithmetic(
        &mut self,
        operator: Operator,
        left: Value<'a>,
        right: Value<'a>,
    ) -> Result<Value<'a>, Failure> {
        use Operator::{Add, Divide, Multiply, Remainder, Subtract};
        let zero = || Failure::Said("a division by zero".into());
        Ok(match (operator, left, right) {
            (Add, Value::Int(one), Value::Int(two)) => Value::Int(one.checked_add(two).ok_or(OVERFLOW)?),
            (Subtract, Value::Int(one), Value::Int(two)) => Value::Int(one.checked_sub(two).ok_or(OVERFLOW)?),
            (Multiply, Value::Int(one), Value::Int(two)) => Value::Int(one.checked_mul(two).ok_or(OVERFLOW)?),
            (Divide | Remainder, Value::Int(_), Value::Int(0)) => return Err(zero()),
            (Divide, Value::Int(one), Value::Int(two)) => Value::Int(one.checked_div(two).ok_or(OVERFLOW)?),
            (Remainder, Value::Int(one), Value::Int(two)) => {
                Value::Int(one.checked_rem(two).ok_or(OVERFLOW)?)
            }
            (Add, Value::Uint(one), Value::Uint(two)) => Value::Uint(one.checked_add(two).ok_or(OVERFLOW)?),
            (Subtract, Value::Uint(one), Value::Uint(two)) => {
                Value::Uint(one.checked_sub(two).ok_or(OVERFLOW)?)
            }
            (Multiply, Value::Uint(one), Value::Uint(two)) => {
                Value::Uint(one.checked_mul(two).ok_or(OVERFLOW)?)
            }
            (Divide | Remainder, Value::Uint(_), Value::Uint(0)) => return Err(zero()),
            (Divide, Value::Uint(one), Value::Uint(two)) => Value::Uint(one / two),
            (Remainder, Value::Uint(one), Value::Uint(two)) => Value::Uint(one % two),
            (Add, Value::Double(one), Value::Double(two)) => Value::Double(one + two),
            (Subtract, Value::Double(one), Value::Double(two)) => Value::Double(one - two),
            (Multiply, Value::Double(one), Value::Double(two)) => Value::Double(one * two),
            (Divide, Value::Double(one), Value::Double(two)) => Value::Double(one / two),
            (Add, Value::Text(one), Value::Text(two)) => {
                self.meter.hold(one.as_str().len() + two.as_str().len())?;
                Value::Text(Text::Owned([one.as_str(), two.as_str()].concat().into()))
            }
            (Add, Value::List(one), Value::List(two)) => {
                self.meter.hold(ITEM * (one.len() + two.len()))?;
                let items = |list: List<'a>| (0..list.len()).filter_map(move |index| list.get(index));
                Value::List(List::Owned(Rc::new(items(one).chain(items(two)).collect())))
            }
            // Timestamps and durations.
            (Add, Value::Other(one), Value::Other(two)) => self.sum(one + two, "+")?,
            (Subtract, Value::Other(one), Value::Other(two)) => self.sum(one - two, "-")?,
            (Add, ..) => return Err(Failure::NoOverload("+")),
            (Subtract, ..) => return Err(Failure::NoOverload("-")),
            (Multiply, ..) => return Err(Failure::NoOverload("*")),
            (Divide, ..) => return Err(Failure::NoOverload("/")),
            (Remainder, ..) => return Err(Failure::NoOverload("%")),
        })
    }

    fn sum<E>(&mut self, sum: Result<Other, E>, operator: &'static str) -> Result<Value<'a>, Failure> {
        Value::from_library(sum.map_err(|_| Failure::NoOverload(operator))?, self.meter)
    }
}

const OVERFLOW: Failure = Failure::Said(std::borrow::Cow::Borrowed("a number is too large"));
/// Approximate bytes of a list item.
pub(super) const ITEM: usize = 40;

fn of_literal(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(it) => Value::Bool(*it),
        Literal::Int(it) => Value::Int(*it),
        Literal::Uint(it) => Value::Uint(*it),
        Literal::Double(it) => Value::Double(*it),
        Literal::Text(text) => Value::Text(Text::Borrowed(text)),
        Literal::Bytes(bytes) => Value::Other(Other::Bytes(bytes.clone().into())),
        Literal::Type(name) => Value::Type(name),
    }
}

fn no_fields(value: &Value<'_>) -> Failure {
    Failure::Said(format!("a {} has no fields", value.type_name()).into())
}

/// A name may be as long as a value, and each turn of a macro copies the failure.
fn no_field(name: &str) -> Failure {
    const MOST: usize = 253;
    Failure::NoField(short_line(name, MOST).into())
}

fn missing(of: &Value<'_>, key: &Value<'_>) -> Failure {
    match (of, key) {
        (Value::List(_), _) => Failure::Said("a list is shorter than that".into()),
        (_, Value::Text(name)) => no_field(name.as_str()),
        _ => Failure::Said("a map has no such key".into()),
    }
}
