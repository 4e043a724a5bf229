//! Operators of two values.

use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use kube_cel::cel::Value as Cel;

use super::cost_meter::{CostMeter, STEP};
use super::fault::RuleFault;
use super::library;
use super::value::{RuleOperand, RuleResult};

pub(super) fn binary<'a>(
    name: &str,
    left: &RuleOperand<'a>,
    right: &RuleOperand<'a>,
    meter: &mut CostMeter,
) -> RuleResult<'a> {
    match name {
        "_==_" => Ok(RuleOperand::Bool(equal(left, right, meter)?)),
        "_!=_" => Ok(RuleOperand::Bool(!equal(left, right, meter)?)),
        "_<_" => ordered(left, right, meter, Ordering::is_lt),
        "_<=_" => ordered(left, right, meter, Ordering::is_le),
        "_>_" => ordered(left, right, meter, Ordering::is_gt),
        "_>=_" => ordered(left, right, meter, Ordering::is_ge),
        "@in" => within(left, right, meter),
        "_+_" => sum(left, right, meter),
        "_-_" | "_*_" | "_/_" | "_%_" => computed(name, left, right),
        other => Err(RuleFault::Unsupported(format!("there is no operator `{other}`"))),
    }
}

/// Values of different types are not equal, but for numbers.
pub(super) fn equal(
    left: &RuleOperand<'_>,
    right: &RuleOperand<'_>,
    meter: &mut CostMeter,
) -> Result<bool, RuleFault> {
    meter.charge(1)?;
    if left.is_list() && right.is_list() {
        return equal_lists(left, right, meter);
    }
    Ok(match (left, right) {
        (RuleOperand::Null, RuleOperand::Null)
        | (RuleOperand::Optional(None), RuleOperand::Optional(None)) => true,
        (RuleOperand::Bool(left), RuleOperand::Bool(right)) => left == right,
        (RuleOperand::Text(left), RuleOperand::Text(right)) => {
            meter.charge_bytes(left.len().min(right.len()))?;
            **left == **right
        }
        (RuleOperand::Type(left), RuleOperand::Type(right)) => left == right,
        (RuleOperand::Optional(Some(left)), RuleOperand::Optional(Some(right))) => equal(left, right, meter)?,
        (RuleOperand::Other(left), RuleOperand::Other(right)) => left == right,
        (RuleOperand::Object(_) | RuleOperand::Map(_), RuleOperand::Object(_) | RuleOperand::Map(_)) => {
            equal_maps(left, right, meter)?
        }
        _ => compared_numbers(left, right) == Some(Ordering::Equal),
    })
}

fn equal_lists(
    left: &RuleOperand<'_>,
    right: &RuleOperand<'_>,
    meter: &mut CostMeter,
) -> Result<bool, RuleFault> {
    let (Some(length), Some(other)) = (left.len(), right.len()) else { return Ok(false) };
    if length != other {
        return Ok(false);
    }
    // Sets and maps have no order.
    let is_loose = matches!(left.list_type(), "set" | "map");
    for at in 0..length {
        let (Some(one), Some(other)) = (left.item(at), right.item(at)) else { return Ok(false) };
        if equal(&one, &other, meter)? {
            continue;
        }
        if !(is_loose
            && (0..length)
                .map_while(|at| left.item(at))
                .try_fold(false, |found, one| Ok::<_, RuleFault>(found || equal(&one, &other, meter)?))?)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(
    left: &RuleOperand<'_>,
    right: &RuleOperand<'_>,
    meter: &mut CostMeter,
) -> Result<bool, RuleFault> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for (key, value) in left.pairs().unwrap_or_default() {
        meter.charge(STEP)?;
        match index(right, &key, meter) {
            Ok(other) if equal(&value, &other, meter)? => {}
            Err(RuleFault::Cost) => return Err(RuleFault::Cost),
            _ => return Ok(false),
        }
    }
    Ok(true)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of different types compare as floats, as in CEL")]
fn compared_numbers(left: &RuleOperand<'_>, right: &RuleOperand<'_>) -> Option<Ordering> {
    match (left, right) {
        (RuleOperand::Int(left), RuleOperand::Int(right)) => Some(left.cmp(right)),
        (RuleOperand::UInt(left), RuleOperand::UInt(right)) => Some(left.cmp(right)),
        (RuleOperand::Double(left), RuleOperand::Double(right)) => left.partial_cmp(right),
        (RuleOperand::Int(left), RuleOperand::UInt(right)) => {
            Some(u64::try_from(*left).map_or(Ordering::Less, |left| left.cmp(right)))
        }
        (RuleOperand::UInt(left), RuleOperand::Int(right)) => {
            Some(u64::try_from(*right).map_or(Ordering::Greater, |right| left.cmp(&right)))
        }
        (RuleOperand::Int(left), RuleOperand::Double(right)) => (*left as f64).partial_cmp(right),
        (RuleOperand::Double(left), RuleOperand::Int(right)) => left.partial_cmp(&(*right as f64)),
        (RuleOperand::UInt(left), RuleOperand::Double(right)) => (*left as f64).partial_cmp(right),
        (RuleOperand::Double(left), RuleOperand::UInt(right)) => left.partial_cmp(&(*right as f64)),
        _ => None,
    }
}

pub(super) fn compared(
    left: &RuleOperand<'_>,
    right: &RuleOperand<'_>,
    meter: &mut CostMeter,
) -> Result<Ordering, RuleFault> {
    let found = match (left, right) {
        (RuleOperand::Text(left), RuleOperand::Text(right)) => {
            meter.charge_bytes(left.len().min(right.len()))?;
            Some(left.cmp(&**right))
        }
        (RuleOperand::Bool(left), RuleOperand::Bool(right)) => Some(left.cmp(right)),
        (RuleOperand::Other(Cel::Bytes(left)), RuleOperand::Other(Cel::Bytes(right))) => {
            Some(left.cmp(right))
        }
        (RuleOperand::Other(left), RuleOperand::Other(right)) => left.partial_cmp(right),
        _ => compared_numbers(left, right),
    };
    found.ok_or(RuleFault::NoOverload)
}

fn ordered<'a>(
    left: &RuleOperand<'a>,
    right: &RuleOperand<'a>,
    meter: &mut CostMeter,
    fits: fn(Ordering) -> bool,
) -> RuleResult<'a> {
    match (left, right) {
        (RuleOperand::Double(one), _) | (_, RuleOperand::Double(one)) if one.is_nan() => {
            Ok(RuleOperand::Bool(false))
        }
        _ => Ok(RuleOperand::Bool(fits(compared(left, right, meter)?))),
    }
}

