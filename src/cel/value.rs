//! Values of expressions. Values of objects borrow their JSON.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use kube_cel::cel::Value as Other;
use kube_cel::cel::objects::{Key, Map as OtherMap, OptionalValue};
use serde_json::Value as Json;

use super::meter::{CelMeter, EvaluationFailure};
use super::url::Url;

/// Approximate bytes of a list item.
pub(super) const ITEM_BYTES: usize = 40;

#[derive(Clone, Debug)]
pub enum CelValue<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(CelText<'a>),
    List(CelList<'a>),
    Map(CelMap<'a>),
    Optional(Option<Rc<CelValue<'a>>>),
    Type(&'static str),
    Url(Rc<Url>),
    /// A timestamp, a quantity, an address: types of library functions.
    Other(Other),
}

#[derive(Clone, Debug)]
pub enum CelText<'a> {
    Borrowed(&'a str),
    Owned(Rc<str>),
}

#[derive(Clone, Debug)]
pub enum CelList<'a> {
    Json(&'a [Json]),
    Owned(Rc<Vec<CelValue<'a>>>),
}

/// A null field counts as absent, as for the API server.
#[derive(Clone, Debug)]
pub enum CelMap<'a> {
    Json(&'a serde_json::Map<String, Json>),
    Owned(Rc<Vec<(CelValue<'a>, CelValue<'a>)>>),
}

impl CelText<'_> {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}

impl<'a> CelList<'a> {
    pub fn len(&self) -> usize {
        match self {
            Self::Json(items) => items.len(),
            Self::Owned(items) => items.len(),
        }
    }

    pub fn get(&self, index: usize) -> Option<CelValue<'a>> {
        match self {
            Self::Json(items) => items.get(index).map(CelValue::of),
            Self::Owned(items) => items.get(index).cloned(),
        }
    }
}

impl<'a> CelMap<'a> {
    /// Counts null fields too, as iteration visits them.
    fn size(&self) -> usize {
        match self {
            Self::Json(map) => map.len(),
            Self::Owned(entries) => entries.len(),
        }
    }

    pub fn len(&self, meter: &mut CelMeter) -> Result<usize, EvaluationFailure> {
        match self {
            Self::Json(map) => {
                meter.charge_items(map.len())?;
                Ok(map.values().filter(|value| !value.is_null()).count())
            }
            Self::Owned(entries) => Ok(entries.len()),
        }
    }

    pub fn field(&self, name: &str, meter: &mut CelMeter) -> Result<Option<CelValue<'a>>, EvaluationFailure> {
        match self {
            Self::Json(map) => Ok(map.get(name).filter(|value| !value.is_null()).map(CelValue::of)),
            Self::Owned(entries) => {
                for (key, value) in entries.iter() {
                    meter.step()?;
                    if let CelValue::Text(text) = key
                        && text.as_str().len() == name.len()
                    {
                        meter.charge_reading(name.len())?;
                        if text.as_str() == name {
                            return Ok(Some(value.clone()));
                        }
                    }
                }
                Ok(None)
            }
        }
    }

    pub fn get(
        &self,
        key: &CelValue<'_>,
        meter: &mut CelMeter,
    ) -> Result<Option<CelValue<'a>>, EvaluationFailure> {
        match (self, key) {
            (_, CelValue::Text(name)) => {
                meter.charge_reading(name.as_str().len())?;
                self.field(name.as_str(), meter)
            }
            (Self::Json(_), _) => Ok(None),
            (Self::Owned(entries), _) => {
                for (known, value) in entries.iter() {
                    if equal(known, key, meter)? {
                        return Ok(Some(value.clone()));
                    }
                }
                Ok(None)
            }
        }
    }

    pub fn keys(&self, meter: &mut CelMeter) -> Result<Vec<CelValue<'a>>, EvaluationFailure> {
        meter.charge_memory(ITEM_BYTES * self.size())?;
        Ok(self.iter().map(|(key, _)| key).collect())
    }

    pub fn entries(
        &self,
        meter: &mut CelMeter,
    ) -> Result<Vec<(CelValue<'a>, CelValue<'a>)>, EvaluationFailure> {
        meter.charge_memory(2 * ITEM_BYTES * self.size())?;
        Ok(self.iter().collect())
    }

    /// The caller charges the meter.
    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = (CelValue<'a>, CelValue<'a>)> + '_> {
        match self {
            Self::Json(map) => {
                let there = map.iter().filter(|(_, value)| !value.is_null());
                Box::new(
                    there.map(|(key, value)| (CelValue::Text(CelText::Borrowed(key)), CelValue::of(value))),
                )
            }
            Self::Owned(entries) => Box::new(entries.iter().cloned()),
        }
    }
}

