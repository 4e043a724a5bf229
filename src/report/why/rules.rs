//! Every rule, window and gate that applies to an app: whether it holds the app now, would hold its next version, or lets it
//! pass.

use std::collections::BTreeMap;

use super::holds::rule_kind;
use super::subject::ChainSubject;
use super::writers::who_may_write;
use super::{RuleEffect, RuleKind, RuleReport, WhyContext};
use crate::fleet::selector;
use crate::model::{
    App, AppId, ApprovalShortfall, Cluster, ClusterName, ClusterState, InstanceMode, Location, PolicyAction,
    RolloutAction, TaintEffect, Window, WindowAction,
};
use crate::policy::VerdictCause;
use crate::render::TargetPolicyVerdict;
use crate::report::TargetPhase;
use crate::report::status_text::count_noun;
use crate::rollout::RolloutHold;
use crate::window::{self, WindowActivity};

/// The most clusters that are named.
const MAX_NAMED: usize = 3;

/// All rules of an app, on all its clusters or on one; those that hold it first.
pub fn rules_of_app(look: &WhyContext<'_>, app: &AppId, on: Option<&ClusterName>) -> Vec<RuleReport> {
    let at = ChainSubject::new(look, app, None, None);
    let mut rules = RuleList { at: &at, on, rules: Vec::new() };
    if let Some(manifest) = at.manifest {
        let clusters = rules.clusters_of(manifest);
        rules.add_taints(manifest);
        // Where the app is not placed, no other rule holds it.
        if on.is_none() || !clusters.is_empty() {
            rules.add_pauses(manifest);
            rules.add_clusters(&clusters);
            rules.add_policies(manifest, &clusters);
            rules.add_windows(manifest, &clusters);
            rules.add_approval_rules(manifest, &clusters);
            rules.add_gates(manifest);
            rules.add_pins(manifest);
        }
    }
    rules.add_deletes();
    let mut rules = rules.rules;
    rules.sort_by_key(|rule| rule.standing);
    rules
}

pub struct RuleList<'a> {
    pub at: &'a ChainSubject<'a>,
    pub on: Option<&'a ClusterName>,
    rules: Vec<RuleReport>,
}

