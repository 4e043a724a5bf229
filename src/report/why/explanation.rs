//! Explains one app: its chains, and the rules that apply to it.

use serde::Serialize;

use super::subject::ChainSubject;
use super::{CauseChain, ChainFinding, ChainLink, ChainLinkState, RuleReport, WhyContext};
use super::{cluster_links, fold, links, rules};
use crate::model::{AppId, ClusterName, Diagnostic};

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
