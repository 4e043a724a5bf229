//! Fields that a schema does not declare are dropped.

use serde_json::{Map, Value};

use super::schema;
use crate::registry::ResourceKind;

const TYPE_AND_META: &[&str] = &["apiVersion", "kind", "metadata"];

/// The fields that metadata has.
const META: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Drops from an object what its kind does not declare; the paths of that, in order, those of
/// metadata last.
pub(super) fn prune(object: &mut Value, root: &Value) -> Vec<String> {
    let mut pruning = Pruning::default();
    pruning.walk(object, Some(root), true, &mut String::new());
    pruning.unknown.sort();
    pruning.unknown_meta.sort();
    pruning.unknown.append(&mut pruning.unknown_meta);
    pruning.unknown
}

pub(crate) fn unknown_fields(kind: &ResourceKind, object: &Value) -> Vec<String> {
    kind.schema.as_ref().map(|schema| prune(&mut object.clone(), schema)).unwrap_or_default()
}

/// Drops from a value, which is no resource, what a schema does not declare.
pub(super) fn prune_value(value: &mut Value, schema: &Value) {
    let is_resource = schema::is(schema, "x-kubernetes-embedded-resource");
    Pruning::default().walk(value, Some(schema), is_resource, &mut String::new());
}

#[derive(Default)]
struct Pruning {
    unknown: Vec<String>,
    unknown_meta: Vec<String>,
}

impl Pruning {
    fn walk(&mut self, value: &mut Value, schema: Option<&Value>, resource: bool, path: &mut String) {
        let keeps = schema.is_some_and(|schema| schema::is(schema, "x-kubernetes-preserve-unknown-fields"));
        match value {
            Value::Object(fields) => self.fields(fields, schema, keeps, resource, path),
            Value::Array(list) => {
                for (at, item) in list.iter_mut().enumerate() {
                    let length = path.len();
                    path.push_str(&format!("[{at}]"));
                    match schema.filter(|_| keeps) {
                        // what is below a list that keeps everything is kept as well
                        Some(schema) => {
                            if let Some(items) = schema::items(schema) {
                                self.below(item, items, true, path);
                            }
                        }
                        None => self.child(item, schema.and_then(schema::items), path),
                    }
                    path.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn child(&mut self, value: &mut Value, schema: Option<&Value>, path: &mut String) {
        let resource = schema.is_some_and(|schema| schema::is(schema, "x-kubernetes-embedded-resource"));
        self.walk(value, schema, resource, path);
    }

    fn below(&mut self, value: &mut Value, schema: &Value, keeps: bool, path: &mut String) {
        let resource = schema::is(schema, "x-kubernetes-embedded-resource");
        match value {
            Value::Object(fields) => self.fields(fields, Some(schema), keeps, resource, path),
            _ => self.walk(value, Some(schema), resource, path),
        }
    }

    fn fields(
        &mut self,
        fields: &mut Map<String, Value>,
        schema: Option<&Value>,
        keeps: bool,
        resource: bool,
        path: &mut String,
    ) {
        if resource && let Some(Value::Object(meta)) = fields.get_mut("metadata") {
            self.metadata(meta, path);
        }
        let root = path.is_empty();
        let names: Vec<String> = fields.keys().cloned().collect();
        for name in names {
            let known = TYPE_AND_META.contains(&name.as_str());
            if resource && known {
                continue;
            }
            let length = path.len();
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&name);
            let declared = schema.and_then(|schema| schema::property(schema, &name));
            let more = schema.is_some_and(schema::allows_more);
            match (declared, fields.get_mut(&name)) {
                (Some(declared), Some(field)) => self.child(field, Some(declared), path),
                (None, Some(field)) if more => {
                    self.child(field, schema.and_then(schema::additional), path);
                }
                (None, _) if !keeps => {
                    if !(known && root) {
                        self.unknown.push(path.clone());
                    }
                    fields.shift_remove(&name);
                }
                _ => {}
            }
            path.truncate(length);
        }
    }

    fn metadata(&mut self, meta: &mut Map<String, Value>, path: &str) {
        let parent = if path.is_empty() { String::new() } else { format!("{path}.") };
        meta.retain(|name, _| {
            let known = META.contains(&name.as_str());
            if !known {
                self.unknown_meta.push(format!("{parent}metadata.{name}"));
            }
            known
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, object: &Value, kept: &Value, unknown: &[&str]) {
        let mut pruned = object.clone();
        assert_eq!(prune(&mut pruned, schema), unknown, "{object}");
        assert_eq!(&pruned, kept, "{object}");
    }

    fn spec(properties: &Value) -> Value {
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
    }

    #[test]
    fn undeclared_fields_go() {
        let schema = spec(&json!({"a": {"type": "string"}}));
        let object =
            json!({"kind": "X", "metadata": {"name": "x", "odd": 1}, "spec": {"a": "1", "b": {}}, "top": 1});
        let kept = json!({"kind": "X", "metadata": {"name": "x"}, "spec": {"a": "1"}});
        check(&schema, &object, &kept, &["spec.b", "top", "metadata.odd"]);
    }

    #[test]
    fn preserved_fields_prune_only_below_declared_ones() {
        let schema = spec(&json!({
            "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"known": {"type": "object", "properties": {"x": {"type": "string"}}}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"q": {"type": "string"}}}},
        }));
        check(
            &schema,
            &json!({"spec": {"raw": {"z": {"y": 1}, "known": {"x": "", "y": 1}}, "list": [{}, {"u": 1}]}}),
            &json!({"spec": {"raw": {"z": {"y": 1}, "known": {"x": ""}}, "list": [{}, {}]}}),
            &["spec.list[1].u", "spec.raw.known.y"],
        );
    }

    #[test]
    fn maps_keep_their_keys() {
        let schema = spec(&json!({"dict": {"type": "object", "additionalProperties": {"type": "object"}}}));
        let object = json!({"spec": {"dict": {"a": {"b": 1}}}});
        check(&schema, &object, &json!({"spec": {"dict": {"a": {}}}}), &["spec.dict.a.b"]);
    }

    #[test]
    fn an_embedded_resource_keeps_type_and_metadata() {
        let schema = spec(&json!({"t": {"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object"}}}}));
        let object = json!({"spec": {"t": {"kind": "Pod", "metadata": {"odd": 1}, "spec": {"y": 1}}}});
        let kept = json!({"spec": {"t": {"kind": "Pod", "metadata": {}, "spec": {}}}});
        check(&schema, &object, &kept, &["spec.t.spec.y", "spec.t.metadata.odd"]);
    }
}