impl<'a> RuleList<'a> {
    /// The clusters of the app among the requested ones.
    fn clusters_of(&self, app: &App) -> Vec<&'a Cluster> {
        let fleet = self.at.context.fleet;
        let names = fleet.clusters_of(app).into_iter().filter(|name| self.on.is_none_or(|on| on == name));
        names.filter_map(|name| fleet.clusters.get(&name)).collect()
    }

    pub fn add(
        &mut self,
        kind: RuleKind,
        name: impl Into<String>,
        standing: RuleEffect,
        text: String,
    ) -> &mut RuleReport {
        let name = name.into();
        self.rules.push(RuleReport { kind, name, standing, text, place: None, who: None, command: None });
        let last = self.rules.len() - 1;
        &mut self.rules[last]
    }

    pub fn add_at(
        &mut self,
        (kind, name): (RuleKind, &str),
        standing: RuleEffect,
        text: String,
        place: Option<Location>,
    ) -> &mut RuleReport {
        let who = place.as_ref().map(|place| who_may_write(&[self.at.folder_of(place)]));
        let rule = self.add(kind, name, standing, text);
        (rule.place, rule.who) = (place, who);
        rule
    }

    fn add_pauses(&mut self, app: &App) {
        let instance = &self.at.context.fleet.instance;
        let written = [
            (app.paused, "paused", Some(&app.location)),
            (app.unmanaged, "unmanaged", Some(&app.location)),
            (instance.mode == InstanceMode::Observe, "mode: observe", instance.location.as_ref()),
        ];
        for (_, name, place) in written.into_iter().filter(|(is_so, ..)| *is_so) {
            let text = "nothing of it is written".to_owned();
            self.add_at((RuleKind::Pause, name), RuleEffect::Holds, text, place.cloned());
        }
    }

    fn add_clusters(&mut self, clusters: &[&'a Cluster]) {
        let overview = self.at.context.overview;
        let away: Vec<&ClusterName> =
            overview.clusters.iter().filter(|it| !it.is_up()).map(|it| &it.name).collect();
        let of = |is_so: &dyn Fn(&Cluster) -> bool| -> Vec<&'a Cluster> {
            clusters.iter().copied().filter(|it| is_so(it)).collect()
        };
        let states = [
            (of(&|it| away.contains(&&it.name)), "does not answer"),
            (of(&|it| it.state == ClusterState::Maintaining), "is in maintenance"),
        ];
        for (named, text) in states {
            if let Some(first) = named.first() {
                let place = Some(first.location.clone());
                let names = join_names(named.iter().map(|it| &it.name));
                self.add_at((RuleKind::Cluster, &names), RuleEffect::Holds, text.to_owned(), place);
            }
        }
    }

    /// Also of clusters where the taint keeps it off.
    fn add_taints(&mut self, app: &App) {
        let fleet = self.at.context.fleet;
        let selects = |cluster: &Cluster| {
            let facts = cluster.facts(fleet.ring_of(&cluster.name));
            selector(app).is_some_and(|placement| placement.clusters.matches(facts))
        };
        let mut kept_out: BTreeMap<String, Vec<&Cluster>> = BTreeMap::new();
        let is_asked = |cluster: &&Cluster| self.on.is_none_or(|on| *on == cluster.name);
        for cluster in
            fleet.clusters.values().filter(is_asked).filter(|it| !it.taints.is_empty() && selects(it))
        {
            let effects = [TaintEffect::NoExecute, TaintEffect::NoSchedule];
            if let Some(taint) =
                effects.iter().find_map(|effect| app.blocking_taint(&cluster.taints, *effect))
            {
                kept_out.entry(taint.to_string()).or_default().push(cluster);
            }
        }
        for (taint, clusters) in kept_out {
            let text = format!("keeps it out of {}", join_names(clusters.iter().map(|it| &it.name)));
            let place = clusters.first().map(|cluster| cluster.location.clone());
            self.add_at((RuleKind::Taint, &taint), RuleEffect::Holds, text, place);
        }
    }

    fn add_policies(&mut self, app: &App, clusters: &[&'a Cluster]) {
        let fleet = self.at.context.fleet;
        let is_asked = |it: &&TargetPolicyVerdict| self.on.is_none_or(|on| *on == it.cluster);
        let verdicts: Vec<&TargetPolicyVerdict> = self.at.context.verdicts.iter().filter(is_asked).collect();
        let targets = self.at.context.overview.targets_of(self.at.app).iter();
        let is_rendered = targets
            .filter(|target| self.on.is_none_or(|on| *on == target.cluster))
            .any(|target| target.phase != TargetPhase::Invalid);
        for policy in fleet.policies.all() {
            let selects = |cluster: &&Cluster| {
                policy.selector.selects(&app.id, &app.labels, cluster.facts(fleet.ring_of(&cluster.name)))
            };
            if !clusters.iter().any(selects) {
                continue;
            }
            let is_of_it = |it: &&&TargetPolicyVerdict| {
                (&it.policy.name, &it.policy.location) == (&policy.name, &policy.location)
            };
            let said: Vec<_> = verdicts.iter().filter(is_of_it).collect();
            let is_broken = said.iter().any(|it| it.cause == VerdictCause::Broken);
            let objects = count_noun(said.len(), "object");
            let (standing, text) = match policy.action {
                action if said.is_empty() && !is_rendered => {
                    (RuleEffect::WouldHold, format!("{action}: not evaluated, as nothing is rendered"))
                }
                action if said.is_empty() => (RuleEffect::Passes, format!("{action}: allows it")),
                PolicyAction::Deny if is_broken => {
                    (RuleEffect::Holds, format!("has an error, denies {objects}"))
                }
                PolicyAction::Deny => (RuleEffect::Holds, format!("denies {objects}")),
                PolicyAction::Warn | PolicyAction::Audit => {
                    (RuleEffect::Warns, format!("warns of {objects}"))
                }
            };
            let why = policy.description.as_deref().map(str::trim).filter(|_| standing != RuleEffect::Passes);
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            let place = Some(policy.location.clone());
            self.add_at((RuleKind::Policy, &policy.name), standing, text + &why, place);
        }
    }

    fn add_windows(&mut self, app: &App, clusters: &[&'a Cluster]) {
        let look = self.at.context;
        if app.is_project() {
            return;
        }
        let holding = self.holds(RuleKind::Window);
        for window in &look.fleet.windows {
            let selects = |cluster: &&Cluster| {
                window.selector.selects(
                    &app.id,
                    &app.labels,
                    cluster.facts(look.fleet.ring_of(&cluster.name)),
                )
            };
            if !clusters.iter().any(selects) {
                continue;
            }
            let (is_shut, mut text) = window_state(window, look);
            let is_holding = holding
                .iter()
                .any(|hold| matches!(hold, RolloutHold::Window { window: it, .. } if *it == window.name));
            let standing = match (is_holding, is_shut) {
                (true, _) => RuleEffect::Holds,
                (false, true) => RuleEffect::WouldHold,
                (false, false) => RuleEffect::Passes,
            };
            for approval in look.fleet.rollout_approvals.get(&app.id).into_iter().flatten() {
                if matches!(&approval.action, RolloutAction::Override { window: it } if *it == window.name) {
                    text += &format!(
                        "; approval {} lets version {} pass",
                        approval.name,
                        approval.digest.short()
                    );
                }
            }
            let rule =
                self.add_at((RuleKind::Window, &window.name), standing, text, Some(window.location.clone()));
            if is_holding {
                rule.command = Some(format!("tutti approve rollout {} --override {}", app.id, window.name));
            }
        }
    }

    fn add_approval_rules(&mut self, app: &App, clusters: &[&'a Cluster]) {
        let look = self.at.context;
        let holding = self.holds(RuleKind::Approval);
        for rule in &look.fleet.approval_rules.rules {
            let selects = |cluster: &&Cluster| {
                let facts = cluster.facts(look.fleet.ring_of(&cluster.name));
                rule.selector.selects(&app.id, &app.labels, facts)
            };
            if app.is_project() || !clusters.iter().any(selects) {
                continue;
            }
            let lacking = holding.iter().find_map(|hold| match hold {
                RolloutHold::Approval { asks, .. } => asks.iter().find(|asks| asks.rule == rule.name),
                _ => None,
            });
            let standing = if lacking.is_some() { RuleEffect::Holds } else { RuleEffect::WouldHold };
            let for_what: Vec<&str> = rule.actions.iter().map(|action| action.as_str()).collect();
            let asks = || match rule.count {
                Some(_) => {
                    format!(
                        "requires {} for {}",
                        rule.unmet(ApprovalShortfall::None).requirement(),
                        for_what.join(" and ")
                    )
                }
                None => ApprovalShortfall::BrokenRule.to_string(),
            };
            let text = lacking.map_or_else(asks, ToString::to_string);
            let place = Some(rule.location.clone());
            let told = self.add_at((RuleKind::Approval, &rule.name), standing, text, place);
            if lacking.is_some() {
                told.command = Some(format!("tutti approve rollout {}", app.id));
            }
        }
    }

    /// The holds of units that belong to this kind of rule.
    pub fn holds(&self, kind: RuleKind) -> Vec<&'a RolloutHold> {
        let Some(rollout) = self.at.rollout_report() else { return Vec::new() };
        let units = rollout.units.iter().filter(|unit| self.on.is_none_or(|on| *on == unit.unit.cluster));
        let gates = units.filter_map(|unit| Some(unit.hold.as_ref()?.gate()));
        gates.filter(|hold| rule_kind(hold) == Some(kind)).collect()
    }
}

/// Whether a window is closed, and until when.
fn window_state(window: &Window, look: &WhyContext<'_>) -> (bool, String) {
    let WindowActivity { is_active: lasts, until } = window::activity_at(&window.times, look.now);
    let is_shut = lasts == (window.action == WindowAction::Deny);
    if is_shut {
        return (true, window::shut_state_text(until, window.reason.as_deref(), &window.may_override));
    }
    let until = until.map(|until| format!(", shuts at {}", until.strftime("%F %H:%M UTC")));
    (false, format!("open{}", until.unwrap_or_default()))
}

fn join_names<'n>(all: impl ExactSizeIterator<Item = &'n ClusterName>) -> String {
    let more = all.len().saturating_sub(MAX_NAMED);
    let named: Vec<&str> = all.take(MAX_NAMED).map(|name| name.as_str()).collect();
    let named = named.join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}
