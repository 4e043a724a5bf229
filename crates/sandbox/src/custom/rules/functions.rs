//! Functions that know the values as they stand in the object; all others are those of the library.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use kube_cel::cel::Value as Cel;
use kube_cel::cel::common::ast::CallExpr;
use regex::{Regex, RegexBuilder};

use super::cost_meter::{CostMeter, STEP};
use super::fault::RuleFault;
use super::value::{RuleOperand, RuleResult, optional};
use super::{library, syntax};

const NATIVE: &[&str] = &[
    "size",
    "type",
    "dyn",
    "startsWith",
    "endsWith",
    "contains",
    "matches",
    "hasValue",
    "value",
    "or",
    "orValue",
    "bool",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
];

pub(super) fn is_native(call: &CallExpr) -> bool {
    NATIVE.contains(&call.func_name.as_str())
        || syntax::qualified(call).is_some_and(|name| NATIVE.contains(&name.as_str()))
}

/// `optional.of(x)` and its kin.
pub(super) fn of_optional<'a>(name: &str, arguments: &[RuleOperand<'a>]) -> Option<RuleOperand<'a>> {
    match (name, arguments) {
        ("optional.none", []) => Some(RuleOperand::Optional(None)),
        ("optional.of", [one]) => Some(optional(Some(one.clone()))),
        ("optional.ofNonZeroValue", [one]) => Some(optional((!one.is_zero()).then(|| one.clone()))),
        _ => None,
    }
}

pub(super) fn call<'a>(
    name: &str,
    target: Option<&RuleOperand<'a>>,
    arguments: &[RuleOperand<'a>],
    meter: &mut CostMeter,
) -> RuleResult<'a> {
    match (name, target, arguments) {
        ("size", Some(one), []) | ("size", None, [one]) => size(one, meter),
        ("type", None, [one]) => Ok(RuleOperand::Type(one.type_name())),
        ("dyn", None, [one]) => Ok(one.clone()),
        ("startsWith", Some(RuleOperand::Text(text)), [RuleOperand::Text(part)]) => {
            meter.charge_bytes(part.len())?;
            Ok(RuleOperand::Bool(text.starts_with(&**part)))
        }
        ("endsWith", Some(RuleOperand::Text(text)), [RuleOperand::Text(part)]) => {
            meter.charge_bytes(part.len())?;
            Ok(RuleOperand::Bool(text.ends_with(&**part)))
        }
        ("contains", Some(RuleOperand::Text(text)), [RuleOperand::Text(part)]) => {
            meter.charge_bytes(text.len() * part.len().div_ceil(10))?;
            Ok(RuleOperand::Bool(text.contains(&**part)))
        }
        ("matches", Some(RuleOperand::Text(text)), [RuleOperand::Text(pattern)])
        | ("matches", None, [RuleOperand::Text(text), RuleOperand::Text(pattern)]) => {
            matches(text, pattern, meter)
        }
        ("hasValue", Some(RuleOperand::Optional(inside)), []) => Ok(RuleOperand::Bool(inside.is_some())),
        ("value", Some(RuleOperand::Optional(inside)), []) => match inside {
            Some(inside) => Ok(RuleOperand::clone(inside)),
            None => Err(RuleFault::Message("optional.none() dereference".to_owned())),
        },
        ("or", Some(one @ RuleOperand::Optional(inside)), [other @ RuleOperand::Optional(_)]) => {
            Ok(if inside.is_some() { one.clone() } else { other.clone() })
        }
        ("orValue", Some(RuleOperand::Optional(inside)), [other]) => {
            Ok(inside.as_ref().map_or_else(|| other.clone(), |inside| RuleOperand::clone(inside)))
        }
        ("string", None, [one]) if let Some(text) = text_of(one) => Ok(RuleOperand::made(text)),
        ("bool", None, [one @ RuleOperand::Bool(_)]) => Ok(one.clone()),
        ("bool", None, [RuleOperand::Text(text)]) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(RuleOperand::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(RuleOperand::Bool(false)),
            _ => Err(RuleFault::Message("type conversion error from 'string' to 'bool'".to_owned())),
        },
        ("int", None, [RuleOperand::Other(Cel::Timestamp(time))]) => Ok(RuleOperand::Int(time.timestamp())),
        ("isQuantity", None, [RuleOperand::Text(text)]) if text.contains(char::is_whitespace) => {
            Ok(RuleOperand::Bool(false))
        }
        ("quantity", None, [RuleOperand::Text(text)]) if text.contains(char::is_whitespace) => {
            Err(RuleFault::Message("quantities must match a regular expression".to_owned()))
        }
        ("format", Some(text), [values]) => {
            let values = (0..values.len().unwrap_or_default()).map_while(|at| values.item(at));
            let is_text = |text: &str| text.split('%').skip(1).all(|verb| verb.starts_with('s'));
            let writes_text = matches!(text, RuleOperand::Text(text) if is_text(text));
            let values = values.map(|value| match (text_of(&value), &value) {
                (Some(text), _) => RuleOperand::made(text),
                (None, RuleOperand::Double(number)) if writes_text => RuleOperand::made(number.to_string()),
                _ => value,
            });
            library::call(name, Some(text), &[RuleOperand::List(Rc::new(values.collect()))], meter)
        }
        _ if NATIVE.contains(&name) => Err(RuleFault::NoOverload),
        _ => library::call(name, target, arguments, meter),
    }
}

