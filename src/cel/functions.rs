//! Evaluates the most used functions natively, and those with optional values.

use std::rc::Rc;

use kube_cel::cel::Value as Other;
use regex::{Regex, RegexBuilder};

use super::clock::{self, Part};
use super::library::LibraryCall;
use super::meter::{Failure, Meter};
use super::optional;
use super::pattern::{Pattern, of_re2};
use super::tree::{Literal, Node};
use super::url::Url;
use super::value::{List, Map, Text, Value};
use super::written;

/// The names that `type(x)` compares with.
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
    /// The compiled pattern with its cost. `None`: the pattern is computed.
    Matches(Option<(Regex, Pattern)>),
    Dyn,
    Type,
    Bool,
    Text(LibraryCall),
    /// Returns an optional format.
    NamedFormat(LibraryCall),
    Format,
    Url,
    IsUrl,
    UrlPart(UrlPart),
    /// Durations have some of these fields too.
    TimePart(Part, LibraryCall),
    Int(LibraryCall),
    Timestamp(LibraryCall),
    OptionalOf,
    OptionalOfNonZero,
    OptionalNone,
    HasValue,
    ValueOf,
    Or,
    OrValue,
}

#[derive(Clone, Copy, Debug)]
pub enum UrlPart {
    Scheme,
    Host,
    Hostname,
    Port,
    EscapedPath,
    Query,
}

impl UrlPart {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "getScheme" => Self::Scheme,
            "getHost" => Self::Host,
            "getHostname" => Self::Hostname,
            "getPort" => Self::Port,
            "getEscapedPath" => Self::EscapedPath,
            "getQuery" => Self::Query,
            _ => return None,
        })
    }

    fn get<'a>(self, url: &Url, meter: &mut Meter) -> Result<Value<'a>, Failure> {
        meter.look(url.len())?;
        match self {
            Self::Scheme => Value::text(&url.scheme, meter),
            Self::Host => Value::text(&url.host, meter),
            Self::Hostname => Value::text(url.hostname(), meter),
            Self::Port => Value::text(url.port(), meter),
            Self::EscapedPath => Value::text(&url.escaped_path(), meter),
            Self::Query => {
                let mut entries = Vec::new();
                for (key, values) in url.query() {
                    let values = values.iter().map(|it| Value::text(it, meter)).collect::<Result<_, _>>()?;
                    let values = Value::List(List::Owned(Rc::new(values)));
                    entries.push((Value::text(&key, meter)?, values));
                }
                Ok(Value::Map(Map::Owned(Rc::new(entries))))
            }
        }
    }
}

/// Names of [`native`] that the library lacks.
pub const OWN: [&str; 5] = ["bool", "dyn", "optMap", "optFlatMap", "type"];

/// `None`: not a native function. The first argument of a method is its target.
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
            Some(Node::Literal(Literal::Text(pattern))) => compiled(pattern)
                .and_then(|regex| global(Native::Matches(Some((regex, Pattern::of(pattern)))), 2)),
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
        "format" => method(Native::Format, 1),
        "url" => global(Native::Url, 1),
        "isURL" => global(Native::IsUrl, 1),
        "int" if args.len() == 1 && !is_method => Native::Int(LibraryCall::of(name, false, 1)?).into_known(),
        "timestamp" if args.len() == 1 && !is_method => {
            Native::Timestamp(LibraryCall::of(name, false, 1)?).into_known()
        }
        _ if is_method && matches!(args.len(), 1 | 2) && Part::of(name).is_some() => {
            Native::TimePart(Part::of(name)?, LibraryCall::of(name, true, 1)?).into_known()
        }
        _ if UrlPart::of(name).is_some() => method(Native::UrlPart(UrlPart::of(name)?), 0),
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

/// Bounded: a pattern of a few bytes can fill the memory.
fn compiled(pattern: &str) -> Result<Regex, String> {
    const MOST: usize = 4 * 1024 * 1024;
    let regex = RegexBuilder::new(&of_re2(pattern)).size_limit(MOST).dfa_size_limit(MOST).build();
    regex.map_err(|_| {
        format!("`{}` is no regular expression, or too large", crate::model::short_line(pattern, 60))
    })
}

