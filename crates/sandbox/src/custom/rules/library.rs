//! The functions of `kube_cel` on values of expressions, and what they cost.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use kube_cel::cel::Value as Cel;
use kube_cel::cel::objects::{Key, Map, OptionalValue};

use super::cost_meter::{CostMeter, STEP};
use super::crate_call::{PLACES, UNKNOWN, run};
use super::fault::RuleFault;
use super::value::{RuleOperand, RuleResult};

pub(super) fn call<'a>(
    name: &str,
    target: Option<&RuleOperand<'a>>,
    arguments: &[RuleOperand<'a>],
    meter: &mut CostMeter,
) -> RuleResult<'a> {
    if UNKNOWN.contains(&name) || arguments.len() >= PLACES.len() {
        return Err(RuleFault::Unsupported(format!("there is no function `{name}`")));
    }
    let target = target.map(|target| plain(target, meter)).transpose()?;
    let arguments = arguments.iter().map(|one| plain(one, meter)).collect::<Result<Vec<_>, _>>()?;
    charge(name, target.as_ref(), &arguments, meter)?;
    let made = run(name, target, arguments)?;
    meter.charge(STEP.saturating_add(weight(&made)))?;
    Ok(value(made))
}

/// The cost of functions that read their arguments repeatedly, or write more than they read.
fn charge(
    name: &str,
    target: Option<&Cel>,
    arguments: &[Cel],
    meter: &mut CostMeter,
) -> Result<(), RuleFault> {
    let weights: Vec<u64> = target.into_iter().chain(arguments).map(weight).collect();
    let product = weights.iter().fold(1_u64, |product, one| product.saturating_mul(one + 1));
    let total = weights.iter().fold(0_u64, |total, one| total.saturating_add(*one));
    let text = |value: Option<&Cel>| match value {
        Some(Cel::String(text)) => Arc::clone(text),
        _ => Arc::default(),
    };
    meter.charge(match name {
        "indexOf" | "lastIndexOf" | "sets.contains" | "sets.equivalent" | "sets.intersects" | "join" => {
            product
        }
        "distinct" | "sort" => total.saturating_mul(total),
        "replace" => total.saturating_mul(weights.last().map_or(1, |one| one + 1)),
        // `%.65535f` writes as many decimals.
        "format" => {
            let text = text(target);
            let decimals = text.split("%.").skip(1).map(|rest| {
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                digits.parse::<u64>().unwrap_or(u64::from(u16::MAX)) + 310
            });
            decimals.fold(total, u64::saturating_add)
        }
        "find" | "findAll" => {
            // It is compiled anew in each call.
            places_of(&text(arguments.first())).saturating_mul(total.saturating_add(COMPILED))
        }
        _ => total,
    })
}

/// The cost of compiling one position of a pattern.
const COMPILED: u64 = 100;

/// The cost of compiling a pattern.
pub(super) fn compiling(pattern: &str) -> u64 {
    places_of(pattern).saturating_mul(COMPILED)
}

/// How many places a pattern has: counts multiply what it holds.
fn places_of(pattern: &str) -> u64 {
    let counts = pattern.split('{').skip(1).filter_map(|rest| {
        let inside = rest.split('}').next()?;
        inside.split(',').filter_map(|number| number.trim().parse::<u64>().ok()).max()
    });
    let length = u64::try_from(pattern.len()).unwrap_or(u64::MAX);
    counts.fold(length, |all, count| all.saturating_mul(count.max(1)))
}

/// Bytes, and one for each value.
fn weight(value: &Cel) -> u64 {
    let bytes = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    match value {
        Cel::String(text) => 1 + bytes(text.len()),
        Cel::Bytes(data) => 1 + bytes(data.len()),
        Cel::List(items) => items.iter().fold(1, |sum, item| weight(item).saturating_add(sum)),
        Cel::Map(map) => map.map.values().fold(1, |sum, item| weight(item).saturating_add(sum)),
        _ => 1,
    }
}

/// A copy for the crate.
fn plain(value: &RuleOperand<'_>, meter: &mut CostMeter) -> Result<Cel, RuleFault> {
    meter.charge(1)?;
    Ok(match value {
        RuleOperand::Null => Cel::Null,
        RuleOperand::Bool(truth) => Cel::Bool(*truth),
        RuleOperand::Int(number) => Cel::Int(*number),
        RuleOperand::UInt(number) => Cel::UInt(*number),
        RuleOperand::Double(number) => Cel::Float(*number),
        RuleOperand::Text(text) => {
            meter.charge_bytes(text.len())?;
            Cel::String(Arc::new(text.to_string()))
        }
        RuleOperand::Other(other) => other.clone(),
        RuleOperand::Array { .. } | RuleOperand::List(_) => {
            let items = (0..value.len().unwrap_or_default()).map_while(|at| value.item(at));
            let items = items.map(|item| plain(&item, meter)).collect::<Result<Vec<_>, _>>()?;
            Cel::List(Arc::new(items))
        }
        RuleOperand::Object(_) | RuleOperand::Map(_) => {
            let mut map = HashMap::new();
            for (name, value) in value.pairs().unwrap_or_default() {
                let name = match name {
                    RuleOperand::Text(text) => Key::String(Arc::new(text.to_string())),
                    RuleOperand::Int(number) => Key::Int(number),
                    RuleOperand::UInt(number) => Key::Uint(number),
                    RuleOperand::Bool(truth) => Key::Bool(truth),
                    _ => return Err(RuleFault::NoOverload),
                };
                map.insert(name, plain(&value, meter)?);
            }
            Cel::Map(Map { map: Arc::new(map) })
        }
        RuleOperand::Optional(_) | RuleOperand::Type(_) => return Err(RuleFault::NoOverload),
    })
}

pub(super) fn value<'a>(made: Cel) -> RuleOperand<'a> {
    match made {
        Cel::Null => RuleOperand::Null,
        Cel::Bool(truth) => RuleOperand::Bool(truth),
        Cel::Int(number) => RuleOperand::Int(number),
        Cel::UInt(number) => RuleOperand::UInt(number),
        Cel::Float(number) => RuleOperand::Double(number),
        Cel::String(text) => RuleOperand::made(text.as_str()),
        Cel::List(items) => RuleOperand::List(Rc::new(items.iter().cloned().map(value).collect())),
        Cel::Map(map) => {
            let entry = |(key, item): (&Key, &Cel)| (value(Cel::from(key)), value(item.clone()));
            RuleOperand::Map(Rc::new(map.map.iter().map(entry).collect()))
        }
        Cel::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>() {
            Some(inside) => {
                RuleOperand::Optional(inside.value().cloned().map(|inside| Rc::new(value(inside))))
            }
            None => RuleOperand::Other(Cel::Opaque(opaque)),
        },
        other => RuleOperand::Other(other),
    }
}
