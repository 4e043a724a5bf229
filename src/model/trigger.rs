//! Kind Trigger: a webhook payload about a build or a tag sets one value in a file of an app.

use serde_json::Value;

use super::{Location, SecretRef};

/// One manifest below `triggers/`.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    pub name: String,
    /// The receiver of `tutti.yaml` whose deliveries it looks at.
    pub receiver: Option<String>,
    /// All of them must hold.
    pub rules: Vec<TriggerMatchRule>,
    /// What `POST /api/v1/triggers/{name}` asks for.
    pub token: Option<SecretRef>,
    /// `namespace/name`, or the name alone.
    pub app: TriggerField,
    pub value: TriggerValue,
    pub target: TriggerTarget,
    pub write: TriggerWrite,
    pub location: Location,
    /// Of `receiver`.
    pub receiver_location: Option<Location>,
}

/// What a payload has at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerMatchRule {
    pub path: PayloadPath,
    /// One of these, each a value or a pattern.
    pub patterns: Vec<String>,
}

/// What is written.
#[derive(Clone, Debug, PartialEq)]
pub enum TriggerValue {
    Version(TriggerField),
    Image(TriggerField),
}

/// Where it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum TriggerTarget {
    /// `pins/RING.yaml` beside the manifest of the app.
    Pin { ring: TriggerField },
    /// A scalar of a file in the folder of the app.
    Field { file: TriggerField, field: String },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerWrite {
    #[default]
    PullRequest,
    Commit,
    /// Nothing is written; the response contains the change.
    None,
}

/// A template, and where it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct TriggerField {
    pub template: PayloadTemplate,
    pub location: Location,
}

/// `build.event`, `commits.0.id`: keys of maps, numbers of items of lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadPath(Vec<String>);

/// In bytes, of a template, of a path, and of what a template becomes.
const LONGEST_TEMPLATE: usize = 1024;
const LONGEST_PATH: usize = 256;
pub const LONGEST_TEMPLATE_RESULT: usize = 1024;

/// A text with `{{ path | filter }}` in it. It reads nothing but the payload, and has no loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadTemplate(Vec<PayloadTemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum PayloadTemplatePart {
    Text(String),
    Value { path: PayloadPath, filters: Vec<PayloadFilter> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PayloadFilter {
    /// Without `refs/heads/` or `refs/tags/` in front.
    StripRef,
    /// In the place of what is not there, null or empty.
    Default(String),
}

/// What is wrong with a template, and at which character of it, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadTemplateError {
    pub offset: usize,
    pub message: String,
}

impl PayloadPath {
    /// `None`: it is no path.
    pub fn parse(text: &str) -> Option<Self> {
        let is_key = |key: &str| {
            !key.is_empty() && key.chars().all(|it| it.is_ascii_alphanumeric() || "_-".contains(it))
        };
        let keys: Vec<String> = text.split('.').map(ToOwned::to_owned).collect();
        (text.len() <= LONGEST_PATH && keys.iter().all(|key| is_key(key))).then_some(Self(keys))
    }

