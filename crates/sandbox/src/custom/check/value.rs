//! Validates one value, and recursively its parts, against a schema.

use regex::Regex;
use serde_json::{Map, Value};

use super::super::schema::{self, is, list, number, text, types};
use super::findings::{FindingPath, SchemaFindings};
use super::{formats, junctors, numbers};

/// Validates `new` at `name` below `base`. A value equal to `old` passes.
pub(super) fn check(
    base: &str,
    name: &str,
    schema: &Value,
    new: &Value,
    old: Option<&Value>,
) -> SchemaFindings {
    let place = FindingPath { base, name };
    let mut found = SchemaFindings::default();
    if new.is_null() {
        found.merge(of_type(place, schema, new));
        found.merge(of_enum(place, schema, new));
    } else {
        run(place, schema, new, old, &mut found);
    }
    if !found.is_valid() && old == Some(new) {
        return SchemaFindings::default();
    }
    found
}

fn run(place: FindingPath<'_>, schema: &Value, new: &Value, old: Option<&Value>, found: &mut SchemaFindings) {
    let mut step = |part: SchemaFindings| {
        found.merge(part);
        found.matches += 1;
    };
    if !types(schema).is_empty() || !formats::of(schema).is_empty() {
        step(of_type(place, schema, new));
    }
    let check_below = |below: &Value| check(place.base, place.name, below, new, old);
    step(junctors::check(place, schema, &check_below));
    match new {
        Value::String(value) => {
            step(of_text(place, schema, new, value));
            if formats::is_checked(formats::of(schema)) {
                step(of_format(place, schema, value));
            }
        }
        Value::Number(_) => step(numbers::check(place, schema, new)),
        Value::Array(items) => step(of_items(place, schema, items, old)),
        _ => {}
    }
    step(of_enum(place, schema, new));
    if let Value::Object(fields) = new {
        step(of_fields(place, schema, fields, old));
    }
    found.matches += 1;
}

fn of_type(place: FindingPath<'_>, schema: &Value, value: &Value) -> SchemaFindings {
    let wanted = types(schema);
    let format = formats::of(schema);
    let failed = |wanted: &str, found: &str| SchemaFindings {
        errors: vec![place.wrong_type(wanted, found)],
        matches: 0,
    };
    let passed = || SchemaFindings { errors: Vec::new(), matches: 1 };
    if value.is_null() {
        return match wanted.is_empty() || is(schema, "nullable") {
            true => passed(),
            false => failed(&wanted.join(","), "null"),
        };
    }
    let (found, found_format) = numbers::type_of(value);
    let whole = numbers::is_whole(value) && found == "number" && wanted.contains(&"integer");
    let widened = found == "integer" && wanted.contains(&"number");
    let fits = wanted.contains(&found) || whole || widened;
    let texty = value.is_string() || value.is_array();
    if !format.is_empty() && !texty && !fits && found_format != format {
        return failed(format, found_format);
    }
    if !format.is_empty() && texty && !wanted.contains(&"number") && !wanted.contains(&"integer") {
        return passed();
    }
    if fits { passed() } else { failed(&wanted.join(","), found) }
}

fn of_text(place: FindingPath<'_>, schema: &Value, value: &Value, text_of_it: &str) -> SchemaFindings {
    let length = text_of_it.chars().count() as i64;
    let pattern = text(schema, "pattern");
    let error = if let Some(most) = number(schema, "maxLength").filter(|most| length > *most) {
        Some(place.too_long(most))
    } else if let Some(least) = number(schema, "minLength").filter(|least| length < *least) {
        Some(place.invalid(value, &format!("should be at least {least} chars long")))
    } else if !pattern.is_empty() && !Regex::new(pattern).is_ok_and(|regex| regex.is_match(text_of_it)) {
        Some(place.invalid(value, &format!("should match '{pattern}'")))
    } else {
        None
    };
    SchemaFindings { errors: error.into_iter().collect(), matches: 0 }
}

fn of_format(place: FindingPath<'_>, schema: &Value, text: &str) -> SchemaFindings {
    let format = formats::of(schema);
    let mut found = SchemaFindings::default();
    if !formats::fits(format, text) {
        found.add(place.wrong_type(format, text));
    }
    found
}

fn of_enum(place: FindingPath<'_>, schema: &Value, value: &Value) -> SchemaFindings {
    let allowed = list(schema, "enum");
    let same = |one: &Value| one == value || numbers::same(one, value);
    let mut found = SchemaFindings::default();
    if !allowed.is_empty() && !allowed.iter().any(same) {
        found.add(place.not_supported(value, allowed));
    }
    found
}

fn of_items(place: FindingPath<'_>, schema: &Value, items: &[Value], old: Option<&Value>) -> SchemaFindings {
    let mut found = SchemaFindings::default();
    if let Some(below) = schema::items(schema) {
        for (at, item) in items.iter().enumerate() {
            let name = format!("{}[{at}]", place.name);
            found.merge(check(place.base, &name, below, item, counterpart(schema, item, old)));
        }
    }
    let size = Value::from(items.len());
    if let Some(least) = number(schema, "minItems").filter(|least| (items.len() as i64) < *least) {
        found.add(place.invalid(&size, &format!("should have at least {least} items")));
    }
    if let Some(most) = number(schema, "maxItems").filter(|most| items.len() as i64 > *most) {
        found.add(place.too_many(items.len(), most));
    }
    found.matches += 1;
    found
}

/// The item of the old list that has the same keys; items of other lists have none.
fn counterpart<'o>(schema: &Value, item: &Value, old: Option<&'o Value>) -> Option<&'o Value> {
    let keys = list(schema, "x-kubernetes-list-map-keys");
    if keys.is_empty() {
        return None;
    }
    let same = |one: &&Value| keys.iter().filter_map(Value::as_str).all(|key| one.get(key) == item.get(key));
    old?.as_array()?.iter().find(same)
}

fn of_fields(
    place: FindingPath<'_>,
    schema: &Value,
    fields: &Map<String, Value>,
    old: Option<&Value>,
) -> SchemaFindings {
    let mut found = SchemaFindings::default();
    let size = fields.len() as i64;
    if let Some(least) = number(schema, "minProperties").filter(|least| size < *least) {
        let why = format!("should have at least {least} properties");
        found.add(place.invalid(&Value::from(size), &why));
    }
    if let Some(most) = number(schema, "maxProperties").filter(|most| size > *most) {
        found.add(place.too_many(fields.len(), most));
    }
    let was = |name: &str| old.and_then(|old| old.get(name));
    let more = schema::additional(schema);
    for (name, field) in fields {
        if schema::property(schema, name).is_some() {
            continue;
        }
        if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            let below = format!("{}.{name}", place.name);
            let mut error = place.invalid(&Value::from(name.as_str()), "");
            error.message = format!("Invalid value: {name:?}: {below} in body is a forbidden property");
            found.add(error);
        } else if let Some(more) = more {
            let below = format!("{}.{name}", place.name);
            found.merge(check(place.base, &below, more, field, was(name)));
        }
    }
    for (name, declared) in schema::properties(schema) {
        let Some(field) = fields.get(name) else { continue };
        let below = if place.name.is_empty() { name.clone() } else { format!("{}.{name}", place.name) };
        found.merge(check(place.base, &below, declared, field, was(name)));
    }
    for name in list(schema, "required").iter().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            found.add(place.required(name));
        }
    }
    found
}
