//! The field `select`: apps, rings and clusters.

use super::super::codes;
use super::super::read::{Fields, Reading, Value};
use super::super::yaml::Node;
use super::placement;
use crate::model::glob::{self, Separator};
use crate::model::{Location, TargetSelector};

/// One that selects targets and nothing else. `None`: it has a mistake, and must not select everything.
pub fn read(value: &Value<'_>, reading: &mut Reading<'_>) -> Option<TargetSelector> {
    let mut fields = Fields::of(value, reading)?;
    let before = reading.mistakes.len();
    let selector = read_fields(&mut fields, reading);
    fields.finish(reading);
    (reading.mistakes.len() == before).then_some(selector)
}

/// The caller looks for mistakes.
pub fn read_fields(fields: &mut Fields<'_>, reading: &mut Reading<'_>) -> TargetSelector {
    let mut selector = TargetSelector::default();
    if let Some(apps) = fields.narrowing("apps", reading) {
        read_apps(&apps, &mut selector, reading);
    }
    if let Some(rings) = fields.narrowing("rings", reading) {
        refuse_empty(&rings, reading);
        selector.rings = patterns(&rings, reading, "write a ring of rings.yaml, or a pattern such as prod-*");
        selector.places.rings = places(&rings, reading);
    }
    if let Some(clusters) = fields.narrowing("clusters", reading) {
        selector.clusters = placement::selector(&clusters, true, reading).unwrap_or_default();
        selector.places.cluster_ring = clusters.node.get("ring").map(|node| reading.location(node));
        let names = clusters.node.get("names").and_then(Node::as_seq).unwrap_or_default();
        selector.places.clusters = names.iter().map(|node| reading.location(node)).collect();
    }
    selector
}

fn read_apps(value: &Value<'_>, selector: &mut TargetSelector, reading: &mut Reading<'_>) {
    let Some(mut fields) = Fields::of(value, reading) else { return };
    refuse_empty(value, reading);
    if let Some(names) = fields.narrowing("names", reading) {
        refuse_empty(&names, reading);
        selector.apps = patterns(&names, reading, "write namespace/name, or a pattern such as shop/*");
        selector.places.apps = places(&names, reading);
    }
    if let Some(labels) = fields.narrowing("matchLabels", reading) {
        refuse_empty(&labels, reading);
        selector.app_labels = reading.labels(&labels).unwrap_or_default();
    }
    fields.finish(reading);
}

fn patterns(value: &Value<'_>, reading: &mut Reading<'_>, help: &str) -> Option<Vec<String>> {
    read_all(value, reading, |item, reading| {
        let text = reading.word(item)?;
        if let Err(error) = glob::compile(&text, Separator::Fits) {
            let location = reading.location(item.node);
            let message = format!("{text:?} is not a pattern: {error}");
            reading.mistake(codes::BAD_PATTERN, message, location, &item.path).help(help);
            return None;
        }
        Some(text)
    })
}

fn places(list: &Value<'_>, reading: &Reading<'_>) -> Vec<Location> {
    list.node.as_seq().unwrap_or_default().iter().map(|node| reading.location(node)).collect()
}

/// All items are read before one with a mistake gives up the whole.
pub fn read_all<T>(
    list: &Value<'_>,
    reading: &mut Reading<'_>,
    read: impl Fn(&Value<'_>, &mut Reading<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let items: Vec<_> = reading.list(list)?.iter().map(|item| read(item, reading)).collect();
    items.into_iter().collect()
}

/// What selects nothing was not meant.
pub fn refuse_empty(value: &Value<'_>, reading: &mut Reading<'_>) -> Option<()> {
    if !value.is_empty() {
        return Some(());
    }
    let message = format!("`{}` is empty", value.name());
    reading.bad_value(value, message, "write what is meant, or remove the field");
    None
}