impl Native {
    fn into_known(self) -> Result<Self, String> {
        Ok(self)
    }

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
                    Value::Map(map) => map.len(meter)?,
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
                match known {
                    Some((regex, cost)) => {
                        meter.steps(steps(matching(text, *cost)))?;
                        Value::Bool(regex.is_match(text))
                    }
                    None => {
                        meter.look(pattern.len())?;
                        let cost = Pattern::of(pattern);
                        meter.steps(steps(matching(text, cost) + cost.compiling))?;
                        let regex = compiled(pattern).map_err(|why| Failure::Said(why.into()))?;
                        Value::Bool(regex.is_match(text))
                    }
                }
            }
            Self::Dyn => first,
            Self::Type => Value::Type(first.type_name()),
            Self::Bool => match (&first, first.as_str()) {
                (Value::Bool(it), _) => Value::Bool(*it),
                (_, Some("true" | "True" | "TRUE" | "t" | "T" | "1")) => Value::Bool(true),
                (_, Some("false" | "False" | "FALSE" | "f" | "F" | "0")) => Value::Bool(false),
                _ => return Err(Failure::NoOverload("bool")),
            },
            Self::Text(library) => match (&first, written::text(&first)) {
                (Value::Text(_), _) => first,
                (_, Some(text)) => Value::text(&text, meter)?,
                (_, None) => library.call(&[first], meter)?,
            },
            Self::Format => match (&first, second) {
                (Value::Text(template), Some(Value::List(args))) => {
                    meter.look(template.as_str().len())?;
                    let text = written::format(template.as_str(), &args, meter)?;
                    Value::Text(Text::Owned(text.into()))
                }
                _ => return Err(Failure::NoOverload("format")),
            },
            Self::Url | Self::IsUrl => {
                let text = first.as_str().ok_or(Failure::NoOverload("url"))?;
                meter.hold(text.len())?;
                match (self, Url::parse(text)) {
                    (Self::IsUrl, url) => Value::Bool(url.is_some()),
                    (_, Some(url)) => Value::Url(Rc::new(url)),
                    (_, None) => return Err(Failure::Said("it is no URL".into())),
                }
            }
            Self::UrlPart(part) => match &first {
                Value::Url(url) => part.get(url, meter)?,
                _ => return Err(Failure::NoOverload("a part of a URL")),
            },
            Self::TimePart(part, library) => match (&first, second) {
                (Value::Other(Other::Timestamp(at)), zone) => {
                    let zone = match &zone {
                        None => None,
                        Some(zone) => Some(zone.as_str().ok_or(Failure::NoOverload("a part of a time"))?),
                    };
                    let found = part.get(at.timestamp(), at.timestamp_subsec_nanos(), zone);
                    Value::Int(found.ok_or_else(|| Failure::Said("there is no such time zone".into()))?)
                }
                (_, None) => library.call(&[first], meter)?,
                _ => return Err(Failure::NoOverload("a part of a time")),
            },
            Self::Int(library) => match &first {
                Value::Other(Other::Timestamp(at)) => Value::Int(at.timestamp()),
                _ => library.call(&[first], meter)?,
            },
            Self::Timestamp(library) => match &first {
                Value::Int(seconds) => {
                    let text = clock::written(*seconds, 0, 0);
                    let text = text.ok_or_else(|| Failure::Said("it is no time".into()))?;
                    library.call(&[Value::text(&text, meter)?], meter)?
                }
                _ => library.call(&[first], meter)?,
            },
            Self::NamedFormat(library) => match library.call(&[first], meter) {
                Ok(Value::Optional(found)) => Value::Optional(found),
                Ok(Value::Null) => Value::Optional(None),
                Ok(found) => Value::some(found),
                Err(Failure::Said(_)) => Value::Optional(None),
                Err(failure) => return Err(failure),
            },
            Self::OptionalOf => Value::some(first),
            Self::OptionalOfNonZero if optional::is_zero(&first, meter)? => Value::Optional(None),
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

/// The worst case: each state of the pattern for each byte.
pub fn matching(text: &str, pattern: Pattern) -> f64 {
    const PLACES: f64 = 256.0;
    #[expect(clippy::cast_precision_loss, reason = "a bound need not be exact")]
    let letters = 1.0 + text.len() as f64;
    1.0 + letters * (1.0 + pattern.places) / PLACES
}

pub fn compiling(pattern: &str) -> u64 {
    steps(Pattern::of(pattern).compiling)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive bound")]
pub fn steps(cost: f64) -> u64 {
    cost as u64
}
