//! An object as values of CEL.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::Value as Cel;
use kube_cel::cel::objects::{Key, Map};
use serde_json::Value;

/// Whole numbers are `int`, as they are to the API server.
pub fn cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(boolean) => Cel::Bool(*boolean),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Cel::Int(whole),
            (None, Some(whole)) => Cel::UInt(whole),
            (None, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(cel).collect())),
        Value::Object(map) => {
            let entries = map.iter().map(|(name, value)| (Key::String(Arc::new(name.clone())), cel(value)));
            Cel::Map(Map { map: Arc::new(entries.collect::<HashMap<_, _>>()) })
        }
    }
}

pub fn empty() -> Cel {
    Cel::Map(Map { map: Arc::default() })
}
