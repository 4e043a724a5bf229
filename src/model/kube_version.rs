//! The version of Kubernetes that a cluster runs.

use serde::{Deserialize, Serialize};

/// `1.27`, `v1.27.4+k3s1`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeVersion {
    pub major: u32,
    pub minor: u32,
    pub git_version: String,
}

impl KubeVersion {
    /// The version that is assumed for a cluster of unknown version.
    pub fn newest() -> Self {
        let (major, minor) = NEWEST_VERSION;
        Self { major, minor, git_version: format!("v{major}.{minor}.0") }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let plain = text.strip_prefix('v').unwrap_or(text);
        let mut parts = plain.splitn(3, '.');
        let (major, minor) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let patch = parts.next();
        if patch.is_some_and(|patch| !patch.starts_with(|letter: char| letter.is_ascii_digit())) {
            return None;
        }
        let git_version = if patch.is_some() { format!("v{plain}") } else { format!("v{plain}.0") };
        Some(Self { major, minor, git_version })
    }
}

/// The version that is assumed for a cluster of unknown version.
pub(super) const NEWEST_VERSION: (u32, u32) = (1, 36);
