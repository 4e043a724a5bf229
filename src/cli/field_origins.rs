//! `tutti render --explain`: the origin of each field.

use anyhow::bail;
use serde_json::{Value, json};

use super::output::{self, OutputFormat, say};
use crate::fleet::Target;
use crate::model::ObjectId;
use crate::render::FleetRenderer;
use crate::render::trace::explain::{ExplainedField, ExplainedObject, FieldWriter, ValueOrigin, explain};
use crate::render::trace::reach;

/// Selects objects by kind, or by kind and name.
#[derive(Clone, Debug)]
pub struct ObjectSelector {
    kind: String,
    name: Option<String>,
}

impl std::str::FromStr for ObjectSelector {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) =
            text.split_once('/').map_or((text, None), |(kind, name)| (kind, Some(name.to_owned())));
        Ok(Self { kind: kind.to_owned(), name })
    }
}

impl ObjectSelector {
    fn matches(&self, id: &ObjectId) -> bool {
        self.kind.eq_ignore_ascii_case(&id.kind) && self.name.as_ref().is_none_or(|name| **name == *id.name)
    }
}

/// Prints a path's field and those below it, for some targets.
pub fn print_fields(
    renderer: &FleetRenderer<'_>,
    targets: &[&Target],
    path: &str,
    selector: Option<&ObjectSelector>,
    format: OutputFormat,
) -> anyhow::Result<()> {
    let path = path.trim_start_matches('.');
    let (mut found, mut values) = (false, Vec::new());
    for target in targets {
        let Some(objects) = explain(renderer, target) else {
            bail!(
                "{target} renders differently each time: its fields cannot be explained (help: `tutti lint` \
                 names the template)"
            );
        };
        let chosen =
            objects.iter().filter(|object| selector.is_none_or(|selector| selector.matches(&object.id)));
        for (object, fields) in chosen.map(|object| (object, fields_below(object, path))) {
            if fields.is_empty() {
                continue;
            }
            found = true;
            if format == OutputFormat::Table {
                say!("{} on {}", object.id, target.cluster);
                fields.iter().for_each(|field| print_field(field));
            } else {
                values.push(json!({"app": target.app, "cluster": target.cluster, "object": object.id, "fields": fields}));
            }
        }
    }
    if !found {
        bail!("no rendered object has the field {path} (help: `tutti render` shows the objects)");
    }
    if format != OutputFormat::Table {
        output::write_value(format, &values)?;
    }
    Ok(())
}

/// List items match by index and by name.
fn fields_below<'o>(object: &'o ExplainedObject, path: &str) -> Vec<&'o ExplainedField> {
    let holds = |field: &str| path.is_empty() || reach::contains_path(path, field);
    object
        .fields
        .iter()
        .filter(|field| holds(&field.path) || holds(&path_with_names(object, &field.path)))
        .collect()
}

/// `containers[web].image` for `containers[0].image`.
fn path_with_names(object: &ExplainedObject, path: &str) -> String {
    let mut made = String::new();
    let mut rest = path;
    while let Some(end) = rest.find(']') {
        let reached = path.len() - rest.len() + end + 1;
        let prefix = &path[..reached];
        let name = object.fields.iter().find(|field| field.path == format!("{prefix}.name"));
        let name = name.and_then(|field| field.value.as_ref()?.as_str());
        let open = rest.find('[').unwrap_or(0);
        match name {
            Some(name) => made.push_str(&format!("{}[{name}]", &rest[..open])),
            None => made.push_str(&rest[..=end]),
        }
        rest = &rest[end + 1..];
    }
    made + rest
}

fn print_field(field: &ExplainedField) {
    say!("  {}{}", field.path, value_suffix(field.value.as_ref()));
    let how = match &field.written {
        FieldWriter::Template(_) => "template",
        FieldWriter::File(_) => "file",
        FieldWriter::Patch(_) => "patch",
        FieldWriter::Manifest(_) => "manifest",
        FieldWriter::Tutti => "tutti itself",
    };
    say!("    {how:<12}{}", field.written.place().map(ToString::to_string).unwrap_or_default());
    for origin in &field.from {
        print_origin("from", origin);
    }
    for origin in &field.because {
        print_origin("because of", origin);
    }
}

fn print_origin(how: &str, origin: &ValueOrigin) {
    say!("    {how:<12}{}  {}{}", origin.place, origin.path, value_suffix(origin.value.as_ref()));
    for lower in &origin.overrides {
        say!("      instead of {}  {}{}", lower.place, lower.path, value_suffix(lower.value.as_ref()));
    }
}

fn value_suffix(value: Option<&Value>) -> String {
    value.map_or_else(String::new, |value| format!(" = {value}"))
}
