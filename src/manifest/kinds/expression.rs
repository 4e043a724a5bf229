//! Texts in CEL. Whether they can be evaluated shows when they are compiled.

use super::super::read::{Reading, Value};
use crate::model::Expression;

pub fn read(value: &Value<'_>, reading: &mut Reading<'_>) -> Option<Expression> {
    let text = reading.text(value)?;
    if text.trim().is_empty() {
        let message = format!("`{}` is empty", value.path);
        reading.bad_value(value, message, "write an expression, or remove the field");
        return None;
    }
    Some(Expression { text, location: reading.location(value.node), path: value.path.clone() })
}