fn within<'a>(one: &RuleOperand<'a>, all: &RuleOperand<'a>, meter: &mut CostMeter) -> RuleResult<'a> {
    match all {
        RuleOperand::Object(_) | RuleOperand::Map(_) => match index(all, one, meter) {
            Err(RuleFault::Cost) => Err(RuleFault::Cost),
            found => Ok(RuleOperand::Bool(found.is_ok())),
        },
        RuleOperand::Array { .. } | RuleOperand::List(_) => {
            for at in 0..all.len().unwrap_or_default() {
                if all.item(at).map(|item| equal(&item, one, meter)).transpose()? == Some(true) {
                    return Ok(RuleOperand::Bool(true));
                }
            }
            Ok(RuleOperand::Bool(false))
        }
        _ => Err(RuleFault::NoOverload),
    }
}

/// Bytes of Go: `%v` of a key.
fn shown(key: &RuleOperand<'_>) -> String {
    match key {
        RuleOperand::Text(text) => text.to_string(),
        RuleOperand::Int(number) => number.to_string(),
        RuleOperand::UInt(number) => number.to_string(),
        RuleOperand::Bool(truth) => truth.to_string(),
        other => other.type_name().to_owned(),
    }
}

/// `list[0]`, `map['key']`
pub(super) fn index<'a>(
    value: &RuleOperand<'a>,
    key: &RuleOperand<'a>,
    meter: &mut CostMeter,
) -> RuleResult<'a> {
    let found = match (value, key) {
        (RuleOperand::Array { .. } | RuleOperand::List(_), key) => {
            let at = match key {
                RuleOperand::Int(at) => usize::try_from(*at).ok(),
                RuleOperand::UInt(at) => usize::try_from(*at).ok(),
                _ => return Err(RuleFault::NoOverload),
            };
            let item = at.and_then(|at| value.item(at));
            return item.ok_or_else(|| RuleFault::Message(format!("index out of bounds: {}", shown(key))));
        }
        (RuleOperand::Object(object), RuleOperand::Text(name)) => object.get(name),
        (RuleOperand::Map(entries), key) => {
            meter.charge(u64::try_from(entries.len()).unwrap_or(u64::MAX))?;
            let same = |known: &RuleOperand<'_>| match (known, key) {
                (RuleOperand::Text(known), RuleOperand::Text(key)) => **known == **key,
                (RuleOperand::Bool(known), RuleOperand::Bool(key)) => known == key,
                (known, key) => compared_numbers(known, key) == Some(Ordering::Equal),
            };
            entries.iter().rev().find(|(known, _)| same(known)).map(|(_, value)| value.clone())
        }
        (RuleOperand::Object(_), _) => None,
        _ => return Err(RuleFault::NoOverload),
    };
    found.ok_or_else(|| RuleFault::no_such_key(&shown(key)))
}

