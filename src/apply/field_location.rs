//! Paths in an object as API servers write them in a conflict: `.spec.template.spec.containers[name="app"].image`.

use serde_json::{Map, Value};

use super::managed_fields::ItemKey;
use crate::model::{FieldPath, FieldPathStep};

#[derive(Clone, Debug, PartialEq, Eq)]
enum LocationStep {
    Field(String),
    Index(usize),
}

/// A path that exists in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldLocation(Vec<LocationStep>);

impl FieldLocation {
    /// Resolves a path in an object. A name may contain dots, so only the object shows what is meant.
    pub fn find(object: &Value, text: &str) -> Option<Self> {
        let mut way = Vec::new();
        find(object, text, &mut way).then_some(Self(way))
    }

    fn get<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |value, step| match step {
            LocationStep::Field(name) => value.get(name),
            LocationStep::Index(index) => value.get(index),
        })
    }

    /// Whether an apply of the object owns this field: null and empty lists have no owner.
    pub fn is_owned(&self, object: &Value) -> bool {
        self.get(object)
            .is_some_and(|value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()))
    }

    /// Whether a path names the field or one of its parents.
    pub fn is_within(&self, path: &FieldPath, object: &Value) -> bool {
        let mut value = Some(object);
        let mut fits = |(wanted, step): (&FieldPathStep, &LocationStep)| {
            value = match step {
                LocationStep::Field(name) => value.and_then(|value| value.get(name)),
                LocationStep::Index(index) => value.and_then(|value| value.get(index)),
            };
            match (wanted, step) {
                (FieldPathStep::Field(wanted), LocationStep::Field(name)) => wanted == name,
                (wanted, LocationStep::Index(_)) => value.is_some_and(|item| wanted.is_item(item)),
                _ => false,
            }
        };
        path.steps().len() <= self.0.len() && path.steps().iter().zip(&self.0).all(&mut fits)
    }

    /// Removes the field, and parents that are empty without it: an empty map in an apply is owned too.
    pub fn remove(&self, object: &mut Value) {
        remove_steps(object, &self.0);
    }
}

/// Returns whether the value is empty afterwards.
fn remove_steps(value: &mut Value, steps: &[LocationStep]) -> bool {
    let Some((step, rest)) = steps.split_first() else { return true };
    match (step, value) {
        (LocationStep::Field(name), Value::Object(map)) => {
            if !map.get_mut(name).is_some_and(|below| remove_steps(below, rest)) {
                return false;
            }
            map.shift_remove(name);
            map.is_empty()
        }
        (LocationStep::Index(index), Value::Array(items)) => {
            if !items.get_mut(*index).is_some_and(|below| remove_steps(below, rest)) {
                return false;
            }
            items.remove(*index);
            items.is_empty()
        }
        _ => false,
    }
}

fn find(value: &Value, text: &str, way: &mut Vec<LocationStep>) -> bool {
    if text.is_empty() {
        return true;
    }
    match value {
        Value::Object(map) => {
            let Some(text) = text.strip_prefix('.') else { return false };
            let ends = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
            map.iter().any(|(name, value)| {
                let Some(rest) = text.strip_prefix(name.as_str()).filter(|rest| ends(rest)) else {
                    return false;
                };
                way.push(LocationStep::Field(name.clone()));
                let found = find(value, rest, way);
                if !found {
                    way.pop();
                }
                found
            })
        }
        Value::Array(items) => {
            let Some((index, rest)) = item(items, text) else { return false };
            let Some(value) = items.get(index) else { return false };
            way.push(LocationStep::Index(index));
            let found = find(value, rest, way);
            if !found {
                way.pop();
            }
            found
        }
        _ => false,
    }
}

