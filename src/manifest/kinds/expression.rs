//! Texts in CEL. Whether they can be evaluated shows when they are compiled.

use super::super::read::{ManifestValue, ReadContext};
use crate::model::CelExpression;

pub fn read(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<CelExpression> {
    let text = reading.text(value)?;
    if text.trim().is_empty() {
        let message = format!("`{}` is empty", value.path);
        reading.bad_value(value, message, "write an expression, or remove the field");
        return None;
    }
    Some(CelExpression { text, location: reading.location(value.node), path: value.path.clone() })
}
