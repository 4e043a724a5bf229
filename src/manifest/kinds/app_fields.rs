//! Fields that AppSet, Component and Objects share.

use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::ignore;
use super::metadata::Metadata;
use super::update_strategy;
use super::wave::WaveUnitKind;
use crate::model::{App, AppSpec, DeployType, DriftMode, IgnoreRule, PruneMode, UpdateStrategy};

pub const DRIFT_MODES: &[(&str, DriftMode)] =
    &[("repair", DriftMode::Repair), ("report", DriftMode::Report), ("ignore", DriftMode::Ignore)];
pub const PRUNE_MODES: &[(&str, PruneMode)] =
    &[("never", PruneMode::Never), ("whenHealthy", PruneMode::WhenHealthy), ("always", PruneMode::Always)];

const DEPLOY_TYPES: &[(&str, DeployType)] = &[
    ("Deployment", DeployType::Deployment),
    ("StatefulSet", DeployType::StatefulSet),
    ("DaemonSet", DeployType::DaemonSet),
    ("Job", DeployType::Job),
    ("CronJob", DeployType::CronJob),
    ("InPlaceSet", DeployType::InPlaceSet),
    ("CloneSet", DeployType::InPlaceSet),
    ("template", DeployType::Template),
];

/// As [`deploy_type`], and a chart.
pub fn deploy_type_or_chart(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<DeployType> {
    let types = [DEPLOY_TYPES, &[("helm", DeployType::Helm)]].concat();
    reading.choice(value, &types, &[], true)
}

pub fn deploy_type(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<DeployType> {
    reading.choice(value, DEPLOY_TYPES, &[], true)
}

/// Fields of the spec that every app has.
#[derive(Default)]
pub struct CommonAppFields {
    pub paused: bool,
    pub adopt: bool,
    pub prune: Option<PruneMode>,
    pub drift: Option<DriftMode>,
    pub force: Option<bool>,
    pub create_namespace: Option<bool>,
    pub replace: bool,
    pub ignore: Vec<IgnoreRule>,
    pub rollout: UpdateStrategy,
    pub promotion_group: Option<String>,
}

pub fn read_common(fields: &mut ManifestFields<'_>, reading: &mut ReadContext<'_>) -> CommonAppFields {
    let paused = fields.optional("paused", reading).and_then(|paused| reading.boolean(&paused));
    let adopt = fields.optional("adopt", reading).and_then(|adopt| reading.boolean(&adopt));
    let prune =
        fields.optional("prune", reading).and_then(|prune| reading.choice(&prune, PRUNE_MODES, &[], false));
    let drift =
        fields.optional("drift", reading).and_then(|drift| reading.choice(&drift, DRIFT_MODES, &[], false));
    let force = fields.optional("force", reading).and_then(|force| reading.boolean(&force));
    let replace = fields.optional("replace", reading).and_then(|replace| reading.boolean(&replace));
    let ignore = fields.optional("ignore", reading).and_then(|rules| ignore::read(&rules, reading));
    CommonAppFields {
        paused: paused.unwrap_or(false),
        adopt: adopt.unwrap_or(false),
        prune,
        drift,
        force,
        create_namespace: None,
        replace: replace.unwrap_or(false),
        ignore: ignore.unwrap_or_default(),
        rollout: UpdateStrategy::default(),
        promotion_group: None,
    }
}

impl CommonAppFields {
    /// `updateStrategy` of an app whose units are the app in each cluster.
    pub fn read_strategy(
        &mut self,
        fields: &mut ManifestFields<'_>,
        namespace: &str,
        reading: &mut ReadContext<'_>,
    ) {
        let strategy = fields.optional("updateStrategy", reading);
        let strategy = strategy.and_then(|strategy| {
            update_strategy::read(&strategy, WaveUnitKind::Clusters, namespace, reading)
        });
        let Some(strategy) = strategy else { return };
        self.paused |= strategy.paused;
        self.rollout = strategy.rollout;
    }
}

/// `promotion` of apps that have a version: the group of apps that are promoted together.
pub fn promotion_group(fields: &mut ManifestFields<'_>, reading: &mut ReadContext<'_>) -> Option<String> {
    let promotion = fields.optional("promotion", reading)?;
    let mut fields = ManifestFields::of(&promotion, reading)?;
    let group = fields.required("group", reading).and_then(|group| reading.name(&group, NameRule::Label));
    fields.finish(reading);
    group
}

/// Of all apps but projects: a project makes its namespace itself.
pub fn create_namespace(fields: &mut ManifestFields<'_>, reading: &mut ReadContext<'_>) -> Option<bool> {
    fields.optional("createNamespace", reading).and_then(|create| reading.boolean(&create))
}

pub fn build_app(
    metadata: Metadata,
    common: &CommonAppFields,
    spec: AppSpec,
    default_namespace: &str,
) -> App {
    App {
        id: metadata.app_id(default_namespace),
        labels: metadata.labels,
        annotations: metadata.annotations,
        unmanaged: metadata.unmanaged,
        paused: common.paused,
        adopt: common.adopt,
        prune: common.prune,
        drift: common.drift,
        force: common.force,
        create_namespace: common.create_namespace,
        replace: common.replace,
        ignore: common.ignore.clone(),
        rollout: common.rollout.clone(),
        promotion_group: common.promotion_group.clone(),
        spec,
        routes: Vec::new(),
        pins: std::collections::BTreeMap::new(),
        location: metadata.location,
    }
}
