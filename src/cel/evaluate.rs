//! Evaluates the nodes of an expression.

use std::rc::Rc;

use kube_cel::cel::Value as Other;

use super::meter::{CelMeter, EvaluationFailure};
use super::node::{ArithmeticOperator, CelLiteral, CelLoop, CelNode, ComparisonOperator};
use super::optional;
use super::value::{CelList, CelMap, CelText, CelValue, ITEM_BYTES, compare, equal};
use crate::model::short_line;

/// The values of roots and variables.
#[derive(Clone, Debug, Default)]
pub struct EvaluationScope<'a> {
    /// In the order of the roots in `Names`.
    pub roots: Vec<CelValue<'a>>,
    /// `None`: not evaluated yet. The caller evaluates the variables of an expression first.
    pub variables: Vec<Option<Result<CelValue<'a>, EvaluationFailure>>>,
}

pub fn evaluate<'a>(
    node: &'a CelNode,
    scope: &EvaluationScope<'a>,
    meter: &mut CelMeter,
) -> Result<CelValue<'a>, EvaluationFailure> {
    ExpressionRun { scope, meter, locals: Vec::new() }.value(node)
}

pub(super) struct ExpressionRun<'s, 'a> {
    scope: &'s EvaluationScope<'a>,
    pub(super) meter: &'s mut CelMeter,
    /// An accumulator may hold a failure: a later item may still decide.
    pub(super) locals: Vec<Result<CelValue<'a>, EvaluationFailure>>,
}

