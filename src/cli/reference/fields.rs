//! The fields of the manifests as text: `docs/reference/fields.md`, which `cargo xtask docs` writes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::manifest::hub::Hub;
use crate::manifest::kinds::ManifestKind;
use crate::manifest::schema;
use crate::model::Snapshot;

const BEGIN: &str = "# Fields of manifests

Written by `cargo xtask docs` from the schemas in `src/manifest/schema`; a test holds it equal to them. `tutti schema KIND` prints a schema for an
editor. Rules between fields, examples and effects are in [the config repository](config-repository.md) and the pages that it names.
[HealthRule](health.md#rules-of-a-repository) and Conversion have no schema.

`a[].b` is the field `b` of each item of the list `a`; `a.*.b` is the field `b` of each value of the map `a`. The column default has `required` if a
manifest without the field is an error. It is empty if an absent field has no effect, or the effect in its description.

| type | form |
|---|---|
| DNS label | lower-case letters, digits and `-`; at most 63 characters |
| DNS name | DNS labels with dots between; at most 253 characters |
| word | a text without spaces |
| duration | `90s`, `10m`, `1h30m` |
| time zone | a name of the IANA database, such as `Asia/Shanghai` |
| quantity | as in Kubernetes: `500m`, `2Gi` |
| CEL | an [expression](policies.md) |
| template | a text in which `{{ path }}` reads the payload |

## Of every kind
The tables of the kinds list the fields of `spec`.

| field | type | default | description |
|---|---|---|---|
| `apiVersion` | text | required | One of the versions that the section of the kind lists; the first is the native one. |
| `kind` | text | required | Name of the kind: the heading of its section. |
| `metadata.name` | DNS label or DNS name | required | Name of the manifest, unique within its kind; for an app, among all apps of its namespace. |
| `metadata.namespace` | DNS label | `defaults.namespace` of the Instance | Namespace of an app or Route; a Route without it belongs to an app in its folder. |
| `metadata.labels` | map of label values |  | Labels of the manifest, as in Kubernetes. |
| `metadata.annotations` | map of texts |  | Annotations, as in Kubernetes; tutti reads [some](annotations.md#read-on-manifests-of-apps). |
";
const HEAD: &str = "| field | type | default | description |\n|---|---|---|---|\n";
/// Definitions that have a name of their own in the column of types.
const FORMS: [(&str, &str); 19] = [
    ("annotations", "map of texts"),
    ("dataKey", "key"),
    ("duration", "duration"),
    ("expression", "CEL"),
    ("facts", "map of facts"),
    ("label", "DNS label"),
    ("labelKey", "label key"),
    ("labelValue", "label value"),
    ("labels", "map of label values"),
    ("layer", "word"),
    ("mailbox", "mail address"),
    ("quantities", "map of quantities"),
    ("serverUrl", "URL"),
    ("subdomain", "DNS name"),
    ("template", "template"),
    ("texts", "map of texts"),
    ("timeZone", "time zone"),
    ("url", "URL"),
    ("word", "word"),
];

/// All kinds that have a schema, then the parts that their fields refer to.
///
/// # Errors
/// The schema of a kind is broken.
pub fn markdown() -> Result<String, String> {
    let (hub, _) = Hub::of(&Snapshot::of_texts([]));
    let mut text = BEGIN.to_owned();
    let mut parts = BTreeMap::new();
    for kind in schema::kinds() {
        let schema =
            schema::schema_of(kind, &hub).map_err(|mistakes| format!("{}: {mistakes:?}", kind.name()))?;
        let schema = schema.unwrap_or_default();
        write_kind(&mut text, kind, &schema, &schema::versions(kind, &hub));
        let definitions = schema["definitions"].as_object().into_iter().flatten();
        for (name, part) in definitions.filter(|(name, part)| form(name).is_none() && has_fields(part)) {
            parts.entry(name.clone()).or_insert_with(|| (part.clone(), schema.clone()));
        }
    }
    text += "\n## Parts\nWhat several fields have in common.\n";
    for (name, (part, schema)) in parts {
        // Writing to a text does not fail.
        let _ = writeln!(text, "\n### {name}\n{}", describe(&schema, &part));
        write_table(&mut text, &schema, &part);
    }
    Ok(text)
}

fn write_kind(text: &mut String, kind: ManifestKind, schema: &Value, versions: &[String]) {
    let namespace = schema.pointer("/properties/metadata/properties/namespace");
    let namespaced = if namespace.is_some() { " It has a namespace." } else { "" };
    let name = kind_of(schema, &schema["properties"]["metadata"]["properties"]["name"]);
    let versions: Vec<String> = versions.iter().map(|version| format!("`{version}`")).collect();
    let _ = writeln!(
        text,
        "\n## {}\n{}{namespaced} Its name is a {name}. `apiVersion`: {}.",
        kind.name(),
        describe(schema, schema),
        versions.join(", ")
    );
    write_table(text, schema, &schema["properties"]["spec"]);
}

fn write_table(text: &mut String, schema: &Value, part: &Value) {
    let mut rows = Vec::new();
    walk(schema, part, "", &mut rows);
    let _ = write!(text, "\n{HEAD}{}", rows.concat());
}

/// A row for each field of a part, and for those in it that no other table has.
fn walk(schema: &Value, part: &Value, prefix: &str, rows: &mut Vec<String>) {
    let required: Vec<&str> =
        part["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in part["properties"].as_object().into_iter().flatten() {
        let path = format!("{prefix}{name}");
        let default = match default(schema, field) {
            Some(default) => format!("`{}`", written(default)),
            None if required.contains(&name.as_str()) => "required".to_owned(),
            None => String::new(),
        };
        let cells = [format!("`{path}`"), kind_of(schema, field), default, describe(schema, field)];
        rows.push(format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | ")));
        walk(schema, field, &format!("{path}."), rows);
    }
    let inside = prefix.strip_suffix('.').unwrap_or(prefix);
    walk_below(schema, &part["items"], &format!("{inside}[]."), rows);
    walk_below(schema, &part["additionalProperties"], &format!("{prefix}*."), rows);
    // Of alternatives without a type, each only says what must stand beside what.
    let alternatives = part["anyOf"].as_array().into_iter().flatten();
    for other in alternatives.filter(|other| other["type"].is_string()) {
        walk_below(schema, other, prefix, rows);
    }
}

fn walk_below(schema: &Value, part: &Value, prefix: &str, rows: &mut Vec<String>) {
    if part.is_object() {
        walk(schema, part, prefix, rows);
    }
}

/// What a field is, in one cell.
fn kind_of(schema: &Value, part: &Value) -> String {
    if let Some(name) = reference(part) {
        let definition = &schema["definitions"][name];
        return match form(name) {
            Some(form) => form.to_owned(),
            None if has_fields(definition) => {
                let link = format!("[{name}](#{})", name.to_lowercase());
                match (definition["type"].as_str(), definition["properties"].is_object()) {
                    (Some("array"), _) => format!("list of {link}"),
                    (Some("object"), false) => format!("map of {link}"),
                    _ => link,
                }
            }
            None => kind_of(schema, definition),
        };
    }
    if let Some(values) = part["enum"].as_array() {
        return one_of(values);
    }
    for alternatives in ["anyOf", "allOf"] {
        if let Some(parts) = part[alternatives].as_array() {
            let mut kinds: Vec<String> = parts.iter().map(|part| kind_of(schema, part)).collect();
            kinds.retain(|kind| kind != "anything");
            kinds.dedup();
            if !kinds.is_empty() && !part["properties"].is_object() {
                let or = if kinds.iter().any(|kind| kind.contains(", ")) { ", or " } else { " or " };
                return kinds.join(or);
            }
        }
    }
    match &part["type"] {
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).map(word).collect();
            kinds.join(" or ")
        }
        Value::String(kind) => match kind.as_str() {
            "array" if part["items"]["properties"].is_object() => "list of objects".to_owned(),
            "array" => format!("list of {}", plural(&kind_of(schema, &part["items"]))),
            "object" if part["properties"].is_object() => "object".to_owned(),
            "object" if part["additionalProperties"].is_object() => {
                format!("map of {}", plural(&kind_of(schema, &part["additionalProperties"])))
            }
            "object" if part["additionalProperties"] == false => "`{}`".to_owned(),
            "integer" => match (part["minimum"].as_u64(), part["maximum"].as_u64()) {
                (Some(least), Some(most)) if most < 1_000_000 => format!("integer, {least} to {most}"),
                (Some(least @ 1..), _) => format!("integer, at least {least}"),
                _ => "integer".to_owned(),
            },
            kind => word(kind).to_owned(),
        },
        _ => "anything".to_owned(),
    }
}

fn word(kind: &str) -> &str {
    match kind {
        "string" => "text",
        "array" => "list",
        kind => kind,
    }
}

fn plural(kind: &str) -> String {
    if kind.ends_with(['t', 'd', 'r', 'l', 'y']) && !kind.contains('`') {
        return format!("{kind}s");
    }
    kind.to_owned()
}

/// Of values that differ in upper and lower case alone, the first.
fn one_of(values: &[Value]) -> String {
    let mut known: Vec<String> = Vec::new();
    for value in values.iter().map(written) {
        if !known.iter().any(|other| other.eq_ignore_ascii_case(&value)) {
            known.push(value);
        }
    }
    let known: Vec<String> = known.iter().map(|value| format!("`{value}`")).collect();
    format!("one of {}", known.join(", "))
}

/// As in YAML on one line.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| format!("{key}: {}", written(value));
            format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn describe(schema: &Value, part: &Value) -> String {
    let text = part["description"].as_str().or_else(|| {
        let definition = reference(part).map(|name| &schema["definitions"][name]);
        definition.and_then(|definition| definition["description"].as_str())
    });
    text.unwrap_or_default().to_owned()
}

fn default<'a>(schema: &'a Value, part: &'a Value) -> Option<&'a Value> {
    let of = |part: &'a Value| part.as_object().and_then(|part: &Map<String, Value>| part.get("default"));
    of(part).or_else(|| of(&schema["definitions"][reference(part)?]))
}

fn reference(part: &Value) -> Option<&str> {
    part["$ref"].as_str()?.strip_prefix("#/definitions/")
}

fn form(name: &str) -> Option<&'static str> {
    FORMS.iter().find(|(known, _)| *known == name).map(|(_, form)| *form)
}

