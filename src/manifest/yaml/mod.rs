//! Parses YAML as kubectl does, with positions.
//!
//! The result is [`YamlNode`] trees with the position of every node, and all mistakes of the text: after a syntax error, parsing continues at
//! the next `---`. The grammar is libyaml's, as in kubectl. Scalars follow the Go library below kubectl (`yes`, `on`, `0644`, `1_000`;
//! see [`scalar`]). Stricter than kubectl, these are mistakes: a duplicate key, a tag that Kubernetes ignores, a merge key after a key
//! that it would overwrite, a number without a JSON form, and text that kubectl would drop silently. `documents.jsonl.gz` compares this
//! with the Go library (`tools/vectors/yaml`).

mod document;
pub mod edit;
mod kubectl_syntax;
mod load;
mod node;
mod parse;
pub mod scalar;
mod stream;
mod syntax;
#[cfg(test)]
mod tests;

pub use document::{YamlDocument, YamlStream};
pub use load::{DEPTH_LIMIT, NODE_LIMIT};
pub use node::{YamlEntry, YamlNode, YamlNodeKind, float_to_json};
pub use parse::{parse, parse_objects, parse_values, read};
pub use stream::{FILE_LIMIT, YamlLimits};
