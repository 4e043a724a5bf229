//! The field `select`: apps, rings and clusters.

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, ReadContext};
use super::super::yaml::YamlNode;
use super::placement;
use crate::model::glob::{self, SeparatorMatching};
use crate::model::{Location, TargetSelector};

/// One that selects targets and nothing else. `None`: it has a mistake, and must not select everything.
pub fn read(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<TargetSelector> {
    let mut fields = ManifestFields::of(value, reading)?;
    let before = reading.mistakes.len();
    let selector = read_fields(&mut fields, reading);
    fields.finish(reading);
    (reading.mistakes.len() == before).then_some(selector)
}

/// The caller looks for mistakes.
pub fn read_fields(fields: &mut ManifestFields<'_>, reading: &mut ReadContext<'_>) -> TargetSelector {
    let mut selector = TargetSelector::default();
    if let Some(apps) = fields.optional_selector("apps", reading) {
        read_apps(&apps, &mut selector, reading);
    }
    if let Some(rings) = fields.optional_selector("rings", reading) {
        refuse_empty(&rings, reading);
        selector.rings = patterns(&rings, reading, "write a ring of rings.yaml, or a pattern such as prod-*");
        selector.places.rings = places(&rings, reading);
    }
    if let Some(clusters) = fields.optional_selector("clusters", reading) {
        selector.clusters = placement::selector(&clusters, true, reading).unwrap_or_default();
        selector.places.cluster_ring = clusters.node.get("ring").map(|node| reading.location(node));
        let names = clusters.node.get("names").and_then(YamlNode::as_seq).unwrap_or_default();
        selector.places.clusters = names.iter().map(|node| reading.location(node)).collect();
    }
    selector
}

fn read_apps(value: &ManifestValue<'_>, selector: &mut TargetSelector, reading: &mut ReadContext<'_>) {
    let Some(mut fields) = ManifestFields::of(value, reading) else { return };
    refuse_empty(value, reading);
    if let Some(names) = fields.optional_selector("names", reading) {
        refuse_empty(&names, reading);
        selector.apps = patterns(&names, reading, "write namespace/name, or a pattern such as shop/*");
        selector.places.apps = places(&names, reading);
    }
    if let Some(labels) = fields.optional_selector("matchLabels", reading) {
        refuse_empty(&labels, reading);
        selector.app_labels = reading.labels(&labels).unwrap_or_default();
    }
    fields.finish(reading);
}

fn patterns(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>, help: &str) -> Option<Vec<String>> {
    read_all(value, reading, |item, reading| {
        let text = reading.word(item)?;
        if let Err(error) = glob::compile(&text, SeparatorMatching::Matched) {
            let location = reading.location(item.node);
            let message = format!("{text:?} is not a pattern: {error}");
            reading.mistake(codes::BAD_PATTERN, message, location, &item.path).help(help);
            return None;
        }
        Some(text)
    })
}

fn places(list: &ManifestValue<'_>, reading: &ReadContext<'_>) -> Vec<Location> {
    list.node.as_seq().unwrap_or_default().iter().map(|node| reading.location(node)).collect()
}

/// All items are read before one with a mistake gives up the whole.
pub fn read_all<T>(
    list: &ManifestValue<'_>,
    reading: &mut ReadContext<'_>,
    read: impl Fn(&ManifestValue<'_>, &mut ReadContext<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let items: Vec<_> = reading.list(list)?.iter().map(|item| read(item, reading)).collect();
    items.into_iter().collect()
}

/// What selects nothing was not meant.
pub fn refuse_empty(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<()> {
    if !value.is_empty() {
        return Some(());
    }
    let message = format!("`{}` is empty", value.name());
    reading.bad_value(value, message, "write a value, or remove the field");
    None
}
