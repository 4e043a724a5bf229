//! A chain: its links, their states, and the clusters with these findings.

use serde::Serialize;

use super::writers;
use crate::model::{ClusterName, Location, Revision};
use crate::rollout::RolloutHold;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChainLink {
    /// The repository and its manifests.
    Source,
    /// From layers and charts to objects.
    Render,
    /// Policies allow the objects.
    Policy,
    /// Waves, gates, windows and pauses.
    Rollout,
    /// The cluster accepts the objects.
    Apply,
    /// The objects are healthy.
    Health,
}

impl ChainLink {
    pub const ALL: [Self; 6] =
        [Self::Source, Self::Render, Self::Policy, Self::Rollout, Self::Apply, Self::Health];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Render => "render",
            Self::Policy => "policy",
            Self::Rollout => "rollout",
            Self::Apply => "apply",
            Self::Health => "health",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ChainLinkState {
    /// It needs a person.
    Broken,
    /// It continues by itself.
    Waits,
    Well,
    /// An earlier link is not well.
    NotReached,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainFinding {
    pub link: ChainLink,
    pub state: ChainLinkState,
    /// The state in one line.
    pub text: String,
    /// The place that causes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Location>,
    /// The expression of the policy that denies it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Location>,
    /// Who may change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// What to do: one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub help: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<RolloutHold>,
}

impl ChainFinding {
    pub(super) fn new(link: ChainLink, state: ChainLinkState, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { link, state, text, place: None, rule: None, who: None, help: Vec::new(), hold: None }
    }

    pub(super) fn with_place(self, place: Option<Location>) -> Self {
        Self { place, ..self }
    }

    /// `places`: files and folders; the finding names who may write them.
    pub(super) fn with_writers(self, places: &[String]) -> Self {
        Self { who: (!places.is_empty()).then(|| writers::who_may_write(places)), ..self }
    }

    pub(super) fn help(self, help: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { help: help.into_iter().map(Into::into).collect(), ..self }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainCluster {
    pub name: ClusterName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring: Option<String>,
}

/// One app on the clusters with the same findings.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CauseChain {
    /// Empty: its clusters are unknown, or there are none.
    pub clusters: Vec<ChainCluster>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<&'static str>,
    /// The last commit that changed its inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// The first link that is not well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<ChainLink>,
    /// One for each link, in order.
    pub findings: Vec<ChainFinding>,
}

impl CauseChain {
    pub fn first_broken(&self) -> Option<&ChainFinding> {
        self.findings.iter().find(|finding| finding.state != ChainLinkState::Well)
    }

    pub(super) fn state(&self) -> ChainLinkState {
        self.first_broken().map_or(ChainLinkState::Well, |finding| finding.state)
    }
}
