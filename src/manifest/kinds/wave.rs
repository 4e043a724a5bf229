//! `waves` of an `updateStrategy`, and the limits that waves and rings have.

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::placement;
use super::target_selector::refuse_empty;
use crate::model::{ClusterSelector, UnitShare, UpdateStrategy, WaveLimits, WaveRule};

/// What the waves of an app are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaveUnitKind {
    /// The podSets of an AppSet.
    PodSets,
    /// The app in each of its clusters.
    Clusters,
}

/// The names of [`limits`].
pub const LIMITS: [&str; 6] = ["maxConcurrency", "maxFailures", "soak", "confirm", "analysis", "statuses"];

/// How a wave is worked through, and what must pass after it.
pub fn limits(fields: &mut ManifestFields<'_>, reading: &mut ReadContext<'_>) -> WaveLimits {
    let max_concurrency = fields.optional("maxConcurrency", reading).and_then(|it| share(&it, reading));
    let max_failures =
        fields.optional("maxFailures", reading).and_then(|it| reading.count(&it, 0..=1_000_000));
    let soak = fields.optional("soak", reading).and_then(|it| reading.duration(&it));
    let confirm = fields.optional("confirm", reading).and_then(|it| reading.boolean(&it));
    let analysis = fields.optional("analysis", reading).and_then(|it| {
        refuse_empty(&it, reading)?;
        names(&it, |reading, name| reading.name(name, NameRule::Label), reading)
    });
    let statuses = fields.optional("statuses", reading).and_then(|it| {
        refuse_empty(&it, reading)?;
        names(&it, |reading, name| reading.word(name), reading)
    });
    WaveLimits {
        max_concurrency,
        max_failures: max_failures.unwrap_or(0),
        soak,
        confirm: confirm.unwrap_or(false),
        analysis: analysis.unwrap_or_default(),
        statuses: statuses.unwrap_or_default(),
    }
}

/// Names, each of them once.
pub fn names(
    value: &ManifestValue<'_>,
    read: impl Fn(&mut ReadContext<'_>, &ManifestValue<'_>) -> Option<String>,
    reading: &mut ReadContext<'_>,
) -> Option<Vec<String>> {
    let items = reading.list(value)?;
    let mut names: Vec<(String, &ManifestValue<'_>)> = Vec::new();
    for item in &items {
        let Some(name) = read(reading, item) else { continue };
        if let Some((_, first)) = names.iter().find(|(known, _)| *known == name) {
            reading.duplicate(&name, item, first);
        }
        names.push((name, item));
    }
    Some(names.into_iter().map(|(name, _)| name).collect())
}

/// A number, or a share of the units of a wave such as `25%`.
fn share(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<UnitShare> {
    let Some(text) = value.node.as_str() else {
        return reading.count(value, 1..=1_000_000).map(UnitShare::Count);
    };
    let percent = text.strip_suffix('%').and_then(|number| number.parse().ok());
    let percent = percent.filter(|it| (1..=100).contains(it) && text == format!("{it}%"));
    if percent.is_none() {
        let help = "write a whole number from 1, or a share of the wave from 1% to 100%";
        reading.bad_value(value, format!("`{}` cannot be {text:?}", value.name()), help);
    }
    percent.map(UnitShare::Percent)
}

pub fn list(
    value: &ManifestValue<'_>,
    units: WaveUnitKind,
    reading: &mut ReadContext<'_>,
) -> Option<Vec<WaveRule>> {
    let items = reading.list(value)?;
    if items.is_empty() {
        reading.bad_value(value, "`waves` is empty", "name at least one wave, or remove the field");
    }
    let mut waves: Vec<(WaveRule, ManifestValue<'_>)> = Vec::new();
    for item in &items {
        let Some((wave, name)) = read_wave(item, units, reading) else { continue };
        if let Some((_, first)) = waves.iter().find(|(known, _)| known.name == wave.name) {
            reading.duplicate(&wave.name, &name, first);
        }
        waves.push((wave, name));
    }
    Some(waves.into_iter().map(|(wave, _)| wave).collect())
}

fn read_wave<'v>(
    value: &ManifestValue<'v>,
    units: WaveUnitKind,
    reading: &mut ReadContext<'_>,
) -> Option<(WaveRule, ManifestValue<'v>)> {
    let mut fields = ManifestFields::of(value, reading)?;
    let place = fields.required("name", reading);
    let name = place.as_ref().and_then(|name| reading.name(name, NameRule::Label));
    if let (Some(place), Some(UpdateStrategy::REST_WAVE)) = (&place, name.as_deref()) {
        let help =
            "all that no wave selects is the last wave, `rest`: leave this one out, or give it another name";
        reading.bad_value(place, "a wave cannot be called `rest`", help);
    }
    let clusters = match fields.optional_selector("clusters", reading) {
        Some(clusters) => placement::selector(&clusters, true, reading),
        None => Some(ClusterSelector::default()),
    };
    let groups = match units {
        WaveUnitKind::PodSets => {
            fields.optional_selector("groups", reading).map(|list| read_groups(&list, reading))
        }
        WaveUnitKind::Clusters => None,
    };
    let limits = limits(&mut fields, reading);
    fields.finish(reading);
    let place = place?;
    let location = reading.location(place.node);
    let groups = groups.unwrap_or_default();
    Some((WaveRule { name: name?, clusters: clusters?, groups, limits, location }, place))
}

/// Names of groups; which there are depends on the podSets.
fn read_groups(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Vec<String> {
    let items = reading.list(value).unwrap_or_default();
    if items.is_empty() && value.is_empty() {
        let help = "name at least one group, or remove the field: without it, all groups are selected";
        reading.bad_value(value, "`groups` is empty", help);
    }
    let mut groups: Vec<(String, &ManifestValue<'_>)> = Vec::new();
    for item in &items {
        let Some(group) = reading.word(item) else { continue };
        match groups.iter().find(|(known, _)| *known == group) {
            Some((_, first)) => {
                let (place, first) = (reading.location(item.node), reading.location(first.node));
                let message = format!("`groups` names the group {group} twice");
                reading
                    .mistake(codes::DUPLICATE_ITEM, message, place, &item.path)
                    .related(first, "here first");
            }
            None => groups.push((group, item)),
        }
    }
    groups.into_iter().map(|(group, _)| group).collect()
}
