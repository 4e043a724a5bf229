//! Functions that are evaluated here: those that most expressions call, and those that take or give optional values.

use std::rc::Rc;

use kube_cel::cel::Value as Other;
use regex::{Regex, RegexBuilder};

use super::library::LibraryCall;
use super::meter::{Failure, Meter};
use super::optional;
use super::pattern::{Pattern, of_re2};
use super::tree::{Literal, Node};
use super::value::Value;

/// What `type(x)` is compared with.
pub const TYPES: [&str; 12] = [
    "bool",
    "bytes",
    "double",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];

#[derive(Debug)]
pub enum Native {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    /// `None`: the pattern is computed.
    Matches(Option<Regex>),
    Dyn,
    Type,
    Bool,
    Text(LibraryCall),
    /// A format that there may be.
    NamedFormat(LibraryCall),
    OptionalOf,
    OptionalOfNonZero,
    OptionalNone,
    HasValue,
    ValueOf,
    Or,
    OrValue,
}

/// The names of [`native`] that the library does not have.
pub const OWN: [&str; 5] = ["bool", "dyn", "optMap", "optFlatMap", "type"];

/// `None`: it is not one of these. Of a method, the first argument is what it is called of.
pub fn native(name: &str, is_method: bool, args: &[Node]) -> Option<Result<Native, String>> {
    let method = |native: Native, count: usize| match (is_method, args.len() == count + 1) {
        (true, true) => Ok(native),
        (true, false) => Err(format!("`{name}` takes {count} arguments")),
        (false, _) => Err(format!("`{name}` is called of a value: x.{name}()")),
    };
    let global = |native: Native, count: usize| match args.len() == count {
        true => Ok(native),
        false => Err(format!("`{name}` takes {count} arguments")),
    };
    Some(match name {
        "size" => global(Native::Size, 1),
        "contains" => method(Native::Contains, 1),
        "startsWith" => method(Native::StartsWith, 1),
        "endsWith" => method(Native::EndsWith, 1),
        "matches" => match args.get(1) {
            Some(Node::Literal(Literal::Text(pattern))) => {
                compiled(pattern).and_then(|regex| global(Native::Matches(Some(regex)), 2))
            }
            _ => global(Native::Matches(None), 2),
        },
        "dyn" => global(Native::Dyn, 1),
        "type" => global(Native::Type, 1),
        "bool" => global(Native::Bool, 1),
        "string" if args.len() == 1 && !is_method => match LibraryCall::of(name, false, 1) {
            Some(library) => Ok(Native::Text(library)),
            None => return None,
        },
        "format.named" if args.len() == 1 => match LibraryCall::of(name, false, 1) {
            Some(library) => Ok(Native::NamedFormat(library)),
            None => return None,
        },
        "optional.of" => global(Native::OptionalOf, 1),
        "optional.ofNonZeroValue" => global(Native::OptionalOfNonZero, 1),
        "optional.none" => global(Native::OptionalNone, 0),
        "hasValue" => method(Native::HasValue, 0),
        "value" => method(Native::ValueOf, 0),
        "or" => method(Native::Or, 1),
        "orValue" => method(Native::OrValue, 1),
        _ => return None,
    })
}

/// Within a size, or one of a few bytes fills the memory.
fn compiled(pattern: &str) -> Result<Regex, String> {
    const MOST: usize = 4 * 1024 * 1024;
    let regex = RegexBuilder::new(&of_re2(pattern)).size_limit(MOST).dfa_size_limit(MOST).build();
    regex.map_err(|_| {
        format!("`{}` is no regular expression, or too large", crate::model::short_line(pattern, 60))
    })
}

