//! A value with its path in the object. The path becomes text only when an error is reported.

use std::fmt::Write as _;

use serde_json::Value;

static NULL: Value = Value::Null;

/// A value of an object, present or not, and the way to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldCursor<'p, 'v> {
    parent: Option<&'p FieldCursor<'p, 'v>>,
    step: FieldStep<'p>,
    value: &'v Value,
}

#[derive(Debug, Clone, Copy)]
enum FieldStep<'p> {
    Root,
    /// One field, or several with dots between them.
    Field(&'p str),
    Item(usize),
    Key(&'p str),
}

impl<'v> FieldCursor<'_, 'v> {
    pub(super) fn root(value: &'v Value) -> Self {
        Self { parent: None, step: FieldStep::Root, value }
    }

    /// A field below, or the field of a field: `template.spec`.
    pub(super) fn at<'p>(&'p self, path: &'p str) -> FieldCursor<'p, 'v> {
        let value = path.split('.').try_fold(self.value, |value, field| value.get(field)).unwrap_or(&NULL);
        FieldCursor { parent: Some(self), step: FieldStep::Field(path), value }
    }

    /// The same value under another name, as some messages call it.
    pub(super) fn called<'p>(&'p self, path: &'p str, value: &'v Value) -> FieldCursor<'p, 'v> {
        FieldCursor { parent: Some(self), step: FieldStep::Field(path), value }
    }

    /// The value of a map that is written `[key]`.
    pub(super) fn key<'p>(&'p self, key: &'p str) -> FieldCursor<'p, 'v> {
        let value = self.value.get(key).unwrap_or(&NULL);
        FieldCursor { parent: Some(self), step: FieldStep::Key(key), value }
    }

    pub(super) fn item<'p>(&'p self, index: usize) -> FieldCursor<'p, 'v> {
        let value = self.value.get(index).unwrap_or(&NULL);
        FieldCursor { parent: Some(self), step: FieldStep::Item(index), value }
    }

    /// The items of a list.
    pub(super) fn items<'p>(&'p self) -> impl Iterator<Item = FieldCursor<'p, 'v>> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(|(index, value)| FieldCursor {
            parent: Some(self),
            step: FieldStep::Item(index),
            value,
        })
    }

    /// The entries of a map, each written `[key]`.
    pub(super) fn entries<'p>(&'p self) -> impl Iterator<Item = (&'v str, FieldCursor<'p, 'v>)>
    where
        'v: 'p,
    {
        let fields = self.value.as_object().into_iter().flatten();
        fields.map(|(key, value)| {
            (key.as_str(), FieldCursor { parent: Some(self), step: FieldStep::Key(key), value })
        })
    }

    pub(super) fn value(&self) -> &'v Value {
        self.value
    }

    pub(super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.at(path).is_set()
    }

    /// Nothing, or nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self.value {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            Value::String(text) => text.len(),
            _ => 0,
        }
    }

    pub(super) fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or("")
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.value.as_str() == Some(text)
    }

    pub(super) fn integer(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// The integer, or zero.
    pub(super) fn number(&self) -> i64 {
        self.integer().unwrap_or(0)
    }

    pub(super) fn is_true(&self) -> bool {
        self.value.as_bool() == Some(true)
    }

    /// `spec.template.spec.containers[0].name`.
    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        self.write(&mut path);
        path
    }

    fn write(&self, path: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(path);
        }
        let written = match self.step {
            // some messages leave a step out
            FieldStep::Root | FieldStep::Field("") => Ok(()),
            FieldStep::Field(name) if path.is_empty() => path.write_str(name),
            FieldStep::Field(name) => write!(path, ".{name}"),
            FieldStep::Item(index) => write!(path, "[{index}]"),
            FieldStep::Key(key) => write!(path, "[{key}]"),
        };
        debug_assert!(written.is_ok(), "writing to a string never fails");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_knows_its_way() {
        let object = json!({"spec": {"ports": [{"name": "a"}], "limits": {"cpu": "1"}}});
        let root = FieldCursor::root(&object);
        let spec = root.at("spec");
        let ports = spec.at("ports");
        assert_eq!(ports.item(0).at("name").path(), "spec.ports[0].name");
        assert_eq!(ports.item(0).at("name").text(), "a");
        assert_eq!(spec.at("limits").key("cpu").path(), "spec.limits[cpu]");
        assert_eq!(root.at("spec.none.there").path(), "spec.none.there");
        assert!(!root.has("spec.none.there"));
    }
}
