//! Ordered rings of clusters.

use serde::Serialize;

use super::{Location, Selector, WaveLimits};

/// One ring: the clusters that a version reaches together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ring {
    pub name: String,
    pub clusters: Selector,
    /// Of the wave that it is for apps without waves of their own.
    #[serde(skip_serializing_if = "WaveLimits::are_none")]
    pub limits: WaveLimits,
}

/// The rings of the config repository, first to last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rings {
    pub rings: Vec<Ring>,
    #[serde(skip)]
    pub location: Location,
}
