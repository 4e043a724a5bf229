//! Maps and lists that a patch expects at a place.

use serde_json::{Map, Value};

use super::StrategicError;
use super::error::{LIST, MAP};

pub(super) type JsonFields = Map<String, Value>;

pub(super) fn fields_of(item: &Value) -> Result<&JsonFields, StrategicError> {
    item.as_object().ok_or_else(|| StrategicError::wrong_type(MAP, item))
}

pub(super) fn items_of(list: &Value) -> Result<&Vec<Value>, StrategicError> {
    list.as_array().ok_or_else(|| StrategicError::wrong_type(LIST, list))
}
