//! `updateStrategy` of AppSet, Component and Objects.

use std::time::Duration;

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext, suggest};
use super::wave::{self, WaveUnitKind};
use crate::model::{
    AppId, ClusterName, GroupOrder, Location, OnFailure, RolloutDependency, RolloutGroup, UpdateStrategy,
    WaveLimits, WaveOrder,
};

#[derive(Default)]
pub struct UpdateStrategyFields<'v> {
    pub min_ready_seconds: Option<u32>,
    pub paused: bool,
    pub rollout: UpdateStrategy,
    pub canary_clusters: Option<ManifestValue<'v>>,
}

const GROUPS: &[(&str, RolloutGroup)] =
    &[("canary", RolloutGroup::Canary), ("blue", RolloutGroup::Blue), ("green", RolloutGroup::Green)];
const ON_FAILURE: &[(&str, OnFailure)] = &[("stop", OnFailure::Stop), ("revert", OnFailure::Revert)];
/// A shorter deadline would fail what only starts.
const SHORTEST_DEADLINE: Duration = Duration::from_secs(10);

/// `namespace`: of the app.
pub fn read<'v>(
    value: &ManifestValue<'v>,
    units: WaveUnitKind,
    namespace: &str,
    reading: &mut ReadContext<'_>,
) -> Option<UpdateStrategyFields<'v>> {
    let mut fields = ManifestFields::of(value, reading)?;
    let paused = fields.optional("paused", reading).and_then(|paused| reading.boolean(&paused));
    let help = "name the waves, or remove the field: without it, the app has no waves of its own";
    let waves = fields.optional_with_value("waves", help, reading);
    let mut strategy =
        UpdateStrategyFields { paused: paused.unwrap_or(false), ..UpdateStrategyFields::default() };
    if units == WaveUnitKind::PodSets {
        read_groups(&mut fields, waves.as_ref(), &mut strategy, reading);
    }
    if let Some(waves) = &waves {
        let waves = wave::list(waves, units, reading).unwrap_or_default();
        strategy.rollout.order = WaveOrder::Waves(waves);
    }
    let after = fields.optional("after", reading).map(|after| read_after(&after, namespace, reading));
    let on_failure = fields.optional("onFailure", reading);
    let on_failure = on_failure.and_then(|it| reading.choice(&it, ON_FAILURE, &[], false));
    let deadline = fields.optional("progressDeadline", reading);
    let deadline = deadline.and_then(|it| read_deadline(&it, reading));
    let gate_first = fields.optional("gateFirst", reading).and_then(|it| reading.boolean(&it));
    fields.refuse_planned(&["priorityStrategy"], reading);
    let canary_place =
        strategy.canary_clusters.as_ref().map(|canary_clusters| reading.location(canary_clusters.node));
    strategy.rollout = UpdateStrategy {
        order: strategy.rollout.order,
        after: after.unwrap_or_default(),
        on_failure: on_failure.unwrap_or_default(),
        progress_deadline: deadline,
        gate_first: gate_first.unwrap_or(false),
        location: Some(canary_place.unwrap_or_else(|| fields.location().clone())),
    };
    fields.finish(reading);
    Some(strategy)
}

/// What only an AppSet has: the order of its groups, in place of `waves`.
fn read_groups<'v>(
    fields: &mut ManifestFields<'v>,
    waves: Option<&ManifestValue<'_>>,
    strategy: &mut UpdateStrategyFields<'v>,
    reading: &mut ReadContext<'_>,
) {
    let seconds = fields.optional("minReadySeconds", reading);
    strategy.min_ready_seconds = seconds.and_then(|seconds| reading.count(&seconds, 0..=86_400));
    let groups = fields.optional("upgradeType", reading);
    strategy.canary_clusters = fields.optional("canaryClusters", reading);
    let confirm = fields.optional("needWaitingForConfirm", reading);
    let beside: Vec<ManifestValue<'_>> =
        [&groups, &strategy.canary_clusters, &confirm].into_iter().flatten().cloned().collect();
    let is_ordered = groups.is_some() || strategy.canary_clusters.is_some();
    let limits = read_limits(fields, is_ordered, waves, reading);
    if let Some(waves) = waves {
        for other in &beside {
            let other_place = other.name_location.clone().unwrap_or_else(|| reading.location(other.node));
            let place = waves.name_location.clone().unwrap_or_else(|| reading.location(waves.node));
            let message = format!("`waves` cannot be used with `{}`", other.name());
            reading
                .mistake(codes::NOT_EXACTLY_ONE, message, place, &waves.path)
                .help("keep one of them: each says the order of the waves")
                .related(other_place, "the other order");
        }
    }
    let confirm = confirm.and_then(|it| reading.boolean(&it)).unwrap_or(false);
    let (groups, places) = groups.map(|groups| read_order(&groups, reading)).unwrap_or_default();
    let order = GroupOrder {
        groups,
        places,
        canary_clusters: strategy
            .canary_clusters
            .as_ref()
            .map(|list| read_clusters(list, reading))
            .unwrap_or_default(),
        // `confirm` of every wave is the same, in the words of `waves`.
        needs_confirmation: confirm || limits.confirm,
        limits: WaveLimits { confirm: false, ..limits },
    };
    if order != GroupOrder::default() {
        strategy.rollout.order = WaveOrder::Groups(order);
    }
}