/// Conversions to text that differ between the library and a server.
fn text_of(value: &RuleOperand<'_>) -> Option<String> {
    match value {
        RuleOperand::Bool(truth) => Some(truth.to_string()),
        RuleOperand::Other(Cel::Timestamp(time)) => Some(time.to_rfc3339().replace("+00:00", "Z")),
        RuleOperand::Other(Cel::Duration(time)) => {
            #[expect(clippy::cast_precision_loss, reason = "seconds are written as a fraction, as in Go")]
            let seconds = time.num_nanoseconds()? as f64 / 1e9;
            Some(format!("{seconds}s"))
        }
        _ => None,
    }
}

fn size<'a>(value: &RuleOperand<'a>, meter: &mut CostMeter) -> RuleResult<'a> {
    let size = match value {
        RuleOperand::Text(text) => {
            meter.charge_bytes(text.len() / 10)?;
            text.chars().count()
        }
        RuleOperand::Other(Cel::Bytes(bytes)) => bytes.len(),
        other => other.len().ok_or(RuleFault::NoOverload)?,
    };
    Ok(RuleOperand::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

/// The size limit of a compiled pattern, in bytes.
const LARGEST: usize = 1024 * 1024;
/// As many patterns are kept compiled on each thread.
const KEPT: usize = 200;

thread_local! {
    static PATTERNS: RefCell<HashMap<String, Result<Rc<Regex>, RuleFault>>> = RefCell::default();
}

fn matches<'a>(text: &str, pattern: &str, meter: &mut CostMeter) -> RuleResult<'a> {
    let places = u64::try_from(pattern.len().div_ceil(4)).unwrap_or(u64::MAX);
    let length = u64::try_from(text.len() + 1).unwrap_or(u64::MAX);
    meter.charge(STEP.saturating_add(places.saturating_mul(length)))?;
    let regex = PATTERNS.with_borrow_mut(|patterns| {
        if let Some(known) = patterns.get(pattern) {
            return known.clone();
        }
        if patterns.len() >= KEPT {
            patterns.clear();
        }
        let made = RegexBuilder::new(&of_ascii(pattern)).size_limit(LARGEST).build();
        let made = made.map(Rc::new).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => RuleFault::Unsupported("a pattern is too large".to_owned()),
            _ => RuleFault::Message(format!("error parsing regexp: `{pattern}`")),
        });
        patterns.insert(pattern.to_owned(), made.clone());
        made
    });
    Ok(RuleOperand::Bool(regex?.is_match(text)))
}

/// The classes of Go know ASCII alone, those of Rust the letters and digits of all the world; and Rust has classes in
/// classes, and `&&` and `~~` between them.
fn of_ascii(pattern: &str) -> String {
    let (mut made, mut is_in_class) = (String::with_capacity(pattern.len()), false);
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '[' if !is_in_class => is_in_class = true,
            '[' if letters.peek() != Some(&':') => made.push('\\'),
            '&' | '~' if is_in_class => made.push('\\'),
            ']' => is_in_class = false,
            _ => {}
        }
        if letter != '\\' {
            made.push(letter);
            continue;
        }
        let escaped = letters.next();
        let class = match escaped {
            Some('d' | 'D') => "0-9",
            Some('w' | 'W') => "0-9A-Za-z_",
            Some('s' | 'S') => r"\t\n\f\r ",
            _ => "",
        };
        match (escaped, class, is_in_class) {
            (Some('b'), _, false) => made.push_str(r"(?-u:\b)"),
            (Some('d' | 'w' | 's'), class, true) => made.push_str(class),
            (Some('d' | 'w' | 's'), class, false) => made.extend(["[", class, "]"]),
            (Some('D' | 'W' | 'S'), class, false) => made.extend(["[^", class, "]"]),
            (escaped, _, _) => made.extend(std::iter::once('\\').chain(escaped)),
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_know_ascii_alone() {
        for (pattern, matched, unmatched) in [
            (r"^\w+$", "a_1", "größe"),
            (r"^[\w.-]+$", "a.b-c", "ü"),
            (r"^\d{2}$", "12", "١٢"),
            (r"^\D$", "x", "1"),
            (r"a\sb", "a b", "a\u{a0}b"),
            (r"^\\d$", r"\d", "1"),
            (r"\bword\b", "a word", "sword"),
            (r"^[^\]]+$", "a", "]"),
            (r"^[a[&&~]+$", "a[&~", "b"),
            (r"^[[:digit:]]+$", "1", "a"),
        ] {
            let regex = Regex::new(&of_ascii(pattern)).unwrap();
            assert!(regex.is_match(matched) && !regex.is_match(unmatched), "{pattern}");
        }
    }
}
