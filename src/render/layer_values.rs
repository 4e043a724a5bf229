//! Merges the values of layers: maps merge, lists replace, null deletes.

use serde_json::{Map, Value};

use super::codes;
use super::render_job::RenderJob;
use super::template_layers::{TemplateLayer, TemplateLayers};
use crate::manifest::yaml;
use crate::model::{Diagnostic, Location, secret_masking};
use crate::sops;

pub fn values_of_layers(
    job: &RenderJob<'_>,
    layers: &TemplateLayers,
) -> Result<Map<String, Value>, Vec<Diagnostic>> {
    let mut merged = Map::new();
    let mut mistakes = Vec::new();
    for layer in &layers.list {
        match values_of_layer(job, layer) {
            Ok(values) => merge(&mut merged, values),
            Err(mut found) => mistakes.append(&mut found),
        }
    }
    if mistakes.is_empty() { Ok(merged) } else { Err(mistakes) }
}

pub fn values_of_layer(
    job: &RenderJob<'_>,
    layer: &TemplateLayer,
) -> Result<Map<String, Value>, Vec<Diagnostic>> {
    let Some(source) = &layer.values else { return Ok(Map::new()) };
    let values = yaml::parse_values(&source.path, &source.text).map_err(|mistakes| {
        let rescope = |mistake: Diagnostic| Diagnostic { scope: job.scope(), code: codes::VALUES, ..mistake };
        mistakes.into_iter().map(rescope).collect::<Vec<_>>()
    })?;
    refuse_encrypted(job, &values, &source.start()).map_err(|mistake| vec![*mistake])?;
    Ok(values)
}

pub fn refuse_encrypted(
    job: &RenderJob<'_>,
    values: &Map<String, Value>,
    file: &Location,
) -> Result<(), Box<Diagnostic>> {
    if sops::is_envelope(values.get(sops::SOPS_KEY)) || secret_masking::ciphertext_path(values).is_some() {
        return Err(Box::new(encrypted_values_mistake(job, file.clone())));
    }
    Ok(())
}

/// Encrypted values are not supported, and ciphertext must not be used.
pub fn encrypted_values_mistake(job: &RenderJob<'_>, file: Location) -> Diagnostic {
    let message = format!("{} is encrypted with SOPS, which is not supported here yet", file.file);
    let help = "only files of Objects apps that are not templates are opened";
    job.error(codes::NOT_SUPPORTED_YET, message).at(file).help(help)
}

/// Merges `upper` over `lower`.
pub fn merge(lower: &mut Map<String, Value>, upper: Map<String, Value>) {
    for (key, value) in upper {
        match (lower.get_mut(&key), value) {
            // Keeps the order of the other keys, so that the output is stable.
            (_, Value::Null) => {
                lower.shift_remove(&key);
            }
            (Some(Value::Object(lower)), Value::Object(upper)) => merge(lower, upper),
            (Some(place), value) => *place = without_nulls(value),
            (None, value) => {
                lower.insert(key, without_nulls(value));
            }
        }
    }
}

/// A null without a lower value leaves no key.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, without_nulls(value)))
                .collect(),
        ),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(lower: Value, upper: Value, expected: &Value) {
        let (Value::Object(mut merged), Value::Object(upper)) = (lower, upper) else { panic!("maps") };
        merge(&mut merged, upper);
        assert_eq!(&Value::Object(merged), expected);
    }

    #[test]
    fn maps_merge_lists_replace_null_deletes() {
        check(
            json!({"a": 1, "b": {"c": 1}}),
            json!({"b": {"d": 2}}),
            &json!({"a": 1, "b": {"c": 1, "d": 2}}),
        );
        check(json!({"a": [1, 2]}), json!({"a": [3]}), &json!({"a": [3]}));
        check(json!({"a": {"b": 1}}), json!({"a": 2}), &json!({"a": 2}));
        check(json!({"a": 2}), json!({"a": {"b": 1}}), &json!({"a": {"b": 1}}));
        check(json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": null}}), &json!({"a": {"c": 2}}));
        check(json!({}), json!({"a": {"b": null, "c": 2}, "d": null}), &json!({"a": {"c": 2}}));
        check(json!({"a": {"b": 1}}), json!({"a": {}}), &json!({"a": {"b": 1}}));
    }
}
