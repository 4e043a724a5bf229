//! One text file of a layer, or of an Objects app.

use std::sync::Arc;

use crate::model::Location;

/// The path prefix of files that tutti ships.
pub const SHIPPED: &str = "shipped/";

/// One text file. A repository file may have the path prefix `shipped/` too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerSource {
    pub path: String,
    /// Empty for a shipped file, which never changes within a process.
    pub blob: Arc<str>,
    pub text: Arc<str>,
    pub is_shipped: bool,
}

impl LayerSource {
    pub fn start(&self) -> Location {
        Location::new(&self.path, 1, 1)
    }
}
