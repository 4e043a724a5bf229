//! Parses YAML as kubectl does, with positions.
//!
//! The result is [`YamlNode`] trees with the position of every node, and all mistakes of the text: after a syntax error, parsing continues at
//! the next `---`. The grammar is libyaml's, as in kubectl. Scalars follow the Go library below kubectl (`yes`, `on`, `0644`, `1_000`;
//! see [`scalar`]). Stricter than kubectl, these are mistakes: a duplicate key, a tag that Kubernetes ignores, a merge key after a key
//! that it would overwrite, a number without a JSON form, and text that kubectl would drop silently. `documents.jsonl.gz` compares this
//! with the Go library (`tools/vectors/yaml`).

pub mod edit;
mod kubectl_syntax;
mod load;
mod node;
pub mod scalar;
mod stream;
mod syntax;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use load::{DEPTH_LIMIT, NODE_LIMIT};
pub use node::{YamlEntry, YamlNode, YamlNodeKind, float_to_json};
pub use stream::{FILE_LIMIT, YamlLimits};

use super::codes;
use crate::model::{Diagnostic, DiagnosticScope};

/// One document of a file. An empty one (nothing between two `---`) is left out.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlDocument {
    pub root: YamlNode,
    /// Mistakes that did not stop the parser. A document with mistakes may only be used to find more of them.
    pub mistakes: Vec<Diagnostic>,
}

/// The documents of one text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct YamlStream {
    pub documents: Vec<YamlDocument>,
    /// Mistakes that hid a document.
    pub mistakes: Vec<Diagnostic>,
}

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