impl<'a> CelValue<'a> {
    /// Whole numbers are `int`, as for the API server.
    pub fn of(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(it) => Self::Bool(*it),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(whole), _) => Self::Int(whole),
                (None, Some(whole)) => Self::Uint(whole),
                (None, None) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Text(CelText::Borrowed(text)),
            Json::Array(items) => Self::List(CelList::Json(items)),
            Json::Object(map) => Self::Map(CelMap::Json(map)),
        }
    }

    pub fn owned_text(text: &str, meter: &mut CelMeter) -> Result<Self, EvaluationFailure> {
        meter.charge_memory(text.len())?;
        Ok(Self::Text(CelText::Owned(text.into())))
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.as_str()),
            _ => None,
        }
    }

    pub fn doubles(items: &[f64]) -> Self {
        Self::List(CelList::Owned(Rc::new(items.iter().copied().map(CelValue::Double).collect())))
    }

    pub fn list(items: &'a [Json]) -> Self {
        Self::List(CelList::Json(items))
    }

    pub fn some(value: CelValue<'a>) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    /// The name that `type` returns.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Url(_) => "kubernetes.URL",
            Self::Other(Other::Bytes(_)) => "bytes",
            Self::Other(Other::Timestamp(_)) => "google.protobuf.Timestamp",
            Self::Other(Other::Duration(_)) => "google.protobuf.Duration",
            Self::Other(_) => "value of a library",
        }
    }

    /// Converts a result of a library function.
    pub fn from_library(value: Other, meter: &mut CelMeter) -> Result<Self, EvaluationFailure> {
        meter.charge_memory(32)?;
        Ok(match value {
            Other::Null => Self::Null,
            Other::Bool(it) => Self::Bool(it),
            Other::Int(it) => Self::Int(it),
            Other::UInt(it) => Self::Uint(it),
            Other::Float(it) => Self::Double(it),
            Other::String(text) => Self::owned_text(&text, meter)?,
            Other::List(items) => {
                let items = meter.within_level(|meter| {
                    items.iter().map(|item| Self::from_library(item.clone(), meter)).collect()
                })?;
                Self::List(CelList::Owned(Rc::new(items)))
            }
            Other::Map(map) => {
                let mut entries = Vec::new();
                for (key, value) in map.map.iter() {
                    let key = match key {
                        Key::Int(it) => Self::Int(*it),
                        Key::Uint(it) => Self::Uint(*it),
                        Key::Bool(it) => Self::Bool(*it),
                        Key::String(it) => Self::owned_text(it, meter)?,
                    };
                    let value = meter.within_level(|meter| Self::from_library(value.clone(), meter))?;
                    entries.push((key, value));
                }
                Self::Map(CelMap::Owned(Rc::new(entries)))
            }
            Other::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>() {
                Some(optional) => match optional.value() {
                    Some(value) => {
                        Self::some(meter.within_level(|meter| Self::from_library(value.clone(), meter))?)
                    }
                    None => Self::Optional(None),
                },
                None => Self::Other(Other::Opaque(opaque)),
            },
            other => {
                meter.charge_memory(bytes_of(&other))?;
                Self::Other(other)
            }
        })
    }

    /// Copies the value for a library function.
    pub fn for_library(&self, meter: &mut CelMeter) -> Result<Other, EvaluationFailure> {
        meter.charge_memory(32)?;
        Ok(match self {
            Self::Null => Other::Null,
            Self::Bool(it) => Other::Bool(*it),
            Self::Int(it) => Other::Int(*it),
            Self::Uint(it) => Other::UInt(*it),
            Self::Double(it) => Other::Float(*it),
            Self::Text(text) => {
                meter.charge_memory(text.as_str().len())?;
                Other::String(Arc::new(text.as_str().to_owned()))
            }
            Self::List(list) => {
                let items = (0..list.len()).filter_map(|index| list.get(index));
                let items =
                    meter.within_level(|meter| items.map(|item| item.for_library(meter)).collect())?;
                Other::List(Arc::new(items))
            }
            Self::Map(map) => {
                let mut copied = HashMap::new();
                for (key, value) in map.entries(meter)? {
                    let key = match key {
                        Self::Bool(it) => Key::Bool(it),
                        Self::Int(it) => Key::Int(it),
                        Self::Uint(it) => Key::Uint(it),
                        other => Key::String(Arc::new(other.as_str().unwrap_or_default().to_owned())),
                    };
                    copied.insert(key, meter.within_level(|meter| value.for_library(meter))?);
                }
                Other::Map(OtherMap { map: Arc::new(copied) })
            }
            Self::Optional(_) | Self::Type(_) | Self::Url(_) => {
                return Err(EvaluationFailure::NoOverload(self.type_name()));
            }
            Self::Other(other) => other.clone(),
        })
    }
}

