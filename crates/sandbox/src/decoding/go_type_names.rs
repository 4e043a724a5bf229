//! Go type names, which the server's messages contain.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::schema::FieldDeclaration;

/// Where a field's type has a name of its own (`T`), and in which structs a field is embedded (`E`). OpenAPI knows
/// neither.
static FILE: &str = include_str!("../../schema/go-names.txt");

static NAMES: LazyLock<HashMap<&str, GoTypeNames>> = LazyLock::new(|| {
    let mut names: HashMap<&str, GoTypeNames> = HashMap::new();
    for line in FILE.lines() {
        if let [mark, field, name] = line.split(' ').collect::<Vec<_>>()[..] {
            let known = names.entry(field).or_default();
            match mark {
                "T" => known.of_type = Some(name),
                _ => known.embedded = Some(name),
            }
        }
    }
    names
});

#[derive(Debug, Default, Clone, Copy)]
struct GoTypeNames {
    of_type: Option<&'static str>,
    embedded: Option<&'static str>,
}

fn names_of(definition: &str, field: &str) -> GoTypeNames {
    NAMES.get(format!("{definition}.{field}").as_str()).copied().unwrap_or_default()
}

/// The structs between a struct and a field that is embedded into it.
pub(super) fn embedded(definition: &str, field: &str) -> impl Iterator<Item = &'static str> {
    names_of(definition, field).embedded.into_iter().flat_map(|path| path.split('.'))
}

/// The type of a field that has a name of its own.
pub(super) fn named_type(definition: &str, field: &str) -> Option<&'static str> {
    names_of(definition, field).of_type
}

/// `DeploymentSpec` of `io.k8s.api.apps.v1.DeploymentSpec`.
pub(super) fn short(definition: &str) -> &str {
    definition.rsplit('.').next().unwrap_or(definition)
}

/// The Go type of a field, as far as its declaration shows it.
pub(super) fn type_of(place: FieldDeclaration<'_>) -> String {
    if let Some(definition) = place.definition() {
        let mut parts = definition.rsplit('.');
        let name = parts.next().unwrap_or_default();
        return format!("{}.{name}", parts.next().unwrap_or_default());
    }
    match (place.json_type(), place.format()) {
        (Some("array"), _) => {
            format!("[]{}", place.item().map_or_else(|| "interface {}".to_owned(), type_of))
        }
        (Some("object"), _) => {
            format!("map[string]{}", place.value().map_or_else(|| "interface {}".to_owned(), type_of))
        }
        (Some("string"), Some("byte")) => "[]uint8".to_owned(),
        (Some("string"), _) => "string".to_owned(),
        (Some("integer"), format) => format.unwrap_or("int64").to_owned(),
        (Some("number"), _) => "float64".to_owned(),
        (Some("boolean"), _) => "bool".to_owned(),
        _ => "interface {}".to_owned(),
    }
}