/// The limits of every wave of `upgradeType`.
fn read_limits(
    fields: &mut ManifestFields<'_>,
    is_ordered: bool,
    waves: Option<&ManifestValue<'_>>,
    reading: &mut ReadContext<'_>,
) -> WaveLimits {
    let limits = wave::limits(fields, reading);
    let written = wave::LIMITS.into_iter().filter_map(|name| fields.get(name, reading));
    for limit in written.filter(|limit| !limit.node.is_null() && !is_ordered).collect::<Vec<_>>() {
        let place = limit.name_location.clone().unwrap_or_else(|| reading.location(limit.node));
        let name = limit.name();
        let (code, message, help) = match waves {
            Some(_) => (
                codes::NOT_EXACTLY_ONE,
                format!("`{name}` cannot be used with `waves`"),
                "write it into each wave that it shall hold for",
            ),
            None => (
                codes::MISSING_FIELD,
                format!("`{name}` is a limit of the waves of `upgradeType`, which is missing"),
                "add `upgradeType`, or write it into an entry of `waves`",
            ),
        };
        reading.mistake(code, message, place, &limit.path).help(help);
    }
    limits
}

/// `canary|blue|green`, or a list.
fn read_order(
    value: &ManifestValue<'_>,
    reading: &mut ReadContext<'_>,
) -> (Vec<RolloutGroup>, Vec<Location>) {
    let mut found: Vec<RolloutGroup> = Vec::new();
    let mut places = Vec::new();
    let mut take = |text: &str, place: &ManifestValue<'_>, reading: &mut ReadContext<'_>| {
        let word = text.trim();
        let known = GROUPS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        let Some((name, group)) = known else {
            let location = reading.location(place.node);
            let names: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
            let message = format!("`upgradeType` names no group {word:?}");
            let noted = reading.mistake(codes::UNKNOWN_VALUE, message, location, &place.path);
            noted.help(suggest(word, &names, &names));
            return;
        };
        if found.contains(group) {
            let location = reading.location(place.node);
            let message = format!("`upgradeType` names the group {name} twice");
            let noted = reading.mistake(codes::DUPLICATE_ITEM, message, location, &place.path);
            noted.help("each group is one wave: name it once");
        }
        found.push(*group);
        places.push(reading.location(place.node));
    };
    if value.node.as_seq().is_some() {
        for item in reading.list(value).unwrap_or_default() {
            if let Some(text) = reading.text(&item) {
                take(&text, &item, reading);
            }
        }
    } else if let Some(text) = reading.text(value) {
        text.split('|').for_each(|part| take(part, value, reading));
    }
    (found, places)
}

/// Which of them there are shows beside the other manifests.
fn read_clusters(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Vec<ClusterName> {
    let items = reading.list(value).unwrap_or_default();
    let mut clusters: Vec<(String, &ManifestValue<'_>)> = Vec::new();
    for item in &items {
        let Some(name) = reading.word(item) else { continue };
        if let Some((_, first)) = clusters.iter().find(|(known, _)| *known == name) {
            reading.duplicate(&name, item, first);
        }
        clusters.push((name, item));
    }
    clusters.into_iter().map(|(name, _)| ClusterName::from(name.as_str())).collect()
}

/// `namespace/name`, or the name of an app of the same namespace.
fn read_after(
    value: &ManifestValue<'_>,
    namespace: &str,
    reading: &mut ReadContext<'_>,
) -> Vec<RolloutDependency> {
    let items = reading.list(value).unwrap_or_default();
    let mut apps: Vec<(RolloutDependency, &ManifestValue<'_>)> = Vec::new();
    for item in &items {
        let Some(text) = reading.text(item) else { continue };
        let (namespace, name) = text.split_once('/').unwrap_or((namespace, &text));
        if !NameRule::Label.fits(namespace) || !NameRule::Subdomain.fits(name) {
            let help = "write it as namespace/name, or as the name of an app of the same namespace";
            reading.bad_value(item, format!("{text:?} is not an app"), help);
            continue;
        }
        let app = AppId::new(namespace, name);
        if let Some((_, first)) = apps.iter().find(|(known, _)| known.app == app) {
            reading.duplicate(&app.to_string(), item, first);
        }
        apps.push((RolloutDependency { app, location: reading.location(item.node) }, item));
    }
    apps.into_iter().map(|(after, _)| after).collect()
}

fn read_deadline(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Duration> {
    let deadline = reading.duration(value)?;
    if deadline < SHORTEST_DEADLINE {
        let message = format!("`{}` is shorter than 10s", value.name());
        reading.bad_value(value, message, "write at least 10s; without the field it is 10m");
    }
    Some(deadline)
}
