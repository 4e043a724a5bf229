//! Evaluates the most used functions natively, and those with optional values.

use std::rc::Rc;

use kube_cel::cel::Value as Other;
use regex::{Regex, RegexBuilder};

use super::library::LibraryCall;
use super::meter::{CelMeter, EvaluationFailure};
use super::optional;
use super::regex_cost::{RegexCost, match_cost, translate_re2, whole_steps};
use super::text_format;
use super::time_values::{self, TimeField};
use super::url::Url;
use super::value::{CelList, CelMap, CelText, CelValue};

/// The names that `type(x)` compares with.
pub const TYPE_NAMES: [&str; 12] = [
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
pub enum NativeFunction {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    /// The compiled pattern with its cost. `None`: the pattern is computed.
    Matches(Option<(Regex, RegexCost)>),
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
    TimePart(TimeField, LibraryCall),
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

    fn get<'a>(self, url: &Url, meter: &mut CelMeter) -> Result<CelValue<'a>, EvaluationFailure> {
        meter.charge_reading(url.len())?;
        match self {
            Self::Scheme => CelValue::owned_text(&url.scheme, meter),
            Self::Host => CelValue::owned_text(&url.host, meter),
            Self::Hostname => CelValue::owned_text(url.hostname(), meter),
            Self::Port => CelValue::owned_text(url.port(), meter),
            Self::EscapedPath => CelValue::owned_text(&url.escaped_path(), meter),
            Self::Query => {
                let mut entries = Vec::new();
                for (key, values) in url.query() {
                    let values =
                        values.iter().map(|it| CelValue::owned_text(it, meter)).collect::<Result<_, _>>()?;
                    let values = CelValue::List(CelList::Owned(Rc::new(values)));
                    entries.push((CelValue::owned_text(&key, meter)?, values));
                }
                Ok(CelValue::Map(CelMap::Owned(Rc::new(entries))))
            }
        }
    }
}

/// `None`: not a native function. The first of `count` arguments of a method is its target. `pattern` is the second
/// argument if it is a text in the expression.
pub fn native_function(
    name: &str,
    is_method: bool,
    count: usize,
    pattern: Option<&str>,
) -> Option<Result<NativeFunction, String>> {
    let method = |native: NativeFunction, wanted: usize| match (is_method, count == wanted + 1) {
        (true, true) => Ok(native),
        (true, false) => Err(format!("`{name}` takes {wanted} arguments")),
        (false, _) => Err(format!("`{name}` is a method of a value: x.{name}()")),
    };
    let global = |native: NativeFunction, wanted: usize| match count == wanted {
        true => Ok(native),
        false => Err(format!("`{name}` takes {wanted} arguments")),
    };
    Some(match name {
        "size" => global(NativeFunction::Size, 1),
        "contains" => method(NativeFunction::Contains, 1),
        "startsWith" => method(NativeFunction::StartsWith, 1),
        "endsWith" => method(NativeFunction::EndsWith, 1),
        "matches" => match pattern {
            Some(pattern) => compile_regex(pattern)
                .and_then(|regex| global(NativeFunction::Matches(Some((regex, RegexCost::of(pattern)))), 2)),
            None => global(NativeFunction::Matches(None), 2),
        },
        "dyn" => global(NativeFunction::Dyn, 1),
        "type" => global(NativeFunction::Type, 1),
        "bool" => global(NativeFunction::Bool, 1),
        "string" if count == 1 && !is_method => match LibraryCall::of(name, false, 1) {
            Some(library) => Ok(NativeFunction::Text(library)),
            None => return None,
        },
        "format.named" if count == 1 => match LibraryCall::of(name, false, 1) {
            Some(library) => Ok(NativeFunction::NamedFormat(library)),
            None => return None,
        },
        "format" => method(NativeFunction::Format, 1),
        "url" => global(NativeFunction::Url, 1),
        "isURL" => global(NativeFunction::IsUrl, 1),
        "int" if count == 1 && !is_method => NativeFunction::Int(LibraryCall::of(name, false, 1)?).into_ok(),
        "timestamp" if count == 1 && !is_method => {
            NativeFunction::Timestamp(LibraryCall::of(name, false, 1)?).into_ok()
        }
        _ if is_method && matches!(count, 1 | 2) && TimeField::of(name).is_some() => {
            NativeFunction::TimePart(TimeField::of(name)?, LibraryCall::of(name, true, 1)?).into_ok()
        }
        _ if UrlPart::of(name).is_some() => method(NativeFunction::UrlPart(UrlPart::of(name)?), 0),
        "optional.of" => global(NativeFunction::OptionalOf, 1),
        "optional.ofNonZeroValue" => global(NativeFunction::OptionalOfNonZero, 1),
        "optional.none" => global(NativeFunction::OptionalNone, 0),
        "hasValue" => method(NativeFunction::HasValue, 0),
        "value" => method(NativeFunction::ValueOf, 0),
        "or" => method(NativeFunction::Or, 1),
        "orValue" => method(NativeFunction::OrValue, 1),
        _ => return None,
    })
}

/// Bounded: a pattern of a few bytes can fill the memory.
fn compile_regex(pattern: &str) -> Result<Regex, String> {
    const MOST: usize = 4 * 1024 * 1024;
    let regex = RegexBuilder::new(&translate_re2(pattern)).size_limit(MOST).dfa_size_limit(MOST).build();
    regex.map_err(|_| {
        format!("`{}` is not a regular expression, or it is too large", crate::model::short_line(pattern, 60))
    })
}

impl NativeFunction {
    fn into_ok(self) -> Result<Self, String> {
        Ok(self)
    }

    pub fn call<'a>(
        &self,
        args: Vec<CelValue<'a>>,
        meter: &mut CelMeter,
    ) -> Result<CelValue<'a>, EvaluationFailure> {
        let mut args = args.into_iter();
        let (Some(first), second) = (args.next(), args.next()) else { return Ok(CelValue::Optional(None)) };
        let texts = |name| match (first.as_str(), second.as_ref().and_then(CelValue::as_str)) {
            (Some(first), Some(second)) => Ok((first, second)),
            _ => Err(EvaluationFailure::NoOverload(name)),
        };
        Ok(match self {
            Self::Size => {
                let size = match &first {
                    CelValue::Text(text) => {
                        meter.charge_reading(text.as_str().len())?;
                        text.as_str().chars().count()
                    }
                    CelValue::List(list) => list.len(),
                    CelValue::Map(map) => map.len(meter)?,
                    CelValue::Other(Other::Bytes(bytes)) => bytes.len(),
                    _ => return Err(EvaluationFailure::NoOverload("size")),
                };
                CelValue::Int(i64::try_from(size).unwrap_or(i64::MAX))
            }
            Self::Contains => {
                let (text, part) = texts("contains")?;
                meter.charge_reading(text.len() + part.len())?;
                CelValue::Bool(text.contains(part))
            }
            Self::StartsWith => {
                let (text, part) = texts("startsWith")?;
                meter.charge_reading(part.len())?;
                CelValue::Bool(text.starts_with(part))
            }
            Self::EndsWith => {
                let (text, part) = texts("endsWith")?;
                meter.charge_reading(part.len())?;
                CelValue::Bool(text.ends_with(part))
            }
            Self::Matches(known) => {
                let (text, pattern) = texts("matches")?;
                match known {
                    Some((regex, cost)) => {
                        meter.steps(whole_steps(match_cost(text, *cost)))?;
                        CelValue::Bool(regex.is_match(text))
                    }
                    None => {
                        meter.charge_reading(pattern.len())?;
                        let cost = RegexCost::of(pattern);
                        meter.steps(whole_steps(match_cost(text, cost) + cost.compile_steps))?;
                        let regex =
                            compile_regex(pattern).map_err(|why| EvaluationFailure::Message(why.into()))?;
                        CelValue::Bool(regex.is_match(text))
                    }
                }
            }
            Self::Dyn => first,
            Self::Type => CelValue::Type(first.type_name()),
            Self::Bool => match (&first, first.as_str()) {
                (CelValue::Bool(it), _) => CelValue::Bool(*it),
                (_, Some("true" | "True" | "TRUE" | "t" | "T" | "1")) => CelValue::Bool(true),
                (_, Some("false" | "False" | "FALSE" | "f" | "F" | "0")) => CelValue::Bool(false),
                _ => return Err(EvaluationFailure::NoOverload("bool")),
            },
            Self::Text(library) => match (&first, text_format::format_value(&first)) {
                (CelValue::Text(_), _) => first,
                (_, Some(text)) => CelValue::owned_text(&text, meter)?,
                (_, None) => library.call(&[first], meter)?,
            },
            Self::Format => match (&first, second) {
                (CelValue::Text(template), Some(CelValue::List(args))) => {
                    meter.charge_reading(template.as_str().len())?;
                    let text = text_format::format(template.as_str(), &args, meter)?;
                    CelValue::Text(CelText::Owned(text.into()))
                }
                _ => return Err(EvaluationFailure::NoOverload("format")),
            },
            Self::Url | Self::IsUrl => {
                let text = first.as_str().ok_or(EvaluationFailure::NoOverload("url"))?;
                meter.charge_memory(text.len())?;
                match (self, Url::parse(text)) {
                    (Self::IsUrl, url) => CelValue::Bool(url.is_some()),
                    (_, Some(url)) => CelValue::Url(Rc::new(url)),
                    (_, None) => return Err(EvaluationFailure::Message("it is not a URL".into())),
                }
            }
            Self::UrlPart(part) => match &first {
                CelValue::Url(url) => part.get(url, meter)?,
                _ => return Err(EvaluationFailure::NoOverload("a part of a URL")),
            },
            Self::TimePart(part, library) => match (&first, second) {
                (CelValue::Other(Other::Timestamp(at)), zone) => {
                    let zone = match &zone {
                        None => None,
                        Some(zone) => {
                            Some(zone.as_str().ok_or(EvaluationFailure::NoOverload("a part of a time"))?)
                        }
                    };
                    let found = part.get(at.timestamp(), at.timestamp_subsec_nanos(), zone);
                    CelValue::Int(
                        found
                            .ok_or_else(|| EvaluationFailure::Message("there is no such time zone".into()))?,
                    )
                }
                (_, None) => library.call(&[first], meter)?,
                _ => return Err(EvaluationFailure::NoOverload("a part of a time")),
            },
            Self::Int(library) => match &first {
                CelValue::Other(Other::Timestamp(at)) => CelValue::Int(at.timestamp()),
                _ => library.call(&[first], meter)?,
            },
            Self::Timestamp(library) => match &first {
                CelValue::Int(seconds) => {
                    let text = time_values::format_timestamp(*seconds, 0, 0);
                    let text = text.ok_or_else(|| EvaluationFailure::Message("it is not a time".into()))?;
                    library.call(&[CelValue::owned_text(&text, meter)?], meter)?
                }
                _ => library.call(&[first], meter)?,
            },
            Self::NamedFormat(library) => match library.call(&[first], meter) {
                Ok(CelValue::Optional(found)) => CelValue::Optional(found),
                Ok(CelValue::Null) => CelValue::Optional(None),
                Ok(found) => CelValue::some(found),
                Err(EvaluationFailure::Message(_)) => CelValue::Optional(None),
                Err(failure) => return Err(failure),
            },
            Self::OptionalOf => CelValue::some(first),
            Self::OptionalOfNonZero if optional::is_zero(&first, meter)? => CelValue::Optional(None),
            Self::OptionalOfNonZero => CelValue::some(first),
            Self::OptionalNone => CelValue::Optional(None),
            Self::HasValue => CelValue::Bool(optional_inner(first, "hasValue")?.is_some()),
            Self::ValueOf => match optional_inner(first, "value")? {
                Some(value) => (*value).clone(),
                None => {
                    return Err(EvaluationFailure::Message(
                        "an optional value is missing; use orValue".into(),
                    ));
                }
            },
            Self::Or => match (optional_inner(first, "or")?, second) {
                (Some(value), _) => CelValue::Optional(Some(value)),
                (None, Some(CelValue::Optional(other))) => CelValue::Optional(other),
                _ => return Err(EvaluationFailure::NoOverload("or")),
            },
            Self::OrValue => match (optional_inner(first, "orValue")?, second) {
                (Some(value), _) => (*value).clone(),
                (None, Some(other)) => other,
                (None, None) => return Err(EvaluationFailure::NoOverload("orValue")),
            },
        })
    }
}

fn optional_inner<'a>(
    value: CelValue<'a>,
    name: &'static str,
) -> Result<Option<Rc<CelValue<'a>>>, EvaluationFailure> {
    match value {
        CelValue::Optional(inner) => Ok(inner),
        _ => Err(EvaluationFailure::NoOverload(name)),
    }
}
