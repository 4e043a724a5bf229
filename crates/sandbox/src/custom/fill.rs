//! Defaults of a schema, and nulls that it does not allow.

use serde_json::{Map, Value};

use super::{prune, schema};

/// Processes an object of a custom kind as the server does on reading: drops unknown fields, then forbidden nulls, then
/// sets defaults.
pub(crate) fn fill(root: &Value, object: &mut Value) {
    prune::prune(object, root);
    drop_nulls(object, Some(root));
    defaults(object, root);
}

fn field_schema<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema::property(schema, name).or_else(|| schema::additional(schema))
}

fn is_forbidden_null(value: &Value, schema: &Value) -> bool {
    value.is_null() && !schema::is(schema, "nullable")
}

/// The same of an object that was merged by an apply, whose nulls stay: one that is not allowed is refused later.
pub(crate) fn fill_applied(root: &Value, object: &mut Value) {
    prune::prune(object, root);
    defaults(object, root);
}

/// Removes nulls where the schema neither allows them nor has a default for them.
fn drop_nulls(value: &mut Value, schema: Option<&Value>) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, field| {
                let below = schema.and_then(|schema| field_schema(schema, name));
                !below
                    .is_some_and(|below| is_forbidden_null(field, below) && schema::default(below).is_none())
            });
            for (name, field) in fields {
                drop_nulls(field, schema.and_then(|schema| field_schema(schema, name)));
            }
        }
        Value::Array(items) => {
            for item in items {
                drop_nulls(item, schema.and_then(schema::items));
            }
        }
        _ => {}
    }
}

fn defaults(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            fill_missing(fields, schema);
            for (name, field) in fields {
                let Some(below) = field_schema(schema, name) else { continue };
                let declared = schema::property(schema, name).is_some();
                if !declared && is_forbidden_null(field, below) {
                    *field = schema::default(below).cloned().unwrap_or_default();
                }
                defaults(field, below);
            }
        }
        Value::Array(items) => {
            let Some(below) = schema::items(schema) else { return };
            for item in items {
                if is_forbidden_null(item, below) {
                    *item = schema::default(below).cloned().unwrap_or_default();
                }
                defaults(item, below);
            }
        }
        _ => {}
    }
}

fn fill_missing(fields: &mut Map<String, Value>, schema: &Value) {
    for (name, below) in schema::properties(schema) {
        let Some(default) = schema::default(below) else { continue };
        let missing = fields.get(name).is_none_or(|field| is_forbidden_null(field, below));
        if missing {
            fields.insert(name.clone(), default.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(properties: &Value, sent: &Value, filled: &Value) {
        let root =
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
        let mut object = json!({"spec": sent});
        fill(&root, &mut object);
        assert_eq!(&object["spec"], filled, "{sent}");
    }

    #[test]
    fn defaults_at_every_depth() {
        let nested = json!({"n": {"type": "object", "default": {}, "properties": {
            "a": {"type": "string", "default": "x"},
            "b": {"type": "object", "properties": {"c": {"type": "integer", "default": 7}}}}}});
        check(&nested, &json!({}), &json!({"n": {"a": "x"}}));
        check(&nested, &json!({"n": {"b": {}}}), &json!({"n": {"b": {"c": 7}, "a": "x"}}));
        let items = json!({"l": {"type": "array", "items": {"type": "object",
            "properties": {"q": {"type": "string", "default": "d"}}}}});
        check(&items, &json!({"l": [{}, {"q": "1"}]}), &json!({"l": [{"q": "d"}, {"q": "1"}]}));
    }

    #[test]
    fn nulls_stay_only_where_they_are_allowed() {
        let properties = json!({"no": {"type": "string"}, "yes": {"type": "string", "nullable": true},
            "default": {"type": "string", "default": "d"},
            "both": {"type": "string", "default": "d", "nullable": true}});
        let sent = json!({"no": null, "yes": null, "default": null, "both": null});
        check(&properties, &sent, &json!({"yes": null, "default": "d", "both": null}));
    }
}