impl<'a> ExpressionRun<'_, 'a> {
    pub(super) fn value(&mut self, node: &'a CelNode) -> Result<CelValue<'a>, EvaluationFailure> {
        self.meter.step()?;
        Ok(match node {
            CelNode::Literal(literal) => literal_value(literal),
            CelNode::Root(index) => self.scope.roots.get(*index).cloned().unwrap_or(CelValue::Null),
            CelNode::Variable(index) => match self.scope.variables.get(*index) {
                Some(Some(known)) => known.clone()?,
                _ => CelValue::Null,
            },
            CelNode::Local(index) => self.locals.get(*index).cloned().unwrap_or(Ok(CelValue::Null))?,
            CelNode::Field(of, name) => match self.value(of)? {
                CelValue::Map(map) => map.field(name, self.meter)?.ok_or_else(|| no_field(name))?,
                CelValue::Optional(of) => optional::optional_field(of.as_deref(), name, self.meter)?,
                other => return Err(no_fields(&other)),
            },
            CelNode::OptionalField(of, name) => match self.value(of)? {
                CelValue::Optional(of) => optional::optional_field(of.as_deref(), name, self.meter)?,
                CelValue::Map(map) => optional::optional_of(map.field(name, self.meter)?),
                CelValue::Null => CelValue::Optional(None),
                other => return Err(no_fields(&other)),
            },
            CelNode::Has(of, name) => match self.value(of)? {
                CelValue::Map(map) => CelValue::Bool(map.field(name, self.meter)?.is_some()),
                CelValue::Optional(of) => {
                    let field = optional::optional_field(of.as_deref(), name, self.meter)?;
                    CelValue::Bool(matches!(field, CelValue::Optional(Some(_))))
                }
                other => return Err(no_fields(&other)),
            },
            CelNode::Index(of, key) => {
                let (of, key) = (self.value(of)?, self.value(key)?);
                match of {
                    CelValue::Optional(of) => self.optional_index(of.as_deref(), &key)?,
                    of => self.index(&of, &key)?.ok_or_else(|| no_such_key(&of, &key))?,
                }
            }
            CelNode::OptionalIndex(of, key) => {
                let (of, key) = (self.value(of)?, self.value(key)?);
                match of {
                    CelValue::Optional(of) => self.optional_index(of.as_deref(), &key)?,
                    of => optional::optional_of(self.index(&of, &key)?),
                }
            }
            CelNode::And(left, right) => CelValue::Bool(self.evaluate_logical(left, right, false)?),
            CelNode::Or(left, right) => CelValue::Bool(self.evaluate_logical(left, right, true)?),
            CelNode::Not(of) => CelValue::Bool(!self.boolean(of, "!")?),
            CelNode::Negate(of) => match self.value(of)? {
                CelValue::Int(it) => CelValue::Int(it.checked_neg().ok_or(OVERFLOW)?),
                CelValue::Double(it) => CelValue::Double(-it),
                _ => return Err(EvaluationFailure::NoOverload("-")),
            },
            CelNode::NotStrictlyFalse(of) => {
                CelValue::Bool(!matches!(self.value(of), Ok(CelValue::Bool(false))))
            }
            CelNode::Conditional(condition, one, other) => {
                let chosen = if self.boolean(condition, "?:")? { one } else { other };
                self.value(chosen)?
            }
            CelNode::Equal(left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                CelValue::Bool(equal(&left, &right, self.meter)?)
            }
            CelNode::NotEqual(left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                CelValue::Bool(!equal(&left, &right, self.meter)?)
            }
            CelNode::Compare(order, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let found = compare(&left, &right, self.meter)?;
                CelValue::Bool(match order {
                    ComparisonOperator::Less => found.is_some_and(|it| it.is_lt()),
                    ComparisonOperator::LessOrEqual => found.is_some_and(|it| it.is_le()),
                    ComparisonOperator::Greater => found.is_some_and(|it| it.is_gt()),
                    ComparisonOperator::GreaterOrEqual => found.is_some_and(|it| it.is_ge()),
                })
            }
            CelNode::Arithmetic(operator, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.arithmetic(*operator, left, right)?
            }
            CelNode::In(item, of) => {
                let (item, of) = (self.value(item)?, self.value(of)?);
                match of {
                    CelValue::List(list) => CelValue::Bool(self.contains(&list, &item)?),
                    CelValue::Map(map) => CelValue::Bool(map.get(&item, self.meter)?.is_some()),
                    _ => return Err(EvaluationFailure::NoOverload("in")),
                }
            }
            CelNode::List(nodes) => {
                let mut items = Vec::new();
                for (node, is_optional) in nodes {
                    match self.value(node)? {
                        CelValue::Optional(inner) if *is_optional => {
                            items.extend(inner.map(|it| (*it).clone()))
                        }
                        item => items.push(item),
                    }
                }
                self.meter.charge_memory(ITEM_BYTES * (1 + items.len()))?;
                CelValue::List(CelList::Owned(Rc::new(items)))
            }
            CelNode::Map(nodes) => {
                let mut entries: Vec<(CelValue<'a>, CelValue<'a>)> = Vec::new();
                for (key, value, is_optional) in nodes {
                    let key = self.value(key)?;
                    for (known, _) in &entries {
                        if equal(known, &key, self.meter)? {
                            return Err(EvaluationFailure::Message("a map has a key twice".into()));
                        }
                    }
                    match self.value(value)? {
                        CelValue::Optional(inner) if *is_optional => {
                            entries.extend(inner.map(|it| (key, (*it).clone())));
                        }
                        value => entries.push((key, value)),
                    }
                }
                self.meter.charge_memory(2 * ITEM_BYTES * (1 + entries.len()))?;
                CelValue::Map(CelMap::Owned(Rc::new(entries)))
            }
            CelNode::Loop(it) => self.evaluate_loop(it)?,
            CelNode::TwoVariables(it) => self.evaluate_two_variables(it)?,
            CelNode::Append(local, item) => {
                let item = self.value(item)?;
                self.meter.charge_memory(ITEM_BYTES)?;
                let list =
                    self.locals.get_mut(*local).map(|list| std::mem::replace(list, Ok(CelValue::Null)));
                let Some(CelValue::List(CelList::Owned(mut items))) = list.transpose()? else {
                    return Err(EvaluationFailure::NoOverload("+"));
                };
                Rc::make_mut(&mut items).push(item);
                CelValue::List(CelList::Owned(items))
            }
            CelNode::OptionalMap(of, body, is_flat) => match self.value(of)? {
                CelValue::Optional(None) => CelValue::Optional(None),
                CelValue::Optional(Some(inner)) => {
                    self.locals.push(Ok((*inner).clone()));
                    let mapped = self.value(body);
                    self.locals.pop();
                    if *is_flat { mapped? } else { CelValue::some(mapped?) }
                }
                _ => return Err(EvaluationFailure::NoOverload("optMap")),
            },
            CelNode::Native(native, nodes) => {
                let args = self.evaluate_all(nodes)?;
                native.call(args, self.meter)?
            }
            CelNode::Library(library, nodes) => {
                let args = self.evaluate_all(nodes)?;
                library.call(&args, self.meter)?
            }
        })
    }

    fn evaluate_all(&mut self, nodes: &'a [CelNode]) -> Result<Vec<CelValue<'a>>, EvaluationFailure> {
        nodes.iter().map(|node| self.value(node)).collect()
    }

    pub(super) fn boolean(
        &mut self,
        node: &'a CelNode,
        operator: &'static str,
    ) -> Result<bool, EvaluationFailure> {
        match self.value(node)? {
            CelValue::Bool(it) => Ok(it),
            _ => Err(EvaluationFailure::NoOverload(operator)),
        }
    }

    /// A deciding operand is enough, even if the other one fails.
    fn evaluate_logical(
        &mut self,
        left: &'a CelNode,
        right: &'a CelNode,
        decides: bool,
    ) -> Result<bool, EvaluationFailure> {
        let operator = if decides { "||" } else { "&&" };
        let left = self.boolean(left, operator);
        if left == Ok(decides) {
            return Ok(decides);
        }
        let right = self.boolean(right, operator);
        if right == Ok(decides) { Ok(decides) } else { left.and(right) }
    }

    fn evaluate_loop(&mut self, it: &'a CelLoop) -> Result<CelValue<'a>, EvaluationFailure> {
        let (range, start) = (self.value(&it.range)?, self.value(&it.start)?);
        let list = match range {
            CelValue::List(list) => list,
            CelValue::Map(map) => CelList::Owned(Rc::new(map.keys(self.meter)?)),
            other => {
                return Err(EvaluationFailure::Message(
                    format!("a {} is neither a list nor a map", other.type_name()).into(),
                ));
            }
        };
        let depth = self.locals.len();
        self.locals.extend([Ok(start), Ok(CelValue::Null)]);
        let result = self.run_iterations(it, &list, depth);
        self.locals.truncate(depth);
        result
    }

    fn run_iterations(
        &mut self,
        it: &'a CelLoop,
        list: &CelList<'a>,
        depth: usize,
    ) -> Result<CelValue<'a>, EvaluationFailure> {
        for index in 0..list.len() {
            if !self.boolean(&it.condition, "all")? {
                break;
            }
            let item = list.get(index).unwrap_or(CelValue::Null);
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

    fn index(
        &mut self,
        of: &CelValue<'a>,
        key: &CelValue<'_>,
    ) -> Result<Option<CelValue<'a>>, EvaluationFailure> {
        match (of, key) {
            (CelValue::Map(map), key) => map.get(key, self.meter),
            (CelValue::List(list), CelValue::Int(index)) => {
                Ok(usize::try_from(*index).ok().and_then(|index| list.get(index)))
            }
            (CelValue::List(list), CelValue::Uint(index)) => {
                Ok(usize::try_from(*index).ok().and_then(|index| list.get(index)))
            }
            _ => Err(EvaluationFailure::NoOverload("[]")),
        }
    }

    fn optional_index(
        &mut self,
        of: Option<&CelValue<'a>>,
        key: &CelValue<'_>,
    ) -> Result<CelValue<'a>, EvaluationFailure> {
        match of {
            Some(of) => Ok(optional::optional_of(self.index(of, key)?)),
            None => Ok(CelValue::Optional(None)),
        }
    }

    fn contains(&mut self, list: &CelList<'a>, item: &CelValue<'_>) -> Result<bool, EvaluationFailure> {
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
        operator: ArithmeticOperator,
        left: CelValue<'a>,
        right: CelValue<'a>,
    ) -> Result<CelValue<'a>, EvaluationFailure> {
        use ArithmeticOperator::{Add, Divide, Multiply, Remainder, Subtract};
        let zero = || EvaluationFailure::Message("a division by zero".into());
        Ok(match (operator, left, right) {
            (Add, CelValue::Int(one), CelValue::Int(two)) => {
                CelValue::Int(one.checked_add(two).ok_or(OVERFLOW)?)
            }
            (Subtract, CelValue::Int(one), CelValue::Int(two)) => {
                CelValue::Int(one.checked_sub(two).ok_or(OVERFLOW)?)
            }
            (Multiply, CelValue::Int(one), CelValue::Int(two)) => {
                CelValue::Int(one.checked_mul(two).ok_or(OVERFLOW)?)
            }
            (Divide | Remainder, CelValue::Int(_), CelValue::Int(0)) => return Err(zero()),
            (Divide, CelValue::Int(one), CelValue::Int(two)) => {
                CelValue::Int(one.checked_div(two).ok_or(OVERFLOW)?)
            }
            (Remainder, CelValue::Int(one), CelValue::Int(two)) => {
                CelValue::Int(one.checked_rem(two).ok_or(OVERFLOW)?)
            }
            (Add, CelValue::Uint(one), CelValue::Uint(two)) => {
                CelValue::Uint(one.checked_add(two).ok_or(OVERFLOW)?)
            }
            (Subtract, CelValue::Uint(one), CelValue::Uint(two)) => {
                CelValue::Uint(one.checked_sub(two).ok_or(OVERFLOW)?)
            }
            (Multiply, CelValue::Uint(one), CelValue::Uint(two)) => {
                CelValue::Uint(one.checked_mul(two).ok_or(OVERFLOW)?)
            }
            (Divide | Remainder, CelValue::Uint(_), CelValue::Uint(0)) => return Err(zero()),
            (Divide, CelValue::Uint(one), CelValue::Uint(two)) => CelValue::Uint(one / two),
            (Remainder, CelValue::Uint(one), CelValue::Uint(two)) => CelValue::Uint(one % two),
            (Add, CelValue::Double(one), CelValue::Double(two)) => CelValue::Double(one + two),
            (Subtract, CelValue::Double(one), CelValue::Double(two)) => CelValue::Double(one - two),
            (Multiply, CelValue::Double(one), CelValue::Double(two)) => CelValue::Double(one * two),
            (Divide, CelValue::Double(one), CelValue::Double(two)) => CelValue::Double(one / two),
            (Add, CelValue::Text(one), CelValue::Text(two)) => {
                self.meter.charge_memory(one.as_str().len() + two.as_str().len())?;
                CelValue::Text(CelText::Owned([one.as_str(), two.as_str()].concat().into()))
            }
            (Add, CelValue::List(one), CelValue::List(two)) => {
                self.meter.charge_memory(ITEM_BYTES * (one.len() + two.len()))?;
                let items = |list: CelList<'a>| (0..list.len()).filter_map(move |index| list.get(index));
                CelValue::List(CelList::Owned(Rc::new(items(one).chain(items(two)).collect())))
            }
            // Timestamps and durations.
            (Add, CelValue::Other(one), CelValue::Other(two)) => self.sum(one + two, "+")?,
            (Subtract, CelValue::Other(one), CelValue::Other(two)) => self.sum(one - two, "-")?,
            (Add, ..) => return Err(EvaluationFailure::NoOverload("+")),
            (Subtract, ..) => return Err(EvaluationFailure::NoOverload("-")),
            (Multiply, ..) => return Err(EvaluationFailure::NoOverload("*")),
            (Divide, ..) => return Err(EvaluationFailure::NoOverload("/")),
            (Remainder, ..) => return Err(EvaluationFailure::NoOverload("%")),
        })
    }

    fn sum<E>(
        &mut self,
        sum: Result<Other, E>,
        operator: &'static str,
    ) -> Result<CelValue<'a>, EvaluationFailure> {
        CelValue::from_library(sum.map_err(|_| EvaluationFailure::NoOverload(operator))?, self.meter)
    }
}