    /// The scalar there, as text.
    pub fn scalar(&self, payload: &Value) -> Option<String> {
        let found = self.0.iter().try_fold(payload, |value, key| match value {
            Value::Object(map) => map.get(key),
            Value::Array(items) => items.get(key.parse::<usize>().ok()?),
            _ => None,
        })?;
        match found {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(boolean) => Some(boolean.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

impl std::fmt::Display for PayloadPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

impl PayloadTemplate {
    pub fn parse(text: &str) -> Result<Self, PayloadTemplateError> {
        let mistake = |at: usize, message: &str| {
            let at = text.get(..at).unwrap_or(text).chars().count();
            PayloadTemplateError { offset: at, message: message.to_owned() }
        };
        if text.len() > LONGEST_TEMPLATE {
            return Err(mistake(0, &format!("it has more than {LONGEST_TEMPLATE} bytes")));
        }
        let (mut parts, mut at) = (Vec::new(), 0);
        while let Some(open) = text[at..].find("{{").map(|open| at + open) {
            parts.push(PayloadTemplatePart::Text(text[at..open].to_owned()));
            let Some(length) = text[open..].find("}}") else {
                return Err(mistake(open, "`{{` without its `}}`"));
            };
            let inner = &text[open + 2..open + length];
            parts.push(parse_expression(inner).map_err(|message| mistake(open, &message))?);
            at = open + length + 2;
        }
        let rest = &text[at..];
        if let Some(other) = ["{%", "{#", "}}"].iter().find_map(|mark| rest.find(mark)) {
            return Err(mistake(at + other, "only `{{ … }}` is supported"));
        }
        parts.push(PayloadTemplatePart::Text(rest.to_owned()));
        parts.retain(|part| *part != PayloadTemplatePart::Text(String::new()));
        Ok(Self(parts))
    }

    /// The text, where it is always the same.
    pub fn constant(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [PayloadTemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// What it becomes with a payload; or which value is missing or too long.
    pub fn render(&self, payload: &Value) -> Result<String, String> {
        self.render_within(payload, LONGEST_TEMPLATE_RESULT)
    }

    /// The same, within so many bytes.
    pub fn render_within(&self, payload: &Value, most: usize) -> Result<String, String> {
        let mut made = String::new();
        for part in &self.0 {
            match part {
                PayloadTemplatePart::Text(text) => made.push_str(text),
                PayloadTemplatePart::Value { path, filters } => {
                    let found = path.scalar(payload);
                    let value = filters.iter().fold(found, |value, filter| filter.apply(value));
                    made.push_str(&value.ok_or_else(|| format!("the payload has no value at `{path}`"))?);
                }
            }
            if made.len() > most {
                return Err(format!("it becomes longer than {most} bytes"));
            }
        }
        Ok(made)
    }
}

/// `a.b | strip_ref | default('x')`, without the braces.
fn parse_expression(text: &str) -> Result<PayloadTemplatePart, String> {
    let mut pieces = split_filters(text)?.into_iter();
    let path = pieces.next().unwrap_or_default();
    let path = PayloadPath::parse(path.trim())
        .ok_or_else(|| format!("`{}` is not a path of a payload, such as build.ref", path.trim()))?;
    let filters = pieces.map(|piece| PayloadFilter::parse(piece.trim())).collect::<Result<_, _>>()?;
    Ok(PayloadTemplatePart::Value { path, filters })
}

/// What stands between the `|`, of which there may be some in a text.
fn split_filters(text: &str) -> Result<Vec<&str>, String> {
    let (mut pieces, mut from, mut quote) = (Vec::new(), 0, None);
    for (at, letter) in text.char_indices() {
        match quote {
            Some(open) if open == letter => quote = None,
            Some(_) => {}
            None if matches!(letter, '\'' | '"') => quote = Some(letter),
            None if letter == '|' => {
                pieces.push(&text[from..at]);
                from = at + 1;
            }
            None => {}
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    pieces.push(&text[from..]);
    Ok(pieces)
}

impl PayloadFilter {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "strip_ref" {
            return Ok(Self::StripRef);
        }
        let argument = text.strip_prefix("default(").and_then(|rest| rest.strip_suffix(')'));
        let quoted = argument.map(str::trim).and_then(|text| {
            let unquoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
            unquoted('\'').or_else(|| unquoted('"'))
        });
        match quoted.filter(|text| !text.contains(['\'', '"'])) {
            Some(text) => Ok(Self::Default(text.to_owned())),
            None => Err(format!("unknown filter `{text}`; there are strip_ref and default('…')")),
        }
    }

    fn apply(&self, value: Option<String>) -> Option<String> {
        match self {
            Self::StripRef => value.map(|text| {
                let short = ["refs/heads/", "refs/tags/"].iter().find_map(|it| text.strip_prefix(it));
                short.map_or_else(|| text.clone(), ToOwned::to_owned)
            }),
            Self::Default(other) => {
                Some(value.filter(|text| !text.is_empty()).unwrap_or_else(|| other.clone()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn templates_read_the_payload_alone() {
        let payload = json!({
            "repo": {"name": "pay", "slug": "shop/pay"}, "build": {"number": 7, "ref": "refs/tags/v1.8", "deploy_to": ""},
            "commits": [{"id": "abc"}], "ok": true, "none": null, "text": "{{ repo.name }}", "long": "x".repeat(2000),
        });
        let check = |template: &str, expected: Result<&str, &str>| {
            let made = PayloadTemplate::parse(template).expect("a template").render(&payload);
            assert_eq!(made, expected.map(ToOwned::to_owned).map_err(ToOwned::to_owned), "{template}");
        };
        check("", Ok(""));
        check("pay", Ok("pay"));
        check("a{b}c", Ok("a{b}c"));
        check("{{repo.name}}", Ok("pay"));
        check("reg/{{ repo.slug }}:{{ build.ref | strip_ref }}", Ok("reg/shop/pay:v1.8"));
        check("{{ build.number }}-{{ ok }}", Ok("7-true"));
        check("{{ commits.0.id }}", Ok("abc"));
        check("{{ build.deploy_to | default('test') }}", Ok("test"));
        check("{{ none | default(\"a|b\") }}", Ok("a|b"));
        check("{{ build.branch | default('refs/heads/main') | strip_ref }}", Ok("main"));
        // What the payload says is no template.
        check("{{ text }}", Ok("{{ repo.name }}"));
        check("{{ build.branch }}", Err("the payload has no value at `build.branch`"));
        check("{{ none }}", Err("the payload has no value at `none`"));
        check("{{ repo }}", Err("the payload has no value at `repo`"));
        check("{{ commits.9.id }}", Err("the payload has no value at `commits.9.id`"));
        check("{{ long }}", Err("it becomes longer than 1024 bytes"));
    }

    #[test]
    fn template_errors_have_their_offset() {
        let check = |template: &str, at: usize, message: &str| {
            let mistake = PayloadTemplate::parse(template).expect_err(template);
            assert_eq!((mistake.offset, mistake.message.as_str()), (at, message), "{template}");
        };
        check("ä{{ repo", 1, "`{{` without its `}}`");
        check("x{% for a in b %}", 1, "only `{{ … }}` is supported");
        check("{{ a }} }}", 8, "only `{{ … }}` is supported");
        check("{{ }}", 0, "`` is not a path of a payload, such as build.ref");
        check("{{ a() }}", 0, "`a()` is not a path of a payload, such as build.ref");
        check("{{ a.b['c'] }}", 0, "`a.b['c']` is not a path of a payload, such as build.ref");
        check("{{ a | upper }}", 0, "unknown filter `upper`; there are strip_ref and default('…')");
        check("{{ a | default(b) }}", 0, "unknown filter `default(b)`; there are strip_ref and default('…')");
        check("{{ a | default('b }}", 0, "a quote is not closed");
        check(&"x".repeat(1025), 0, "it has more than 1024 bytes");
    }
}
