//! Operators of two values.

use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use kube_cel::cel::Value as Cel;

use super::evaluate::{Fault, Outcome, no_such_key};
use super::library;
use super::meter::{Meter, STEP};
use super::value::Val;

pub(super) fn binary<'a>(name: &str, left: &Val<'a>, right: &Val<'a>, meter: &mut Meter) -> Outcome<'a> {
    match name {
        "_==_" => Ok(Val::Bool(equal(left, right, meter)?)),
        "_!=_" => Ok(Val::Bool(!equal(left, right, meter)?)),
        "_<_" => ordered(left, right, meter, Ordering::is_lt),
        "_<=_" => ordered(left, right, meter, Ordering::is_le),
        "_>_" => ordered(left, right, meter, Ordering::is_gt),
        "_>=_" => ordered(left, right, meter, Ordering::is_ge),
        "@in" => within(left, right, meter),
        "_+_" => sum(left, right, meter),
        "_-_" | "_*_" | "_/_" | "_%_" => computed(name, left, right),
        other => Err(Fault::Unsupported(format!("there is no operator `{other}`"))),
    }
}

/// Values of different types are not equal, but for numbers.
pub(super) fn equal(left: &Val<'_>, right: &Val<'_>, meter: &mut Meter) -> Result<bool, Fault> {
    meter.charge(1)?;
    if left.is_list() && right.is_list() {
        return equal_lists(left, right, meter);
    }
    Ok(match (left, right) {
        (Val::Null, Val::Null) | (Val::Optional(None), Val::Optional(None)) => true,
        (Val::Bool(left), Val::Bool(right)) => left == right,
        (Val::Text(left), Val::Text(right)) => {
            meter.charge_bytes(left.len().min(right.len()))?;
            **left == **right
        }
        (Val::Type(left), Val::Type(right)) => left == right,
        (Val::Optional(Some(left)), Val::Optional(Some(right))) => equal(left, right, meter)?,
        (Val::Other(left), Val::Other(right)) => left == right,
        (Val::Object(_) | Val::Map(_), Val::Object(_) | Val::Map(_)) => equal_maps(left, right, meter)?,
        _ => compared_numbers(left, right) == Some(Ordering::Equal),
    })
}

fn equal_lists(left: &Val<'_>, right: &Val<'_>, meter: &mut Meter) -> Result<bool, Fault> {
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
                .try_fold(false, |found, one| Ok::<_, Fault>(found || equal(&one, &other, meter)?))?)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(left: &Val<'_>, right: &Val<'_>, meter: &mut Meter) -> Result<bool, Fault> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for (key, value) in left.pairs().unwrap_or_default() {
        meter.charge(STEP)?;
        match index(right, &key, meter) {
            Ok(other) if equal(&value, &other, meter)? => {}
            Err(Fault::Cost) => return Err(Fault::Cost),
            _ => return Ok(false),
        }
    }
    Ok(true)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of different types compare as floats, as in CEL")]
fn compared_numbers(left: &Val<'_>, right: &Val<'_>) -> Option<Ordering> {
    match (left, right) {
        (Val::Int(left), Val::Int(right)) => Some(left.cmp(right)),
        (Val::UInt(left), Val::UInt(right)) => Some(left.cmp(right)),
        (Val::Double(left), Val::Double(right)) => left.partial_cmp(right),
        (Val::Int(left), Val::UInt(right)) => {
            Some(u64::try_from(*left).map_or(Ordering::Less, |left| left.cmp(right)))
        }
        (Val::UInt(left), Val::Int(right)) => {
            Some(u64::try_from(*right).map_or(Ordering::Greater, |right| left.cmp(&right)))
        }
        (Val::Int(left), Val::Double(right)) => (*left as f64).partial_cmp(right),
        (Val::Double(left), Val::Int(right)) => left.partial_cmp(&(*right as f64)),
        (Val::UInt(left), Val::Double(right)) => (*left as f64).partial_cmp(right),
        (Val::Double(left), Val::UInt(right)) => left.partial_cmp(&(*right as f64)),
        _ => None,
    }
}

pub(super) fn compared(left: &Val<'_>, right: &Val<'_>, meter: &mut Meter) -> Result<Ordering, Fault> {
    let found = match (left, right) {
        (Val::Text(left), Val::Text(right)) => {
            meter.charge_bytes(left.len().min(right.len()))?;
            Some(left.cmp(&**right))
        }
        (Val::Bool(left), Val::Bool(right)) => Some(left.cmp(right)),
        (Val::Other(Cel::Bytes(left)), Val::Other(Cel::Bytes(right))) => Some(left.cmp(right)),
        (Val::Other(left), Val::Other(right)) => left.partial_cmp(right),
        _ => compared_numbers(left, right),
    };
    found.ok_or(Fault::NoOverload)
}

fn ordered<'a>(
    left: &Val<'a>,
    right: &Val<'a>,
    meter: &mut Meter,
    fits: fn(Ordering) -> bool,
) -> Outcome<'a> {
    match (left, right) {
        (Val::Double(one), _) | (_, Val::Double(one)) if one.is_nan() => Ok(Val::Bool(false)),
        _ => Ok(Val::Bool(fits(compared(left, right, meter)?))),
    }
}