const OVERFLOW: EvaluationFailure =
    EvaluationFailure::Message(std::borrow::Cow::Borrowed("a number is too large"));

fn literal_value(literal: &CelLiteral) -> CelValue<'_> {
    match literal {
        CelLiteral::Null => CelValue::Null,
        CelLiteral::Bool(it) => CelValue::Bool(*it),
        CelLiteral::Int(it) => CelValue::Int(*it),
        CelLiteral::Uint(it) => CelValue::Uint(*it),
        CelLiteral::Double(it) => CelValue::Double(*it),
        CelLiteral::Text(text) => CelValue::Text(CelText::Borrowed(text)),
        CelLiteral::Bytes(bytes) => CelValue::Other(Other::Bytes(bytes.clone().into())),
        CelLiteral::Type(name) => CelValue::Type(name),
    }
}

fn no_fields(value: &CelValue<'_>) -> EvaluationFailure {
    EvaluationFailure::Message(format!("a {} has no fields", value.type_name()).into())
}

/// A name may be as long as a value, and each turn of a macro copies the failure.
fn no_field(name: &str) -> EvaluationFailure {
    const MOST: usize = 253;
    EvaluationFailure::NoField(short_line(name, MOST).into())
}

fn no_such_key(of: &CelValue<'_>, key: &CelValue<'_>) -> EvaluationFailure {
    match (of, key) {
        (CelValue::List(_), _) => EvaluationFailure::Message("the index is past the end of the list".into()),
        (_, CelValue::Text(name)) => no_field(name.as_str()),
        _ => EvaluationFailure::Message("the map does not have this key".into()),
    }
}
