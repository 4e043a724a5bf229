//! Objects of a chart that have their own place before or after its others, and what tells the first release from later ones.

use std::fmt;

use serde::Serialize;

use super::Digest;

/// What a chart says of an object that it calls a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    pub stage: Stage,
    /// Within its stage: the lower one first.
    pub weight: i64,
    pub occasion: Occasion,
    /// It is a Job or a Pod, and others wait for its end.
    pub runs: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// Before the objects that are no hooks.
    Before,
    /// When they are healthy.
    After,
}

/// With which releases a hook comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Occasion {
    /// The first on a cluster alone: once it is there it stays as it is.
    Install,
    /// Those after the first.
    Upgrade,
    Each,
}

impl Hook {
    /// Of what runs nothing it makes no difference whether it comes with the others or after them.
    pub fn is_apart(&self) -> bool {
        self.runs || self.stage == Stage::Before
    }

    pub fn is_once(&self) -> bool {
        self.occasion == Occasion::Install
    }
}

/// What objects of a first release carry, so that it is known for the first one for as long as it stays: also by a process that
/// starts in the middle of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallMark {
    /// Digits of the digest of all that the release is.
    release: String,
    pub is_of_hook: bool,
}

impl InstallMark {
    const OF_HOOK: &str = "-hook";

    pub fn new(release: &Digest, is_of_hook: bool) -> Self {
        Self { release: release.short(), is_of_hook }
    }

    /// What an annotation says.
    pub fn parse(text: &str) -> Self {
        let release = text.strip_suffix(Self::OF_HOOK);
        Self { release: release.unwrap_or(text).to_owned(), is_of_hook: release.is_some() }
    }

    pub fn is_of(&self, release: &Digest) -> bool {
        self.release == release.short()
    }
}

impl fmt::Display for InstallMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.release, if self.is_of_hook { Self::OF_HOOK } else { "" })
    }
}