fn within<'a>(one: &Val<'a>, all: &Val<'a>, meter: &mut Meter) -> Outcome<'a> {
    match all {
        Val::Object(_) | Val::Map(_) => match index(all, one, meter) {
            Err(Fault::Cost) => Err(Fault::Cost),
            found => Ok(Val::Bool(found.is_ok())),
        },
        Val::Array { .. } | Val::List(_) => {
            for at in 0..all.len().unwrap_or_default() {
                if all.item(at).map(|item| equal(&item, one, meter)).transpose()? == Some(true) {
                    return Ok(Val::Bool(true));
                }
            }
            Ok(Val::Bool(false))
        }
        _ => Err(Fault::NoOverload),
    }
}

/// Bytes of Go: `%v` of a key.
fn shown(key: &Val<'_>) -> String {
    match key {
        Val::Text(text) => text.to_string(),
        Val::Int(number) => number.to_string(),
        Val::UInt(number) => number.to_string(),
        Val::Bool(truth) => truth.to_string(),
        other => other.type_name().to_owned(),
    }
}

/// `list[0]`, `map['key']`
pub(super) fn index<'a>(value: &Val<'a>, key: &Val<'a>, meter: &mut Meter) -> Outcome<'a> {
    let found = match (value, key) {
        (Val::Array { .. } | Val::List(_), key) => {
            let at = match key {
                Val::Int(at) => usize::try_from(*at).ok(),
                Val::UInt(at) => usize::try_from(*at).ok(),
                _ => return Err(Fault::NoOverload),
            };
            let item = at.and_then(|at| value.item(at));
            return item.ok_or_else(|| Fault::Message(format!("index out of bounds: {}", shown(key))));
        }
        (Val::Object(object), Val::Text(name)) => object.get(name),
        (Val::Map(entries), key) => {
            meter.charge(u64::try_from(entries.len()).unwrap_or(u64::MAX))?;
            let same = |known: &Val<'_>| match (known, key) {
                (Val::Text(known), Val::Text(key)) => **known == **key,
                (Val::Bool(known), Val::Bool(key)) => known == key,
                (known, key) => compared_numbers(known, key) == Some(Ordering::Equal),
            };
            entries.iter().rev().find(|(known, _)| same(known)).map(|(_, value)| value.clone())
        }
        (Val::Object(_), _) => None,
        _ => return Err(Fault::NoOverload),
    };
    found.ok_or_else(|| no_such_key(&shown(key)))
}

fn sum<'a>(left: &Val<'a>, right: &Val<'a>, meter: &mut Meter) -> Outcome<'a> {
    match (left, right) {
        (Val::Text(left), Val::Text(right)) => {
            meter.charge_bytes(left.len() + right.len())?;
            Ok(Val::made([&**left, &**right].concat()))
        }
        (Val::Other(Cel::Bytes(left)), Val::Other(Cel::Bytes(right))) => {
            meter.charge_bytes(left.len() + right.len())?;
            Ok(Val::Other(Cel::Bytes(Arc::new([left.as_slice(), right].concat()))))
        }
        (left, right) if left.is_list() && right.is_list() => joined(left, right, meter),
        _ => computed("_+_", left, right),
    }
}

/// Lists that are sets or maps are united.
fn joined<'a>(left: &Val<'a>, right: &Val<'a>, meter: &mut Meter) -> Outcome<'a> {
    let all = |list: &Val<'a>| {
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
    Ok(Val::List(Rc::new(items)))
}

fn is_same_item(
    one: &Val<'_>,
    other: &Val<'_>,
    keys: &[serde_json::Value],
    meter: &mut Meter,
) -> Result<bool, Fault> {
    if keys.is_empty() {
        return equal(one, other, meter);
    }
    for key in keys.iter().filter_map(serde_json::Value::as_str) {
        let key = |item: &Val<'_>| match item {
            Val::Object(object) => object.fields.get(key).cloned(),
            _ => None,
        };
        meter.charge(STEP)?;
        if key(one) != key(other) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn negated<'a>(value: &Val<'a>) -> Outcome<'a> {
    match value {
        Val::Int(number) => number.checked_neg().map(Val::Int).ok_or_else(overflow),
        Val::Double(number) => Ok(Val::Double(-number)),
        _ => Err(Fault::NoOverload),
    }
}

fn overflow() -> Fault {
    Fault::Message("integer overflow".to_owned())
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

fn computed<'a>(name: &str, left: &Val<'a>, right: &Val<'a>) -> Outcome<'a> {
    match (left, right) {
        (Val::Int(left), Val::Int(right)) => whole!(name, left, right).map(Val::Int).ok_or_else(overflow),
        (Val::UInt(left), Val::UInt(right)) => whole!(name, left, right).map(Val::UInt).ok_or_else(overflow),
        (Val::Double(left), Val::Double(right)) => match name {
            "_+_" => Ok(Val::Double(left + right)),
            "_-_" => Ok(Val::Double(left - right)),
            "_*_" => Ok(Val::Double(left * right)),
            "_/_" => Ok(Val::Double(left / right)),
            _ => Err(Fault::NoOverload),
        },
        // Times and durations.
        (Val::Other(left), Val::Other(right)) => {
            let (left, right) = (left.clone(), right.clone());
            let found = match name {
                "_+_" => left + right,
                "_-_" => left - right,
                _ => return Err(Fault::NoOverload),
            };
            found.map(library::value).map_err(|error| library::fault(&error))
        }
        _ => Err(Fault::NoOverload),
    }
}

fn by_zero(name: &str) -> Fault {
    Fault::Message(if name == "_/_" { "division by zero" } else { "modulus by zero" }.to_owned())
}
