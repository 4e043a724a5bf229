//! Ordered rings of clusters.

use serde::Serialize;

use super::{Location, Selector};

/// One ring: the clusters that a version reaches together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ring {
    pub name: String,
    pub clusters: Selector,
}

/// The rings of the config repository, first to last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rings {
    pub rings: Vec<Ring>,
    #[serde(skip)]
    pub location: Location,
}