fn sum<'a>(left: &RuleOperand<'a>, right: &RuleOperand<'a>, meter: &mut CostMeter) -> RuleResult<'a> {
    match (left, right) {
        (RuleOperand::Text(left), RuleOperand::Text(right)) => {
            meter.charge_bytes(left.len() + right.len())?;
            Ok(RuleOperand::made([&**left, &**right].concat()))
        }
        (RuleOperand::Other(Cel::Bytes(left)), RuleOperand::Other(Cel::Bytes(right))) => {
            meter.charge_bytes(left.len() + right.len())?;
            Ok(RuleOperand::Other(Cel::Bytes(Arc::new([left.as_slice(), right].concat()))))
        }
        (left, right) if left.is_list() && right.is_list() => joined(left, right, meter),
        _ => computed("_+_", left, right),
    }
}

/// Lists that are sets or maps are united.
fn joined<'a>(left: &RuleOperand<'a>, right: &RuleOperand<'a>, meter: &mut CostMeter) -> RuleResult<'a> {
    let all = |list: &RuleOperand<'a>| {
        (0..list.len().unwrap_or_default()).map_while(|at| list.item(at)).collect::<Vec<_>>()
    };
    let (mut items, added) = (all(left), all(right));
    meter.charge(u64::try_from(items.len() + added.len()).unwrap_or(u64::MAX))?;
    let keys = left.list_keys();
    for item in added {
        let mut at = None;
        if matches!(left.list_type(), "set" | "map") {
            for (place, known) in items.iter().enumerate() {
                if is_same_item(known, &item, keys, meter)? {
                    at = Some(place);
                    break;
                }
            }
        }
        match at.and_then(|at| items.get_mut(at)) {
            Some(known) => *known = item,
            None => items.push(item),
        }
    }
    Ok(RuleOperand::List(Rc::new(items)))
}

fn is_same_item(
    one: &RuleOperand<'_>,
    other: &RuleOperand<'_>,
    keys: &[serde_json::Value],
    meter: &mut CostMeter,
) -> Result<bool, RuleFault> {
    if keys.is_empty() {
        return equal(one, other, meter);
    }
    for key in keys.iter().filter_map(serde_json::Value::as_str) {
        let key = |item: &RuleOperand<'_>| match item {
            RuleOperand::Object(object) => object.fields.get(key).cloned(),
            _ => None,
        };
        meter.charge(STEP)?;
        if key(one) != key(other) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn negated<'a>(value: &RuleOperand<'a>) -> RuleResult<'a> {
    match value {
        RuleOperand::Int(number) => number.checked_neg().map(RuleOperand::Int).ok_or_else(overflow),
        RuleOperand::Double(number) => Ok(RuleOperand::Double(-number)),
        _ => Err(RuleFault::NoOverload),
    }
}

fn overflow() -> RuleFault {
    RuleFault::Message("integer overflow".to_owned())
}

/// An operation on two whole numbers of one type; nothing where it overflows.
macro_rules! whole {
    ($name:expr, $left:expr, $right:expr) => {
        match $name {
            "_/_" | "_%_" if *$right == 0 => return Err(by_zero($name)),
            "_+_" => $left.checked_add(*$right),
            "_-_" => $left.checked_sub(*$right),
            "_*_" => $left.checked_mul(*$right),
            "_/_" => $left.checked_div(*$right),
            _ => $left.checked_rem(*$right),
        }
    };
}

fn computed<'a>(name: &str, left: &RuleOperand<'a>, right: &RuleOperand<'a>) -> RuleResult<'a> {
    match (left, right) {
        (RuleOperand::Int(left), RuleOperand::Int(right)) => {
            whole!(name, left, right).map(RuleOperand::Int).ok_or_else(overflow)
        }
        (RuleOperand::UInt(left), RuleOperand::UInt(right)) => {
            whole!(name, left, right).map(RuleOperand::UInt).ok_or_else(overflow)
        }
        (RuleOperand::Double(left), RuleOperand::Double(right)) => match name {
            "_+_" => Ok(RuleOperand::Double(left + right)),
            "_-_" => Ok(RuleOperand::Double(left - right)),
            "_*_" => Ok(RuleOperand::Double(left * right)),
            "_/_" => Ok(RuleOperand::Double(left / right)),
            _ => Err(RuleFault::NoOverload),
        },
        // Times and durations.
        (RuleOperand::Other(left), RuleOperand::Other(right)) => {
            let (left, right) = (left.clone(), right.clone());
            let found = match name {
                "_+_" => left + right,
                "_-_" => left - right,
                _ => return Err(RuleFault::NoOverload),
            };
            found.map(library::value).map_err(|error| RuleFault::of(&error))
        }
        _ => Err(RuleFault::NoOverload),
    }
}

fn by_zero(name: &str) -> RuleFault {
    RuleFault::Message(if name == "_/_" { "division by zero" } else { "modulus by zero" }.to_owned())
}
