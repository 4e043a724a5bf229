//! The hint of a delivery as one line.

use serde_json::Value;

pub fn hint_line(hint: &Value) -> String {
    let text = |name: &str| match &hint[name] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(format!("#{number}")),
        _ => None,
    };
    let after = text("after").map(|id| id.chars().take(7).collect());
    let parts = [text("kind"), text("repository"), text("pull"), text("reference"), after];
    parts.into_iter().flatten().collect::<Vec<String>>().join(" ")
}