/// Converts an object for the library's evaluator; null fields stay.
pub fn to_library(value: &Json) -> Other {
    match value {
        Json::Array(items) => Other::List(Arc::new(items.iter().map(to_library).collect())),
        Json::Object(map) => {
            let entries =
                map.iter().map(|(name, value)| (Key::String(Arc::new(name.clone())), to_library(value)));
            Other::Map(OtherMap { map: Arc::new(entries.collect::<HashMap<_, _>>()) })
        }
        Json::String(text) => Other::String(Arc::new(text.clone())),
        Json::Null => Other::Null,
        Json::Bool(it) => Other::Bool(*it),
        Json::Number(_) => match CelValue::of(value) {
            CelValue::Int(it) => Other::Int(it),
            CelValue::Uint(it) => Other::UInt(it),
            CelValue::Double(it) => Other::Float(it),
            _ => Other::Null,
        },
    }
}

/// Values of different types are unequal; numbers compare across types.
pub fn equal(
    one: &CelValue<'_>,
    other: &CelValue<'_>,
    meter: &mut CelMeter,
) -> Result<bool, EvaluationFailure> {
    meter.step()?;
    Ok(match (one, other) {
        (CelValue::Null, CelValue::Null) => true,
        (CelValue::Bool(one), CelValue::Bool(other)) => one == other,
        (CelValue::Text(one), CelValue::Text(other)) => {
            let (one, other) = (one.as_str(), other.as_str());
            one.len() == other.len() && {
                meter.charge_reading(one.len())?;
                one == other
            }
        }
        (CelValue::List(one), CelValue::List(other)) => {
            if one.len() != other.len() {
                return Ok(false);
            }
            for index in 0..one.len() {
                let (Some(one), Some(other)) = (one.get(index), other.get(index)) else { return Ok(false) };
                if !meter.within_level(|meter| equal(&one, &other, meter))? {
                    return Ok(false);
                }
            }
            true
        }
        (CelValue::Map(one), CelValue::Map(other)) => {
            if one.len(meter)? != other.len(meter)? {
                return Ok(false);
            }
            for (key, value) in one.iter() {
                meter.steps(2)?;
                match other.get(&key, meter)? {
                    Some(found) if meter.within_level(|meter| equal(&value, &found, meter))? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (CelValue::Optional(None), CelValue::Optional(None)) => true,
        (CelValue::Optional(Some(one)), CelValue::Optional(Some(other))) => {
            meter.within_level(|meter| equal(one, other, meter))?
        }
        (CelValue::Type(one), CelValue::Type(other)) => one == other,
        (CelValue::Url(one), CelValue::Url(other)) => {
            meter.charge_reading(one.len())?;
            one == other
        }
        (CelValue::Other(one), CelValue::Other(other)) => {
            meter.charge_reading(bytes_of(one).min(bytes_of(other)))?;
            one == other
        }
        _ => compare_numbers(one, other) == Some(Ordering::Equal),
    })
}

pub fn compare(
    one: &CelValue<'_>,
    other: &CelValue<'_>,
    meter: &mut CelMeter,
) -> Result<Option<Ordering>, EvaluationFailure> {
    Ok(match (one, other) {
        (CelValue::Bool(one), CelValue::Bool(other)) => Some(one.cmp(other)),
        (CelValue::Text(one), CelValue::Text(other)) => {
            meter.charge_reading(one.as_str().len().min(other.as_str().len()))?;
            Some(one.as_str().cmp(other.as_str()))
        }
        (CelValue::Other(one), CelValue::Other(other)) => {
            meter.charge_reading(bytes_of(one).min(bytes_of(other)))?;
            Some(one.partial_cmp(other).ok_or(EvaluationFailure::NoOverload("<"))?)
        }
        _ => match compare_numbers(one, other) {
            Some(order) => Some(order),
            None if is_number(one) && is_number(other) => None,
            None => return Err(EvaluationFailure::NoOverload("<")),
        },
    })
}

/// Approximate bytes to compare.
pub(super) fn bytes_of(value: &Other) -> usize {
    match value {
        Other::Bytes(bytes) => bytes.len(),
        _ => ITEM_BYTES,
    }
}

fn is_number(value: &CelValue<'_>) -> bool {
    matches!(value, CelValue::Int(_) | CelValue::Uint(_) | CelValue::Double(_))
}

#[expect(clippy::cast_precision_loss, reason = "so numbers of CEL are compared with fractions")]
fn compare_numbers(one: &CelValue<'_>, other: &CelValue<'_>) -> Option<Ordering> {
    let double = |value: &CelValue<'_>| match value {
        CelValue::Int(it) => Some(*it as f64),
        CelValue::Uint(it) => Some(*it as f64),
        CelValue::Double(it) => Some(*it),
        _ => None,
    };
    let whole = |value: &CelValue<'_>| match value {
        CelValue::Int(it) => Some(i128::from(*it)),
        CelValue::Uint(it) => Some(i128::from(*it)),
        _ => None,
    };
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => double(one)?.partial_cmp(&double(other)?),
    }
}
