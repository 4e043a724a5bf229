//! Explains the state of an app for `tutti why`: a chain of links from Git to its pods, and every rule, window and gate that
//! holds it or would hold it. The first link that is not well is the cause; later links were not reached.
//!
//! Pure functions of what is known at one moment ([`WhyContext`]). They visit only the targets of the app.

mod cluster_links;
mod fold;
mod gates;
mod holds;
mod links;
mod rules;
#[cfg(test)]
mod tests;
mod writers;

use jiff::Timestamp;
use serde::Serialize;

pub use rules::{RuleEffect, RuleKind, RuleReport};

use super::Overview;
use crate::fleet::Fleet;
use crate::model::{AppId, ClusterName, Diagnostic, Location, Revision};
use crate::render::TargetPolicyVerdict;
use crate::rollout::RolloutHold;
use links::ChainSubject;

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
    fn new(link: ChainLink, state: ChainLinkState, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { link, state, text, place: None, rule: None, who: None, help: Vec::new(), hold: None }
    }

    fn with_place(self, place: Option<Location>) -> Self {
        Self { place, ..self }
    }

    /// `places`: files and folders; the finding names who may write them.
    fn with_writers(self, places: &[String]) -> Self {
        Self { who: (!places.is_empty()).then(|| writers::who_may_write(places)), ..self }
    }

    fn help(self, help: impl IntoIterator<Item = impl Into<String>>) -> Self {
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

    fn state(&self) -> ChainLinkState {
        self.first_broken().map_or(ChainLinkState::Well, |finding| finding.state)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppExplanation {
    pub app: AppId,
    /// The worst first.
    pub chains: Vec<CauseChain>,
    /// Rules that hold it first.
    pub rules: Vec<RuleReport>,
}

impl AppExplanation {
    pub fn is_well(&self) -> bool {
        self.chains.iter().all(|chain| chain.first_broken().is_none())
    }

    /// For an app whose file cannot be read.
    pub fn of_unread(app: AppId, error: &Diagnostic) -> Self {
        let first = links::finding_of_error(ChainLink::Source, error, None);
        let rest = ChainLink::ALL
            .into_iter()
            .skip(1)
            .map(|link| ChainFinding::new(link, ChainLinkState::NotReached, "not reached"));
        let findings = std::iter::once(first).chain(rest).collect();
        let broken = Some(ChainLink::Source);
        let chain = CauseChain { clusters: Vec::new(), phase: None, revision: None, broken, findings };
        Self { app, chains: vec![chain], rules: Vec::new() }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct WhyContext<'a> {
    pub overview: &'a Overview,
    pub fleet: &'a Fleet,
    /// Verdicts of policies on the app.
    pub verdicts: &'a [TargetPolicyVerdict],
    pub now: Timestamp,
}

/// For an app on all its clusters, or on one. Without chains the app is unknown.
pub fn explain_app(look: &WhyContext<'_>, app: &AppId, on: Option<&ClusterName>) -> AppExplanation {
    let position = |target, cluster| ChainSubject::new(look, app, target, cluster);
    let targets = look.overview.targets_of(app).iter().filter(|it| on.is_none_or(|on| it.cluster == *on));
    let mut positions: Vec<ChainSubject<'_>> =
        targets.map(|target| position(Some(target), Some(&target.cluster))).collect();
    // Objects that are left on clusters where the app is no longer placed.
    for cluster in cluster_links::clusters_with_removals(look.overview, app) {
        let is_asked = on.is_none_or(|on| on == cluster);
        if is_asked && !positions.iter().any(|known| known.cluster == Some(cluster)) {
            positions.push(position(None, Some(cluster)));
        }
    }
    let is_known = look.fleet.apps.contains_key(app) || look.fleet.broken_apps.contains_key(app);
    if positions.is_empty() && is_known {
        positions.push(position(None, on));
    }
    let chains = positions.iter().map(ChainSubject::chain).collect();
    AppExplanation {
        app: app.clone(),
        chains: fold::fold_chains(chains),
        rules: rules::rules_of_app(look, app, on),
    }
}
