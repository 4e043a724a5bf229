//! The documents of a text.

use super::node::YamlNode;
use crate::model::Diagnostic;

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
