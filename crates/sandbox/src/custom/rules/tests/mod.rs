//! Rules on objects, with the messages of a real server.

mod cost;
mod expressions;
mod levels;
mod routes;
mod transitions;

use serde_json::{Value, json};

use super::{RuleNode, check};

/// The rule violations of an object, each as `field: message`.
fn said(schema: &Value, old: Option<&Value>, new: &Value) -> Vec<String> {
    let Some(node) = RuleNode::of("things.test.dev", schema) else { return Vec::new() };
    let errors = check(&node, "things.test.dev", schema, old, new, &[]);
    errors.iter().map(|one| format!("{}: {}", one.field, one.message)).collect()
}

/// A schema whose `spec` has these fields and rules.
fn of_spec(fields: &Value, rules: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields,
        "x-kubernetes-validations": rules}}})
}

fn thing(spec: &Value) -> Value {
    json!({"apiVersion": "test.dev/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": spec})
}
