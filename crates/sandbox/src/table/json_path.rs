//! The JSONPath of printer columns: fields, indexes, filters by equality.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
enum JsonPathStep {
    Field(String),
    Index(i64),
    All,
    /// `[?(@.type=="Ready")]`: the field's path, the operator's sense, the text.
    Filter(Vec<String>, bool, String),
    /// Something that is not understood finds nothing.
    Unknown,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonPath(Vec<JsonPathStep>);

impl JsonPath {
    pub(super) fn parse(text: &str) -> Self {
        let text = text.trim().trim_start_matches('{').trim_end_matches('}');
        let mut steps = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            match first {
                '.' => rest = rest.get(1..).unwrap_or(""),
                '[' => {
                    let end = bracket_end(rest);
                    steps.push(bracket(rest.get(1..end).unwrap_or("")));
                    rest = rest.get(end + 1..).unwrap_or("");
                }
                _ => {
                    let (name, after) = field(rest);
                    steps.push(if name == "*" { JsonPathStep::All } else { JsonPathStep::Field(name) });
                    rest = after;
                }
            }
        }
        Self(steps)
    }

    /// The first value that the path finds.
    pub(super) fn first(&self, object: &Value) -> Option<Value> {
        let mut found = vec![object];
        for step in &self.0 {
            found = found.into_iter().flat_map(|value| follow(value, step)).collect();
        }
        found.first().map(|value| (*value).clone())
    }
}

/// A name up to the next point or bracket; a backslash makes a point part of it.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next().map(|(_, next)| next)),
            '.' | '[' => return (name, text.get(at..).unwrap_or("")),
            _ => name.push(letter),
        }
    }
    (name, "")
}

/// Where the bracket that opens the text closes, quotes apart.
fn bracket_end(text: &str) -> usize {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, ']') => return at,
            _ => {}
        }
    }
    text.len()
}

fn bracket(inner: &str) -> JsonPathStep {
    let inner = inner.trim();
    if inner == "*" {
        return JsonPathStep::All;
    }
    if let Ok(index) = inner.parse() {
        return JsonPathStep::Index(index);
    }
    if let Some(filter) = inner.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        return self::filter(filter);
    }
    match unquoted(inner) {
        Some(name) => JsonPathStep::Field(name.replace("\\.", ".")),
        None => JsonPathStep::Unknown,
    }
}

fn unquoted(text: &str) -> Option<&str> {
    let text = text.trim();
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('\'').or_else(|| inner('"'))
}

fn filter(text: &str) -> JsonPathStep {
    let parts = text
        .split_once("==")
        .map(|(left, right)| (left, true, right))
        .or_else(|| text.split_once("!=").map(|(left, right)| (left, false, right)));
    let Some((left, equal, right)) = parts else { return JsonPathStep::Unknown };
    let Some(left) = left.trim().strip_prefix("@.") else { return JsonPathStep::Unknown };
    let right = unquoted(right).unwrap_or(right.trim());
    JsonPathStep::Filter(left.trim().split('.').map(str::to_owned).collect(), equal, right.to_owned())
}

fn follow<'v>(value: &'v Value, step: &JsonPathStep) -> Vec<&'v Value> {
    match (step, value) {
        (JsonPathStep::Field(name), Value::Object(fields)) => fields.get(name).into_iter().collect(),
        (JsonPathStep::Index(at), Value::Array(items)) => {
            let at = if *at < 0 { items.len() as i64 + at } else { *at };
            usize::try_from(at).ok().and_then(|at| items.get(at)).into_iter().collect()
        }
        (JsonPathStep::All, Value::Array(items)) => items.iter().collect(),
        (JsonPathStep::All, Value::Object(fields)) => fields.values().collect(),
        (JsonPathStep::Filter(path, equal, wanted), Value::Array(items)) => items
            .iter()
            .filter(|item| {
                let found = path.iter().try_fold(*item, |value, name| value.get(name));
                found.is_some_and(|found| (as_text(found) == *wanted) == *equal)
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(path: &str, expected: &Value) {
        let object = json!({
            "spec": {"a": 1, "list": [{"n": "x"}, {"n": "y"}], "dotted.name": true},
            "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}]},
        });
        assert_eq!(&JsonPath::parse(path).first(&object).unwrap_or_default(), expected, "{path}");
    }

    #[test]
    fn paths() {
        check(".spec.a", &json!(1));
        check("{.spec.a}", &json!(1));
        check(".spec.list[1].n", &json!("y"));
        check(".spec.list[-1].n", &json!("y"));
        check(".spec.list[*].n", &json!("x"));
        check(".spec.dotted\\.name", &json!(true));
        check(".spec['dotted.name']", &json!(true));
        check(".status.conditions[?(@.type==\"Ready\")].status", &json!("True"));
        check(".status.conditions[?(@.type=='Ready')].status", &json!("True"));
        check(".status.conditions[?(@.type!='A')].status", &json!("True"));
        check(".spec.none.at.all", &Value::Null);
        check(".spec.list[", &Value::Null);
    }
}
