//! Writes objects as readable YAML that parses back to the same object.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::manifest::yaml;

/// Falls back to JSON if the YAML would parse differently.
pub fn object_yaml(value: &Value) -> String {
    let mut text = String::new();
    if let Value::Object(map) = value {
        write_map(&mut text, map, 0);
    }
    if parses_as(&text, value) {
        text
    } else {
        serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
    }
}

fn parses_as(text: &str, value: &Value) -> bool {
    let (documents, mistakes) = yaml::parse("imported", text);
    mistakes.is_empty() && documents.len() == 1 && documents.iter().all(|it| it.root.to_json() == *value)
}

fn write_map(text: &mut String, map: &Map<String, Value>, indent: usize) {
    for (key, value) in map {
        // Writing to a String cannot fail.
        let _ = write!(text, "{:indent$}{}:", "", scalar(key));
        write_below(text, value, indent);
    }
}

/// The value after a key.
fn write_below(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            write_map(text, map, indent + 2);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            write_list(text, items, indent + 2);
        }
        Value::String(value) if is_block(value) => write_block(text, value, indent + 2),
        Value::String(value) => {
            let _ = writeln!(text, " {}", scalar(value));
        }
        other => {
            let _ = writeln!(text, " {other}");
        }
    }
}

fn write_list(text: &mut String, items: &[Value], indent: usize) {
    for item in items {
        let _ = write!(text, "{:indent$}-", "");
        match item {
            Value::Object(map) if !map.is_empty() => {
                // The first key follows the dash.
                let start = text.len();
                write_map(text, map, indent + 2);
                text.replace_range(start..start + indent + 2, " ");
            }
            other => write_below(text, other, indent),
        }
    }
}

/// Whether a block scalar keeps the text.
fn is_block(value: &str) -> bool {
    let is_fine = |line: &str| !line.trim().is_empty() || line.is_empty();
    value.contains('\n')
        && !value.starts_with([' ', '\n', '\t'])
        && value.lines().all(is_fine)
        && value.chars().all(|it| it == '\n' || it == '\t' || !it.is_control())
}

fn write_block(text: &mut String, value: &str, indent: usize) {
    let body = value.trim_end_matches('\n');
    text.push_str(match value.len() - body.len() {
        0 => " |-\n",
        1 => " |\n",
        _ => " |+\n",
    });
    for line in value.lines() {
        if line.is_empty() {
            text.push('\n');
        } else {
            let _ = writeln!(text, "{:indent$}{line}", "");
        }
    }
}

/// Quoted, unless the plain form parses as this text.
pub fn scalar(value: &str) -> String {
    let is_plain = value.starts_with(|first: char| first.is_ascii_alphabetic() || "/_".contains(first))
        && value.chars().all(|it| it.is_ascii_alphanumeric() || "-_./=@+".contains(it))
        && parses_as(&format!("a: {value}\n"), &serde_json::json!({"a": value}));
    if is_plain { value.to_owned() } else { Value::from(value).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_read_back_as_they_were() {
        let check = |value: Value| {
            let text = object_yaml(&value);
            assert!(parses_as(&text, &value), "{text}");
            assert!(!text.starts_with('{'), "{text}");
        };
        check(
            json!({"a": "on", "b": "yes", "c": "0644", "d": "1e3", "e": "null", "f": "", "g": "~", "h": "a: b #c"}),
        );
        check(json!({"a": [1, 2.5, true, null, "x", [], {}, [["y"]], {"b": {"c": [{"d": 1, "e": [2]}]}}]}));
        check(json!({"on": "a", "a b": "c", "x/y": "\u{e4}\u{1f600}", "t": "a\tb", "z": "a\u{7}"}));
        check(
            json!({"a": "one\ntwo\n", "b": "one\n\n  two", "c": "one\n\n\n", "d": " x\ny", "e": "a\r\nb", "f": "\n"}),
        );
    }

    #[test]
    fn yaml_looks_handwritten() {
        let value = json!({"kind": "A", "in": {"list": [{"name": "x", "env": ["a"]}], "text": "a\nb\n", "word": "yes"}});
        let expected = "\
kind: A
in:
  list:
    - name: x
      env:
        - a
  text: |
    a
    b
  word: \"yes\"
";
        assert_eq!(object_yaml(&value), expected);
    }
}
