//! The input of a reconciliation.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::history::{ClusterHistory, RenderHistory};
use crate::apply::{ApplyTarget, OwnNamespace};
use crate::cluster::{Catalog, Client};
use crate::health::HealthRules;
use crate::model::{App, AppId, Capabilities, IgnoreRulesByApp, ObjectId, Observation, RenderedTarget};
use crate::plan::{ApplySettings, PendingPrerequisites};
use crate::render::{Admission, ObjectClaims};

/// The input of one reconciliation; constant while it runs.
#[derive(Debug)]
pub struct ReconcileJob {
    pub client: Client,
    pub catalog: Arc<Catalog>,
    pub instance: String,
    /// The health rules.
    pub rules: Arc<HealthRules>,
    /// The fields that apps leave to other field managers.
    pub ignored_fields: Arc<IgnoreRulesByApp>,
    pub settings: Arc<ApplySettings>,
    /// The app has no object in the cluster, and a taint excludes it.
    pub is_kept_out: bool,
    /// The namespace of the app, if it may be created.
    pub own_namespace: Option<OwnNamespace>,
    pub history: Arc<RenderHistory>,
    /// The capabilities of the cluster.
    pub capabilities: Option<Arc<Capabilities>>,
    pub app: Arc<App>,
    pub rendered: Arc<RenderedTarget>,
    /// The policies of the head, if any.
    pub admission: Option<Arc<Admission>>,
    /// At least the objects of this app and those that it renders.
    pub observation: Observation,
    /// The dependencies between this app and the others on the cluster.
    pub dependencies: Arc<AppDependencies>,
    /// An earlier sync wave may bring kinds that are not served yet.
    pub kinds_may_come: bool,
    /// The plan is also sent as dry runs.
    pub dry_runs: bool,
    /// Objects whose doubts were decided less than a minute ago.
    pub recently_decided_doubts: BTreeSet<ObjectId>,
    pub cancelled: CancellationToken,
}

impl ReconcileJob {
    pub(super) fn cluster_history(&self) -> ClusterHistory<'_> {
        ClusterHistory { history: &self.history, cluster: &self.rendered.cluster, facts: &self.capabilities }
    }

    pub(super) fn destination<'a>(
        &'a self,
        manager: &'a str,
        past: &'a ClusterHistory<'a>,
    ) -> ApplyTarget<'a> {
        let Self { client, catalog, cancelled, .. } = self;
        let own_namespace = self.own_namespace.as_ref();
        ApplyTarget { client, catalog, manager, history: past, own_namespace, cancelled }
    }
}

/// The dependencies between the apps of one cluster.
#[derive(Debug, Default, PartialEq)]
pub struct AppDependencies {
    pub shared_objects: ObjectClaims,
    pub pending: PendingPrerequisites,
    /// Apps with a place on this cluster that could not be rendered.
    pub unrendered_apps: BTreeSet<AppId>,
}
