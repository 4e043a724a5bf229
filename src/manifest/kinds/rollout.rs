//! `updateStrategy` of an AppSet.

use super::super::codes;
use super::super::read::{Fields, Reading, Value, suggest};
use crate::model::{ClusterName, GroupOrder, Rollout, RolloutGroup, TopologyCluster, WaveOrder};

#[derive(Default)]
pub struct Strategy<'v> {
    pub min_ready_seconds: Option<u32>,
    pub paused: bool,
    pub groups: GroupOrder,
    /// Held against the topology, which may be read later.
    pub canary_clusters: Vec<Value<'v>>,
}

const GROUPS: &[(&str, RolloutGroup)] =
    &[("canary", RolloutGroup::Canary), ("blue", RolloutGroup::Blue), ("green", RolloutGroup::Green)];

pub fn read<'v>(value: &Value<'v>, reading: &mut Reading<'_>) -> Option<Strategy<'v>> {
    let mut fields = Fields::of(value, reading)?;
    let min_ready_seconds =
        fields.optional("minReadySeconds", reading).and_then(|seconds| reading.count(&seconds, 0..=86_400));
    let paused = fields.optional("paused", reading).and_then(|paused| reading.boolean(&paused));
    let groups = fields.optional("upgradeType", reading).map(|groups| read_groups(&groups, reading));
    let canary_clusters = fields.optional("canaryClusters", reading).and_then(|list| reading.list(&list));
    let confirm = fields.optional("needWaitingForConfirm", reading).and_then(|it| reading.boolean(&it));
    fields.later(&["priorityStrategy"], reading);
    fields.finish(reading);
    let groups = GroupOrder {
        groups: groups.unwrap_or_default(),
        needs_confirmation: confirm.unwrap_or(false),
        ..GroupOrder::default()
    };
    let canary_clusters = canary_clusters.unwrap_or_default();
    Some(Strategy { min_ready_seconds, paused: paused.unwrap_or(false), groups, canary_clusters })
}

/// `canary|blue|green`, or a list.
fn read_groups(value: &Value<'_>, reading: &mut Reading<'_>) -> Vec<RolloutGroup> {
    let mut found: Vec<RolloutGroup> = Vec::new();
    let mut take = |text: &str, place: &Value<'_>, reading: &mut Reading<'_>| {
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
    found
}

impl Strategy<'_> {
    pub fn rollout(&self) -> Rollout {
        let order = if self.groups == GroupOrder::default() {
            WaveOrder::Default
        } else {
            WaveOrder::Groups(self.groups.clone())
        };
        Rollout { order, ..Rollout::default() }
    }

    /// The canary clusters, which must be among those that the app runs on.
    pub fn hold_to(&mut self, topology: &[TopologyCluster], reading: &mut Reading<'_>) {
        let known: Vec<&str> = topology.iter().map(|cluster| cluster.name.as_str()).collect();
        let mut seen: Vec<(String, &Value<'_>)> = Vec::new();
        for item in &self.canary_clusters {
            let Some(name) = reading.word(item) else { continue };
            if !known.contains(&name.as_str()) {
                let location = reading.location(item.node);
                let message =
                    format!("`canaryClusters` names cluster {name}, on which this app has no podSet");
                reading
                    .mistake(codes::UNKNOWN_VALUE, message, location, &item.path)
                    .help(suggest(&name, &known, &known));
            }
            if let Some((_, first)) = seen.iter().find(|(seen, _)| *seen == name) {
                reading.second(&name, item, first);
            }
            self.groups.canary_clusters.push(ClusterName::from(name.as_str()));
            seen.push((name, item));
        }
    }
}
