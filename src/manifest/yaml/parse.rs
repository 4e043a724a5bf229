//! Parses the texts of manifests, objects and values.

use serde_json::{Map, Value};

use super::document::{YamlDocument, YamlStream};
use super::stream::{self, YamlLimits};
use crate::manifest::codes;
use crate::model::{Diagnostic, DiagnosticScope};

/// Parses a text with any number of documents; `file` is its path, for locations. The scope of every mistake is the file.
pub fn read(file: &str, text: &str) -> YamlStream {
    stream::read(file, text, YamlLimits::MANIFESTS)
}

/// As [`read`], with all mistakes in one list.
pub fn parse(file: &str, text: &str) -> (Vec<YamlDocument>, Vec<Diagnostic>) {
    all_mistakes(read(file, text))
}

/// As [`parse`], of a text with the objects of an app, which may be larger.
pub fn parse_objects(file: &str, text: &str) -> (Vec<YamlDocument>, Vec<Diagnostic>) {
    all_mistakes(stream::read(file, text, YamlLimits::OBJECTS))
}

fn all_mistakes(
    YamlStream { mut documents, mut mistakes }: YamlStream,
) -> (Vec<YamlDocument>, Vec<Diagnostic>) {
    mistakes.extend(documents.iter_mut().flat_map(|document| document.mistakes.drain(..)));
    mistakes.sort_by(|one, other| one.location.cmp(&other.location));
    (documents, mistakes)
}

/// A text of one document that is a map, such as a `values.yaml`. An empty text is an empty map.
pub fn parse_values(file: &str, text: &str) -> Result<Map<String, Value>, Vec<Diagnostic>> {
    let (documents, mut mistakes) = parse(file, text);
    let mut values = Map::new();
    for (index, document) in documents.iter().enumerate() {
        let mistake = match document.root.to_json() {
            _ if index > 0 => "one document was expected, this is another",
            Value::Object(map) => {
                values = map;
                continue;
            }
            _ => "a map was expected",
        };
        mistakes.push(
            Diagnostic::error(
                codes::WRONG_TYPE,
                format!("{mistake} ({})", document.root.description()),
                DiagnosticScope::File(file.to_owned()),
            )
            .at(document.root.location(file)),
        );
    }
    if mistakes.is_empty() { Ok(values) } else { Err(mistakes) }
}
