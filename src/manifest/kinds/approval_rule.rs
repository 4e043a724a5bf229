//! Kinds ApprovalRule and Approvers: who must agree, and to what.

use super::super::read::{ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNode;
use super::target_selector::{self, read_all, refuse_empty};
use super::{read_envelope, spec_fields};
use crate::model::{
    ApprovalRule, ApprovalRuleAction, ApprovalRuleKind, Approvers, Diagnostic, Location, TargetSelector,
    short_line,
};

/// Write access to this folder decides who must approve.
pub const FOLDER: &str = "policies/";

const ACTIONS: &[(&str, ApprovalRuleAction)] =
    &[("rollout", ApprovalRuleAction::Rollout), ("delete", ApprovalRuleAction::Delete)];

/// Characters of a path that replaces a missing name.
const MOST_OF_A_NAME: usize = 63;

/// More approvals would never come together.
const MOST_PEOPLE: u32 = 100;

/// A rule with a mistake selects everything, and no approval satisfies it: a typo must not remove the requirement.
pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> ApprovalRule {
    let rule = read_rule(root, reading);
    let is_wrong = reading.mistakes.iter().any(Diagnostic::is_error);
    let broken = || {
        let name = valid_name(root).unwrap_or(reading.file);
        unreadable(name, reading.location(root))
    };
    rule.filter(|_| !is_wrong).unwrap_or_else(broken)
}

pub fn unreadable(name: &str, location: Location) -> ApprovalRule {
    ApprovalRule {
        name: short_line(name, MOST_OF_A_NAME),
        selector: TargetSelector::default(),
        actions: ACTIONS.iter().map(|(_, action)| *action).collect(),
        kinds: Vec::new(),
        count: None,
        approvers: Vec::new(),
        four_eyes: true,
        reason: None,
        location,
        approver_locations: Vec::new(),
    }
}

fn read_rule(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<ApprovalRule> {
    let (metadata, spec) = read_envelope(root, NameRule::Label, false, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let selector = match fields.optional_selector("select", reading) {
        Some(select) => target_selector::read(&select, reading),
        None => Some(TargetSelector::default()),
    };
    let actions = fields.required("actions", reading).and_then(|list| {
        refuse_empty(&list, reading)?;
        read_all(&list, reading, |item, reading| reading.choice(item, ACTIONS, &[], false))
    });
    let kinds = read_given_list(fields.optional("kinds", reading), reading, read_kind);
    let count = match fields.optional("count", reading) {
        Some(count) => reading.count(&count, 1..=MOST_PEOPLE),
        None => Some(1),
    };
    let approvers = read_given_list(fields.optional("approvers", reading), reading, |name, reading| {
        let place = reading.location(name.node);
        Some((reading.name(name, NameRule::Label)?, place))
    });
    let four_eyes = match fields.optional("fourEyes", reading) {
        Some(given) => reading.boolean(&given),
        None => Some(true),
    };
    let reason = fields.optional("reason", reading).and_then(|reason| reading.text(&reason));
    fields.finish(reading);
    let metadata = metadata?;
    let (approvers, places) = approvers?.into_iter().unzip();
    Some(ApprovalRule {
        name: metadata.name,
        selector: selector?,
        actions: actions?,
        kinds: kinds?,
        count: Some(count? as usize),
        approvers,
        four_eyes: four_eyes?,
        reason,
        location: metadata.location,
        approver_locations: places,
    })
}

/// The items of a list that must not be empty. `None`: it has a mistake.
fn read_given_list<T>(
    list: Option<ManifestValue<'_>>,
    reading: &mut ReadContext<'_>,
    read: impl Fn(&ManifestValue<'_>, &mut ReadContext<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let Some(list) = list else { return Some(Vec::new()) };
    refuse_empty(&list, reading)?;
    read_all(&list, reading, read)
}

/// `StatefulSet`, or with its group `StatefulSet.apps`.
fn read_kind(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ApprovalRuleKind> {
    let text = reading.word(value)?;
    let (kind, group) = text.split_once('.').map_or((&*text, None), |(kind, group)| (kind, Some(group)));
    if !kind.starts_with(|it: char| it.is_ascii_uppercase()) || group == Some("") {
        let help = "write the kind as manifests do, with or without its group: StatefulSet, StatefulSet.apps";
        reading.bad_value(value, format!("{text:?} is not a kind"), help);
        return None;
    }
    Some(ApprovalRuleKind { kind: kind.to_owned(), group: group.map(str::to_owned) })
}

/// The name of a manifest with a mistake, unless it is blank.
fn valid_name(root: &YamlNode) -> Option<&str> {
    root.find(&["metadata", "name"]).and_then(YamlNode::as_str).filter(|name| !name.trim().is_empty())
}

/// Approvers with a mistake have no people. `None`: the name of the role is unknown.
pub fn read_approvers(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<Approvers> {
    let read = read_people(root, reading);
    let is_wrong = reading.mistakes.iter().any(Diagnostic::is_error);
    read.filter(|_| !is_wrong).or_else(|| {
        let name = short_line(valid_name(root)?, MOST_OF_A_NAME);
        Some(Approvers { name, users: Vec::new(), location: reading.location(root) })
    })
}

fn read_people(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<Approvers> {
    let (metadata, spec) = read_envelope(root, NameRule::Label, false, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let users = fields.required("users", reading).and_then(|list| {
        refuse_empty(&list, reading)?;
        read_all(&list, reading, |name, reading| reading.word(name))
    });
    fields.finish(reading);
    let metadata = metadata?;
    Some(Approvers { name: metadata.name, users: users?, location: metadata.location })
}
