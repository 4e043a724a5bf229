//! Reads the leaves of YAML files with their positions, and alters them in the text.

use serde_json::Value;

use crate::manifest::yaml::{YamlNode, YamlNodeKind};
use crate::model::{Location, TextPosition};

/// A value without children: a scalar, an empty map or list.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    pub location: Location,
    /// From the root of its document: `spec.podSpec.template.spec.containers[0].image`.
    pub path: String,
    pub value: Value,
}

/// All leaves of a document, in order.
pub fn leaves_of(file: &str, root: &YamlNode) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    collect(file, root, "", &mut leaves);
    leaves
}

fn collect(file: &str, node: &YamlNode, path: &str, leaves: &mut Vec<Leaf>) {
    match &node.kind {
        YamlNodeKind::Map(entries) if !entries.is_empty() => {
            for entry in entries {
                let dot = if path.is_empty() { "" } else { "." };
                collect(file, &entry.value, &format!("{path}{dot}{}", entry.key), leaves);
            }
        }
        YamlNodeKind::Seq(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                collect(file, item, &format!("{path}[{index}]"), leaves);
            }
        }
        _ => {
            leaves.push(Leaf { location: node.location(file), path: path.to_owned(), value: node.to_json() })
        }
    }
}

/// Map keys as leaves: renaming one shows what depends on the name.
pub fn keys_of(file: &str, root: &YamlNode) -> Vec<Leaf> {
    let mut keys = Vec::new();
    collect_keys(file, root, "", &mut keys);
    keys
}

fn collect_keys(file: &str, node: &YamlNode, path: &str, keys: &mut Vec<Leaf>) {
    match &node.kind {
        YamlNodeKind::Map(entries) => {
            for entry in entries {
                let dot = if path.is_empty() { "" } else { "." };
                let path = format!("{path}{dot}{}", entry.key);
                collect_keys(file, &entry.value, &path, keys);
                keys.push(Leaf { location: entry.location(file), path, value: entry.key.clone().into() });
            }
        }
        YamlNodeKind::Seq(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_keys(file, item, &format!("{path}[{index}]"), keys);
            }
        }
        _ => {}
    }
}

/// Alternatives for a value, best first: a parser may refuse one.
pub fn alternative_values(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => vec!["x".into(), 1.into()],
        Value::Bool(value) => vec![(!value).into()],
        Value::Number(number) => {
            // Far enough that a percentage of it changes too; else the next number.
            let whole = number.as_i64();
            let far = whole.and_then(|number| number.checked_mul(2)?.checked_add(1)).map(Value::from);
            let next = whole.and_then(|number| number.checked_add(1)).map(Value::from);
            let float = number.as_f64().map(|number| Value::from(number + 1.0));
            let mut others: Vec<Value> = far.into_iter().chain(next).collect();
            if others.is_empty() {
                others.extend(float);
            }
            others
        }
        Value::String(text) => {
            let mut others = vec![Value::from(format!("{text}x"))];
            others.extend(with_next_number(text).map(Value::from));
            others.push(format!("x{text}").into());
            others
        }
        Value::Array(_) => vec![serde_json::json!(["x"])],
        Value::Object(_) => vec![serde_json::json!({"x": "x"})],
    }
}

/// The text with its first number one higher: `100m` is `101m`.
fn with_next_number(text: &str) -> Option<String> {
    let start = text.find(|letter: char| letter.is_ascii_digit())?;
    let end =
        text[start..].find(|letter: char| !letter.is_ascii_digit()).map_or(text.len(), |end| start + end);
    let number: u64 = text[start..end].parse().ok()?;
    Some(format!("{}{}{}", &text[..start], number.checked_add(1)?, &text[end..]))
}

/// Replaces some leaves in the text of a file.
pub fn with_altered_values(text: &str, changes: &[(&Location, &Value)]) -> Option<String> {
    let mut spans = Vec::new();
    for (location, value) in changes {
        let (start, end) = (offset(text, location.start)?, offset(text, location.end?)?);
        spans.push((start, end, *value));
    }
    // From the end, so that earlier positions stay valid.
    spans.sort_by_key(|(start, ..)| std::cmp::Reverse(*start));
    spans.dedup_by_key(|(start, ..)| *start);
    let mut altered = text.to_owned();
    for (start, end, value) in spans {
        let old = text.get(start..end)?;
        // Keeps an anchor, which aliases refer to.
        let kept = if old.starts_with('&') {
            old.find(char::is_whitespace).map_or(old.len(), |at| at + 1)
        } else {
            0
        };
        let blank = if old.is_empty() { " " } else { "" };
        let line = if old.ends_with('\n') { "\n" } else { "" };
        altered.replace_range(start + kept..end, &format!("{blank}{value}{line}"));
    }
    Some(altered)
}

fn offset(text: &str, position: TextPosition) -> Option<usize> {
    let mut line_start = 0;
    for _ in 1..position.line {
        line_start += text.get(line_start..)?.find('\n')? + 1;
    }
    let line = text.get(line_start..)?;
    let column = (position.column as usize).checked_sub(1)?;
    let within = line.char_indices().map(|(at, _)| at).chain([line.len()]).nth(column)?;
    Some(line_start + within)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::yaml;

    /// Every leaf altered alone must be the only one that reads differently.
    fn check(text: &str, count: usize) {
        let read = |text: &str| {
            let (documents, mistakes) = yaml::parse("f", text);
            assert_eq!(mistakes, [], "{text}");
            leaves_of("f", &documents[0].root)
        };
        let leaves = read(text);
        assert_eq!(leaves.len(), count);
        for leaf in &leaves {
            for other in alternative_values(&leaf.value) {
                let altered = with_altered_values(text, &[(&leaf.location, &other)]).unwrap();
                let (documents, mistakes) = yaml::parse("f", &altered);
                assert_eq!(mistakes, [], "{altered}");
                let now = leaves_of("f", &documents[0].root);
                let differing: Vec<_> = leaves
                    .iter()
                    .filter(|old| !now.iter().any(|new| new.path == old.path && new.value == old.value))
                    .map(|old| &old.location)
                    .collect();
                assert!(differing.iter().all(|place| **place == leaf.location), "{altered}");
                assert!(!differing.is_empty(), "{altered}");
            }
        }
    }

    #[test]
    fn altering_one_leaf_changes_no_other() {
        check("a: 1\nb: {c: yes, d: [x, \"y z\", 1.5]}\ne:\nf: {}\ng: []\n", 8);
        check("t: |\n  line\n  line\nnext: 'it''s'\n", 2);
        check("a: &x 5\nb: *x\nü: ä\n", 3);
        check("- a: 100m\n  b: ~\n- \n- c", 4);
    }

    #[test]
    fn numbers_in_strings_are_incremented() {
        assert_eq!(alternative_values(&json!("100m")), [json!("100mx"), json!("101m"), json!("x100m")]);
        assert_eq!(alternative_values(&json!(5)), [json!(11), json!(6)]);
        assert_eq!(alternative_values(&json!(1.5)), [json!(2.5)]);
    }
}
