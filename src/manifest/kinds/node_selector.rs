//! A term that selects nodes, as Kubernetes has it.

use serde_json::{Value as Json, json};

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, ReadContext};

const OPERATORS: &[(&str, &str)] = &[
    ("In", "In"),
    ("NotIn", "NotIn"),
    ("Exists", "Exists"),
    ("DoesNotExist", "DoesNotExist"),
    ("Gt", "Gt"),
    ("Lt", "Lt"),
];

pub fn read(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Json> {
    let mut fields = ManifestFields::of(value, reading)?;
    let lists =
        ["matchExpressions", "matchFields"].map(|name| (name, fields.optional_selector(name, reading)));
    fields.finish(reading);
    let mut term = serde_json::Map::new();
    for (name, list) in lists {
        let Some(list) = list else { continue };
        let items = reading.list(&list)?;
        let read: Vec<Json> = items.iter().filter_map(|item| read_requirement(item, reading)).collect();
        if !read.is_empty() {
            term.insert(name.to_owned(), Json::Array(read));
        }
    }
    if term.is_empty() && reading.mistakes.is_empty() {
        let help = "give matchExpressions; a term without any fits no node";
        reading.bad_value(value, "`nodeSelectorTerm` is empty", help);
    }
    Some(Json::Object(term))
}

fn read_requirement(item: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Json> {
    let mut fields = ManifestFields::of(item, reading)?;
    let key = fields.required("key", reading).and_then(|key| reading.word(&key));
    let place = fields.required("operator", reading);
    let operator = place.as_ref().and_then(|operator| reading.choice(operator, OPERATORS, &[], false));
    let values = fields.optional("values", reading).and_then(|values| reading.texts(&values));
    fields.finish(reading);
    let (key, operator, values) = (key?, operator?, values.unwrap_or_default());
    let (fits, wanted) = match operator {
        "In" | "NotIn" => (!values.is_empty(), "at least one value"),
        "Gt" | "Lt" => {
            (values.len() == 1 && values.iter().all(|it| it.parse::<i64>().is_ok()), "one number as a text")
        }
        _ => (values.is_empty(), "no values"),
    };
    if !fits {
        let location = reading.location(place?.node);
        let message = format!("the operator {operator} needs {wanted}");
        reading.mistake(codes::BAD_VALUE, message, location, &item.path);
        return None;
    }
    Some(match values.as_slice() {
        [] => json!({"key": key, "operator": operator}),
        values => json!({"key": key, "operator": operator, "values": values}),
    })
}
