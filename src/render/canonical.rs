//! One form for equal objects, so that equal means equal hashes.

use serde_json::{Map, Value};

/// Drops nulls and status, and turns a Secret's stringData into data. Applied by the API server it would
/// be the same object.
pub fn canonical(object: &mut Map<String, Value>) {
    object.remove("status");
    drop_nulls(object);
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.shift_remove("creationTimestamp");
    }
    if is_secret(object)
        && let Some(Value::Object(texts)) = object.shift_remove("stringData")
    {
        let data = object.entry("data").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(data) = data {
            // As in the API server, stringData wins.
            data.extend(texts.into_iter().map(|(key, text)| (key, encoded(&text))));
        }
    }
}

pub fn is_secret(object: &Map<String, Value>) -> bool {
    object.get("kind").is_some_and(|kind| kind == "Secret")
        && object.get("apiVersion").is_some_and(|version| version == "v1")
}

fn encoded(text: &Value) -> Value {
    text.as_str().map_or_else(|| text.clone(), |text| Value::String(base64(text.as_bytes())))
}

fn drop_nulls(map: &mut Map<String, Value>) {
    map.retain(|_, value| !value.is_null());
    map.values_mut().for_each(drop_nulls_below);
}

fn drop_nulls_below(value: &mut Value) {
    match value {
        Value::Object(map) => drop_nulls(map),
        Value::Array(items) => items.iter_mut().for_each(drop_nulls_below),
        _ => {}
    }
}

/// RFC 4648, section 4, with padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = [chunk[0], chunk.get(1).copied().unwrap_or(0), chunk.get(2).copied().unwrap_or(0)];
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(object: Value, expected: &Value) {
        let Value::Object(mut object) = object else { panic!("an object") };
        canonical(&mut object);
        assert_eq!(&Value::Object(object), expected);
    }

    #[test]
    fn nulls_and_status_go() {
        check(
            json!({"kind": "A", "status": {"x": 1}, "spec": {"a": null, "b": [{"c": null}]}}),
            &json!({"kind": "A", "spec": {"b": [{}]}}),
        );
    }

    #[test]
    fn texts_of_a_secret_become_data() {
        check(
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA=="}, "stringData": {"a": "foob", "b": "foobar", "c": ""}}),
            &json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "Zm9vYg==", "b": "Zm9vYmFy", "c": ""}}),
        );
    }
}