impl Native {
    pub fn call<'a>(&self, args: Vec<Value<'a>>, meter: &mut Meter) -> Result<Value<'a>, Failure> {
        let mut args = args.into_iter();
        let (Some(first), second) = (args.next(), args.next()) else { return Ok(Value::Optional(None)) };
        let texts = |name| match (first.as_str(), second.as_ref().and_then(Value::as_str)) {
            (Some(first), Some(second)) => Ok((first, second)),
            _ => Err(Failure::NoOverload(name)),
        };
        Ok(match self {
            Self::Size => {
                let size = match &first {
                    Value::Text(text) => {
                        meter.look(text.as_str().len())?;
                        text.as_str().chars().count()
                    }
                    Value::List(list) => list.len(),
                    Value::Map(map) => map.len(),
                    Value::Other(Other::Bytes(bytes)) => bytes.len(),
                    _ => return Err(Failure::NoOverload("size")),
                };
                Value::Int(i64::try_from(size).unwrap_or(i64::MAX))
            }
            Self::Contains => {
                let (text, part) = texts("contains")?;
                meter.look(text.len() + part.len())?;
                Value::Bool(text.contains(part))
            }
            Self::StartsWith => {
                let (text, part) = texts("startsWith")?;
                meter.look(part.len())?;
                Value::Bool(text.starts_with(part))
            }
            Self::EndsWith => {
                let (text, part) = texts("endsWith")?;
                meter.look(part.len())?;
                Value::Bool(text.ends_with(part))
            }
            Self::Matches(known) => {
                let (text, pattern) = texts("matches")?;
                let cost = Pattern::of(pattern);
                meter.steps(steps(matching(text, cost)))?;
                match known {
                    Some(regex) => Value::Bool(regex.is_match(text)),
                    None => {
                        meter.steps(steps(cost.compiling))?;
                        let regex = compiled(pattern).map_err(|why| Failure::Said(why.into()))?;
                        Value::Bool(regex.is_match(text))
                    }
                }
            }
            Self::Dyn => first,
            Self::Type => Value::Type(first.type_name()),
            Self::Bool => match (&first, first.as_str()) {
                (Value::Bool(it), _) => Value::Bool(*it),
                (_, Some("true" | "True" | "TRUE" | "t" | "1")) => Value::Bool(true),
                (_, Some("false" | "False" | "FALSE" | "f" | "0")) => Value::Bool(false),
                _ => return Err(Failure::NoOverload("bool")),
            },
            Self::Text(library) => match &first {
                Value::Text(_) => first,
                Value::Bool(it) => Value::text(if *it { "true" } else { "false" }, meter)?,
                Value::Int(it) => Value::text(&it.to_string(), meter)?,
                _ => library.call(&[first], meter)?,
            },
            Self::NamedFormat(library) => match library.call(&[first], meter) {
                Ok(Value::Optional(found)) => Value::Optional(found),
                Ok(found) => Value::some(found),
                Err(Failure::Said(_)) => Value::Optional(None),
                Err(failure) => return Err(failure),
            },
            Self::OptionalOf => Value::some(first),
            Self::OptionalOfNonZero if optional::is_zero(&first) => Value::Optional(None),
            Self::OptionalOfNonZero => Value::some(first),
            Self::OptionalNone => Value::Optional(None),
            Self::HasValue => Value::Bool(inner(first, "hasValue")?.is_some()),
            Self::ValueOf => match inner(first, "value")? {
                Some(value) => (*value).clone(),
                None => return Err(Failure::Said("an optional value is not there; use orValue".into())),
            },
            Self::Or => match (inner(first, "or")?, second) {
                (Some(value), _) => Value::Optional(Some(value)),
                (None, Some(Value::Optional(other))) => Value::Optional(other),
                _ => return Err(Failure::NoOverload("or")),
            },
            Self::OrValue => match (inner(first, "orValue")?, second) {
                (Some(value), _) => (*value).clone(),
                (None, Some(other)) => other,
                (None, None) => return Err(Failure::NoOverload("orValue")),
            },
        })
    }
}

fn inner<'a>(value: Value<'a>, name: &'static str) -> Result<Option<Rc<Value<'a>>>, Failure> {
    match value {
        Value::Optional(inner) => Ok(inner),
        _ => Err(Failure::NoOverload(name)),
    }
}

/// At worst each place of the pattern is looked at for each letter.
pub fn matching(text: &str, pattern: Pattern) -> f64 {
    const PLACES: f64 = 256.0;
    #[expect(clippy::cast_precision_loss, reason = "a bound need not be exact")]
    let letters = 1.0 + text.len() as f64;
    1.0 + letters * (1.0 + pattern.places) / PLACES
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive bound")]
pub fn steps(cost: f64) -> u64 {
    cost as u64
}