/// There is something for a table of its own.
fn has_fields(part: &Value) -> bool {
    let of = |part: &Value| part["properties"].is_object();
    of(part) || of(&part["items"]) || of(&part["additionalProperties"])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn fields_md_is_what_the_schemas_are() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/fields.md");
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == markdown().unwrap(),
            "docs/reference/fields.md is stale: `cargo xtask docs` writes it anew"
        );
    }

    /// A part is written once, so it may not differ between kinds.
    #[test]
    fn parts_of_one_name_are_the_same() {
        let (hub, _) = Hub::of(&Snapshot::of_texts([]));
        let mut known: BTreeMap<String, Value> = BTreeMap::new();
        for kind in schema::kinds() {
            let schema = schema::schema_of(kind, &hub).unwrap().unwrap();
            for (name, part) in schema["definitions"].as_object().unwrap() {
                if form(name).is_none() && has_fields(part) {
                    assert_eq!(known.entry(name.clone()).or_insert_with(|| part.clone()), part, "{name}");
                }
            }
        }
    }

    #[test]
    fn every_row_has_a_description() {
        let text = markdown().unwrap();
        let rows = text.lines().filter(|line| line.starts_with("| `"));
        let empty: BTreeSet<&str> = rows.filter(|row| row.ends_with("|  |")).collect();
        assert!(empty.is_empty() && !text.contains("\n\n\n"), "{empty:?}");
    }

    #[test]
    fn field_is_a_row() {
        let schema = json!({
            "definitions": {
                "label": {"type": "string"},
                "share": {"type": "object", "description": "A share.", "properties": {"of": {"type": "string"}}},
                "soak": {"$ref": "#/definitions/duration", "default": "0s", "description": "How long."},
            },
            "required": ["name"],
            "properties": {
                "name": {"$ref": "#/definitions/label", "description": "Its name."},
                "soak": {"$ref": "#/definitions/soak"},
                "count": {"type": "integer", "minimum": 0, "maximum": 9, "default": 1, "description": "How | many."},
                "list": {"type": "array", "description": "L.", "items": {"properties": {"a": {"enum": ["x", "X"], "description": "A."}}}},
                "rings": {"type": "object", "description": "R.", "additionalProperties": {"type": "object", "properties": {
                    "share": {"$ref": "#/definitions/share"}}}},
            },
        });
        let mut rows = Vec::new();
        walk(&schema, &schema, "", &mut rows);
        let expected = [
            "| `name` | DNS label | required | Its name. |\n",
            "| `soak` | duration | `0s` | How long. |\n",
            "| `count` | integer, 0 to 9 | `1` | How \\| many. |\n",
            "| `list` | list of objects |  | L. |\n",
            "| `list[].a` | one of `x` |  | A. |\n",
            "| `rings` | map of objects |  | R. |\n",
            "| `rings.*.share` | [share](#share) |  | A share. |\n",
        ];
        assert_eq!(rows, expected);
    }
}