/// Resolves `[name="app"]`, `[="x"]` or `[0]` to an item, and returns the rest of the path.
fn item<'t>(items: &[Value], text: &'t str) -> Option<(usize, &'t str)> {
    let text = text.strip_prefix('[')?;
    if let Some((number, rest)) = text.split_once(']')
        && let Ok(index) = number.parse()
    {
        return Some((index, rest));
    }
    let (key, rest) = match text.strip_prefix('=') {
        Some(text) => {
            let (value, rest) = leading(text)?;
            (ItemKey::Value(value), rest)
        }
        None => {
            let (mut keys, mut rest) = (Map::new(), text);
            loop {
                let (name, after) = rest.split_once('=')?;
                let (value, after) = leading(after)?;
                keys.insert(name.to_owned(), value);
                match after.strip_prefix(',') {
                    Some(more) => rest = more,
                    None => break (ItemKey::Keys(keys), after),
                }
            }
        }
    };
    let index = key.find(items)?;
    Some((index, rest.strip_prefix(']')?))
}

/// The JSON value at the start of a text, and the rest.
fn leading(text: &str) -> Option<(Value, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({
            "metadata": {"annotations": {"a.b": "1", "a.b.c/d": "2"}, "finalizers": ["x", "y]"]},
            "spec": {"replicas": 2, "paused": null, "args": [], "containers": [
                {"name": "app", "image": "web:1", "ports": [{"containerPort": 80}]}, {"name": "proxy", "image": "p:1"}]},
        })
    }

    #[test]
    fn places_are_found_in_the_object() {
        let check = |text: &str, expected: Option<Value>| {
            let object = object();
            let found = FieldLocation::find(&object, text);
            assert_eq!(found.and_then(|place| place.get(&object).cloned()), expected, "{text}");
        };
        check(".spec.replicas", Some(json!(2)));
        check(".metadata.annotations.a.b.c/d", Some(json!("2")));
        check(".metadata.annotations.a.b", Some(json!("1")));
        check(".metadata.annotations.a", None);
        check(".spec.containers[name=\"proxy\"].image", Some(json!("p:1")));
        // A key with a default may be missing.
        check(
            ".spec.containers[name=\"app\"].ports[containerPort=80,protocol=\"TCP\"].containerPort",
            Some(json!(80)),
        );
        check(".metadata.finalizers[=\"y]\"]", Some(json!("y]")));
        check(".spec.containers[1].name", Some(json!("proxy")));
        check(".spec.containers[name=\"db\"].image", None);
        check(".spec.other", None);
    }

    #[test]
    fn null_and_empty_lists_have_no_owner() {
        let check = |text: &str, expected: bool| {
            let object = object();
            assert_eq!(
                FieldLocation::find(&object, text).is_some_and(|it| it.is_owned(&object)),
                expected,
                "{text}"
            );
        };
        check(".spec.replicas", true);
        check(".spec.paused", false);
        check(".spec.args", false);
    }

    #[test]
    fn paths_include_nested_fields() {
        let check = |text: &str, path: &str, expected: bool| {
            let (object, path) = (object(), FieldPath::parse(path).expect("a path"));
            let place = FieldLocation::find(&object, text).expect("a place");
            assert_eq!(place.is_within(&path, &object), expected, "{text} {path}");
        };
        let image = ".spec.containers[name=\"app\"].image";
        check(image, "/spec/containers/name=app/image", true);
        check(image, "/spec/containers/name=app", true);
        check(image, "/spec/containers", true);
        check(image, "/spec/containers/name=proxy/image", false);
        check(".spec.containers", "/spec/containers/name=app", false);
        check(".metadata.finalizers[=\"x\"]", "/metadata/finalizers/=x", true);
    }

    #[test]
    fn a_place_is_taken_out() {
        let mut object = object();
        for text in [".spec.containers[name=\"app\"].image", ".metadata.finalizers[=\"x\"]"] {
            FieldLocation::find(&object, text).expect("a place").remove(&mut object);
        }
        assert_eq!(object["spec"]["containers"][0], json!({"name": "app", "ports": [{"containerPort": 80}]}));
        assert_eq!(object["metadata"]["finalizers"], json!(["y]"]));
        for text in
            [".metadata.finalizers[=\"y]\"]", ".metadata.annotations.a.b", ".metadata.annotations.a.b.c/d"]
        {
            FieldLocation::find(&object, text).expect("a place").remove(&mut object);
        }
        assert_eq!(object.get("metadata"), None, "nothing that is empty is left behind");
    }
}
