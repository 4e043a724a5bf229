//! The state of a commit, rendered from Git alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;
use tutti::model::{ClusterState, Digest, NoCharts, RolloutAction, RolloutApproval, Snapshot};
use tutti::render::{FleetRenderer, RenderCache, unit_contents};
use tutti::{fleet, manifest};

use super::history::{OracleUnit, UnitContent};

#[derive(Clone, Debug, Default)]
pub struct OracleCommit {
    pub revision: String,
    /// Its position in history: the first is 0.
    pub position: usize,
    pub apps: BTreeMap<String, AppAtCommit>,
    pub approvals: BTreeSet<OracleApproval>,
    pub clusters_in_maintenance: BTreeSet<String>,
}

/// One app at a commit.
#[derive(Clone, Debug, Default)]
pub struct AppAtCommit {
    pub units: BTreeMap<OracleUnit, UnitContent>,
    /// The digest of the version, as in Approvals.
    pub digest: String,
    pub paused: bool,
}

/// An approval by a person.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OracleApproval {
    pub app: String,
    pub digest: String,
    /// The last wave that may open; `None`: a failed version may restart.
    pub last_wave: Option<String>,
    /// The file content: a rewritten file is another approval.
    pub text: String,
}

impl OracleCommit {
    pub fn of(snapshot: &Snapshot, revision: &str, number: usize) -> Self {
        let fleet = fleet::assemble(manifest::read(snapshot), snapshot);
        let renders = FleetRenderer::new(&fleet, snapshot, &NoCharts).render_all(&mut RenderCache::default());
        let mut apps: BTreeMap<String, AppAtCommit> = BTreeMap::new();
        for (id, app) in &fleet.apps {
            let at = AppAtCommit { paused: app.paused, ..AppAtCommit::default() };
            apps.insert(id.to_string(), at);
        }
        let mut digests: BTreeMap<String, BTreeSet<Digest>> = BTreeMap::new();
        for (target, (_, render)) in renders.iter() {
            let Ok(rendered) = render else { continue };
            for (pod_set, content) in unit_contents(rendered) {
                let unit = OracleUnit::new(target.cluster.as_str(), &pod_set);
                let app = target.app.to_string();
                digests.entry(app.clone()).or_default().insert(content.digest);
                let objects = content.objects.into_iter().collect();
                apps.entry(app).or_default().units.insert(unit, objects);
            }
        }
        for (app, digests) in digests {
            let all: Vec<String> = digests.iter().map(Digest::to_string).collect();
            apps.entry(app).or_default().digest = Digest::of_json(&json!(all)).to_string();
        }
        // These repositories have no windows.
        let is_word = |it: &&RolloutApproval| !matches!(it.action, RolloutAction::Override { .. });
        let words =
            fleet.rollout_approvals.values().flatten().filter(is_word).map(|approval| OracleApproval {
                app: approval.app.to_string(),
                digest: approval.digest.to_string(),
                last_wave: match &approval.action {
                    RolloutAction::Open { through } => Some(through.clone()),
                    RolloutAction::Retry | RolloutAction::Override { .. } => None,
                },
                text: approval
                    .location
                    .as_ref()
                    .and_then(|it| snapshot.text(&it.file))
                    .unwrap_or_default()
                    .to_owned(),
            });
        let maintained = fleet.clusters.values().filter(|cluster| cluster.state == ClusterState::Maintaining);
        Self {
            revision: revision.to_owned(),
            position: number,
            apps,
            approvals: words.collect(),
            clusters_in_maintenance: maintained.map(|cluster| cluster.name.to_string()).collect(),
        }
    }

    pub fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }
}
