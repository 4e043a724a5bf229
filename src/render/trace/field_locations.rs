//! Where the fields of an object are written, by path.

use std::collections::BTreeMap;

use crate::manifest::yaml::{YamlNode, YamlNodeKind};
use crate::model::{Location, TextPosition};

/// Positions of fields by path (`spec.ports[0].port`).
pub type FieldLocations = BTreeMap<String, Location>;

/// The positions of fields in a plain file.
pub fn fields_of_file(file: &str, root: &YamlNode) -> FieldLocations {
    let mut fields = FieldLocations::new();
    walk(root, "", None, &mut |path, position| {
        fields.insert(path.to_owned(), Location::new(file, position.line, position.column));
    });
    fields
}

/// A scalar has its own position, a map or list that of its key.
pub fn walk(
    node: &YamlNode,
    path: &str,
    name: Option<TextPosition>,
    see: &mut dyn FnMut(&str, TextPosition),
) {
    match &node.kind {
        YamlNodeKind::Map(entries) => {
            see(path, name.unwrap_or(node.start));
            for entry in entries {
                walk(&entry.value, &child_path(path, &entry.key), Some(entry.start), see);
            }
        }
        YamlNodeKind::Seq(items) => {
            see(path, name.unwrap_or(node.start));
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{path}[{index}]"), None, see);
            }
        }
        _ => see(path, node.start),
    }
}

pub fn child_path(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
