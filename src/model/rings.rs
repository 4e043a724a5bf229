//! Ordered rings of clusters.

use serde::Serialize;

use super::{ClusterSelector, Location, WaveLimits};

/// One ring: the clusters that a version reaches together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ring {
    pub name: String,
    pub clusters: ClusterSelector,
    /// Of the wave that it is for apps without waves of their own.
    #[serde(skip_serializing_if = "WaveLimits::are_none")]
    pub limits: WaveLimits,
    #[serde(skip_serializing_if = "RingPromotion::is_default")]
    pub promotion: RingPromotion,
}

/// How a version comes from the ring before to this one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RingPromotion {
    pub mode: PromotionMode,
    /// Contexts of commit statuses that must be success on the pull request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<String>,
}

impl RingPromotion {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PromotionMode {
    /// tutti opens a pull request, and merges it once every gate has passed.
    Auto,
    /// tutti opens a pull request, and a person merges it.
    #[default]
    Propose,
    /// Only `tutti promote` does.
    Manual,
}

/// The rings of the config repository, first to last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rings {
    pub rings: Vec<Ring>,
    #[serde(skip)]
    pub location: Location,
}
