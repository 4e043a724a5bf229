//! Finds fields in the JSON text of stored objects without parsing the rest.
//!
//! The text is what `serde_json` wrote: valid, and without spaces between tokens.

/// The text of the value at a path of field names.
pub(crate) fn value_at<'t>(object: &'t [u8], path: &[&str]) -> Option<&'t [u8]> {
    path.iter().try_fold(object, |text, name| field(text, name))
}

pub(crate) fn field<'t>(object: &'t [u8], name: &str) -> Option<&'t [u8]> {
    let mut at = object.first().filter(|first| **first == b'{').map(|_| 1)?;
    loop {
        let key_end = value_end(object, at);
        let key = object.get(at + 1..key_end.checked_sub(1)?)?;
        let end = value_end(object, key_end + 1);
        if key == name.as_bytes() {
            return object.get(key_end + 1..end);
        }
        if object.get(end) != Some(&b',') {
            return None;
        }
        at = end + 1;
    }
}

/// Where the value that starts here ends.
fn value_end(text: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at = string_end(text, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' | b':' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// Where the string that starts here ends, past its quote.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(object: &Value, path: &[&str]) {
        let text = serde_json::to_vec(object).unwrap();
        let expected = path.iter().try_fold(object, |value, name| value.get(name));
        let found = value_at(&text, path).map(|text| serde_json::from_slice::<Value>(text).unwrap());
        assert_eq!(found.as_ref(), expected, "{path:?}");
    }

    #[test]
    fn fields_are_found_as_a_parser_finds_them() {
        let object = json!({"a": "x\\\"y,{", "b": [1, {"c": "]"}], "n": -1.5, "t": true, "z": null,
            "metadata": {"name": "é\n", "labels": {"app": "web"}, "empty": {}, "list": []}});
        for path in [
            &["a"][..],
            &["b"],
            &["n"],
            &["t"],
            &["z"],
            &["gone"],
            &["metadata", "name"],
            &["metadata", "labels", "app"],
            &["metadata", "empty"],
            &["metadata", "empty", "x"],
            &["metadata", "list"],
            &["a", "b"],
        ] {
            check(&object, path);
        }
        check(&json!({}), &["a"]);
        check(&json!("text"), &["a"]);
    }
}
