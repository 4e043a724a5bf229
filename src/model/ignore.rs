//! Fields of objects that an app ignores, so that other managers may set them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::ObjectId;
use super::selector::name_matches;

/// The ignored fields of matching objects: Git sets them until another manager does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IgnoreRule {
    pub target: IgnoreTarget,
    pub paths: Vec<FieldPath>,
}

/// All that is given must hold; nothing is every object of the app.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IgnoreTarget {
    pub kind: Option<String>,
    /// A name or a shell pattern.
    pub name: Option<String>,
}

/// The rules of the apps that have any, by `namespace/name`.
pub type IgnoreRulesByApp = BTreeMap<Arc<str>, Vec<IgnoreRule>>;

/// The ignored fields of one object.
pub fn ignored_paths<'a>(rules: &'a [IgnoreRule], object: &ObjectId) -> Vec<&'a FieldPath> {
    let fits = |target: &IgnoreTarget| {
        target.kind.as_ref().is_none_or(|kind| **kind == *object.kind)
            && target.name.as_ref().is_none_or(|name| name_matches(name, &object.name))
    };
    rules.iter().filter(|rule| fits(&rule.target)).flat_map(|rule| &rule.paths).collect()
}

/// A place in an object: `/spec/template/spec/containers/name=app/image`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<FieldPathStep>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldPathStep {
    Field(String),
    /// The item of a list with these values, as texts.
    Item(Vec<(String, String)>),
    /// The item of a list that is this value, as text.
    Value(String),
}

impl FieldPath {
    /// Parses a JSON pointer. List items are named by their content, because their index is not stable.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err("it does not begin with `/`".to_owned());
        };
        rest.split('/').map(FieldPathStep::parse).collect::<Result<_, _>>().map(Self)
    }

    pub fn steps(&self) -> &[FieldPathStep] {
        &self.0
    }

    /// Whether it is exactly these fields.
    pub fn equals(&self, fields: &[&str]) -> bool {
        self.0.len() == fields.len() && self.starts_with(fields)
    }

    /// Whether these fields are it, or below it.
    pub fn contains(&self, fields: &[&str]) -> bool {
        self.0.len() <= fields.len() && self.starts_with(&fields[..self.0.len()])
    }

    /// Whether it is these fields or below them.
    pub fn starts_with(&self, fields: &[&str]) -> bool {
        let named = |(step, field): (&FieldPathStep, &&str)| matches!(step, FieldPathStep::Field(name) if name == field);
        self.0.len() >= fields.len() && self.0.iter().zip(fields).all(named)
    }
}

impl FieldPathStep {
    fn parse(text: &str) -> Result<Self, String> {
        let plain = |text: &str| text.replace("~1", "/").replace("~0", "~");
        match text.split_once('=') {
            _ if text.is_empty() => Err("a name in it is empty".to_owned()),
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                Err(format!("{text} is an index of a list, which does not identify an item"))
            }
            None => Ok(Self::Field(plain(text))),
            Some(("", value)) => Ok(Self::Value(plain(value))),
            Some(_) => {
                let pairs = text.split(',').map(|pair| match pair.split_once('=') {
                    Some((key, value)) if !key.is_empty() => Ok((plain(key), plain(value))),
                    _ => Err(format!("{text:?} is not of the form key=value")),
                });
                pairs.collect::<Result<_, _>>().map(Self::Item)
            }
        }
    }

    /// Whether it is this item of a list.
    pub fn is_item(&self, item: &Value) -> bool {
        match self {
            Self::Field(_) => false,
            Self::Item(pairs) => {
                pairs.iter().all(|(key, text)| item.get(key).is_some_and(|value| is_text(value, text)))
            }
            Self::Value(text) => is_text(item, text),
        }
    }
}

fn is_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(value) => value == text,
        // Keys may be numbers.
        value => {
            let shown = value.to_string();
            shown == text
        }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped = |text: &str| text.replace('~', "~0").replace('/', "~1");
        for step in &self.0 {
            f.write_str("/")?;
            match step {
                FieldPathStep::Field(name) => f.write_str(&escaped(name))?,
                FieldPathStep::Value(text) => write!(f, "={}", escaped(text))?,
                FieldPathStep::Item(pairs) => {
                    for (index, (key, value)) in pairs.iter().enumerate() {
                        let comma = if index == 0 { "" } else { "," };
                        write!(f, "{comma}{}={}", escaped(key), escaped(value))?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Serialize for FieldPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_read_and_written() {
        for text in [
            "/spec/replicas",
            "/metadata/annotations/kubectl.kubernetes.io~1restartedAt",
            "/spec/template/spec/containers/name=app/image",
            "/spec/ports/port=80,protocol=TCP/nodePort",
            "/metadata/finalizers/=example.com~1keep",
        ] {
            assert_eq!(FieldPath::parse(text).map(|path| path.to_string()), Ok(text.to_owned()));
        }
        for (text, why) in [
            ("spec", "it does not begin with `/`"),
            ("/spec//a", "a name in it is empty"),
            ("/", "a name in it is empty"),
            ("/spec/containers/0", "0 is an index of a list, which does not identify an item"),
            ("/spec/ports/port=80,tcp", "\"port=80,tcp\" is not of the form key=value"),
        ] {
            assert_eq!(FieldPath::parse(text), Err(why.to_owned()));
        }
    }

    #[test]
    fn list_items_match_by_content() {
        let path = FieldPath::parse("/ports/port=80,protocol=TCP").expect("a path");
        let check =
            |item: Value, expected: bool| assert_eq!(path.steps()[1].is_item(&item), expected, "{item}");
        check(json!({"port": 80, "protocol": "TCP", "name": "web"}), true);
        check(json!({"port": 80, "protocol": "UDP"}), false);
        check(json!({"port": 80}), false);
    }

    #[test]
    fn rules_select_objects() {
        let path = |text: &str| FieldPath::parse(text).expect("a path");
        let rule = |kind: Option<&str>, name: Option<&str>, text: &str| IgnoreRule {
            target: IgnoreTarget { kind: kind.map(str::to_owned), name: name.map(str::to_owned) },
            paths: vec![path(text)],
        };
        let rules = [
            rule(None, None, "/metadata/annotations/a"),
            rule(Some("Deployment"), Some("web*"), "/spec/replicas"),
            rule(Some("Service"), None, "/spec/ports"),
        ];
        let check = |kind: &str, name: &str, expected: &[&str]| {
            let object = ObjectId::new("", kind, Some("shop"), name);
            let found: Vec<String> = ignored_paths(&rules, &object).iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        };
        check("Deployment", "web-1", &["/metadata/annotations/a", "/spec/replicas"]);
        check("Deployment", "pay", &["/metadata/annotations/a"]);
        check("Service", "web", &["/metadata/annotations/a", "/spec/ports"]);
    }
}
