//! The gates of a promotion, and whether it may be merged.

use std::collections::BTreeMap;

use serde::Serialize;

use super::next::{pin_of, ring_measurement, rings_of, running_version, soaks_until};
use super::{PinChange, PromotionInput, ProposedChange, PullRequestAction};
use crate::model::{
    App, AppId, ApprovalShortfall, PromotionMode, Revision, Ring, RolloutApproval, UnmetApprovalRule,
    short_line,
};
use crate::rollout::{AppApprovalRules, AppWindows, GateProgress};
use crate::window::{self, ShutWindow};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PromotionGateState {
    Success,
    Pending,
    Failure,
}

/// One gate of a pull request: the commit status `PREFIX/gate/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PromotionGate {
    pub name: String,
    pub state: PromotionGateState,
    /// At most [`MAX_STATUS_LENGTH`] characters, numbers first.
    pub text: String,
}

/// The length of a status text that forges show.
pub const MAX_STATUS_LENGTH: usize = 140;

impl PromotionGate {
    fn new(name: &str, state: PromotionGateState, text: &str) -> Self {
        Self { name: name.to_owned(), state, text: short_line(text, MAX_STATUS_LENGTH - 1) }
    }
}

/// The forge's state of the head of a pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullRequestHeadFacts {
    /// The newest of each context.
    pub statuses: BTreeMap<String, PromotionGateState>,
    /// Users who approved this head, without dismissed reviews and without its author.
    pub approved_by: Vec<String>,
}

/// The gates of a promotion, in the order in which people read them, or the approvals that rules require. Other changes have no
/// gates.
pub fn gates(
    input: &PromotionInput<'_>,
    change: &ProposedChange,
    head: &PullRequestHeadFacts,
) -> Vec<PromotionGate> {
    let (ring, pins) = match change {
        ProposedChange::Promote { ring, pins, .. } => (ring, pins),
        ProposedChange::Approve { approvals, .. } => {
            return rules_gate(input, approvals, head).into_iter().collect();
        }
        _ => return Vec::new(),
    };
    let Some(ring) = input.fleet.rings.iter().find(|it| it.name == *ring) else {
        return vec![PromotionGate::new("ring", PromotionGateState::Failure, &format!("no ring {ring}"))];
    };
    let mut gates = Vec::new();
    let (mut of_rings, mut of_soaks, mut of_analyses, mut of_windows, mut confirms) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), None);
    for pin in pins {
        match input.fleet.apps.get(&pin.app).and_then(|app| Some((app, previous_ring(input, app, ring)?))) {
            Some((app, before)) => {
                of_rings.push(ring_gate(input, app, before, pin));
                of_soaks.extend(soak_gate(input, app, before));
                of_analyses.extend(analysis_gate(input, app, before));
                of_windows.extend(window_gate(input, app, ring));
                confirms = confirms.or_else(|| before.limits.confirm.then_some(before));
            }
            None => of_rings.push((
                PromotionGateState::Failure,
                format!("{} is not in the ring before {}", pin.app, ring.name),
            )),
        }
    }
    gates.extend(worst_of_apps("ring", &of_rings));
    gates.extend(worst_of_apps("soak", &of_soaks));
    gates.extend(worst_of_apps("analysis", &of_analyses));
    if let Some(before) = confirms {
        let approvals = head.approved_by.len();
        let state = if approvals > 0 { PromotionGateState::Success } else { PromotionGateState::Pending };
        gates.push(PromotionGate::new(
            "confirm",
            state,
            &format!("{}/1 approving reviews, required after {}", approvals.min(1), before.name),
        ));
    }
    gates.extend(worst_of_apps("window", &of_windows));
    for context in &ring.promotion.statuses {
        let (state, text) = match head.statuses.get(context) {
            Some(PromotionGateState::Success) => (PromotionGateState::Success, format!("1/1 {context}")),
            Some(PromotionGateState::Failure) => {
                (PromotionGateState::Failure, format!("0/1 {context} has failed"))
            }
            Some(PromotionGateState::Pending) => {
                (PromotionGateState::Pending, format!("0/1 {context} is pending"))
            }
            None => (PromotionGateState::Pending, format!("0/1 no status {context} on this commit")),
        };
        gates.push(PromotionGate::new(context, state, &text));
    }
    gates
}

/// Whether the approvals that rules require are there: the merge must not come earlier, because the reviews are read with it.
/// Only the rollout knows the authors of the change.
fn rules_gate(
    input: &PromotionInput<'_>,
    approvals: &[RolloutApproval],
    head: &PullRequestHeadFacts,
) -> Option<PromotionGate> {
    let roles = &input.fleet.approval_rules.roles;
    let mut rules: Vec<UnmetApprovalRule> = Vec::new();
    let mut asked: Vec<(PromotionGateState, String)> = Vec::new();
    let unread =
        |app: &AppId| (PromotionGateState::Pending, format!("the approvals of {app} are not read yet"));
    for approval in approvals {
        let Some(app) = input.fleet.apps.get(&approval.app) else {
            asked.push(unread(&approval.app));
            continue;
        };
        let rollout = input.rollouts.iter().find(|it| it.app == app.id && it.pending_confirmation.is_some());
        rules.extend(rollout.into_iter().flat_map(|it| it.missing_approvals.iter().cloned()));
        // The rules of units that wait for an earlier wave and open with this Approval too. If no rule waits now, all rules.
        let of_app = match rollout {
            Some(rollout) => AppApprovalRules::of_fleet(input.fleet, app, rollout.opened_clusters.iter()),
            None => AppApprovalRules::of_fleet(input.fleet, app, input.fleet.clusters_of(app).iter()),
        };
        if rollout.is_none() && !of_app.is_empty() {
            asked.push(unread(&app.id));
        }
        let of_all = of_app.lists().flatten().filter(|rule| rule.kinds.is_empty());
        rules.extend(of_all.map(|rule| rule.unmet(ApprovalShortfall::None)));
    }
    rules.sort_by(|one, other| one.rule.cmp(&other.rule));
    rules.dedup_by(|one, other| one.rule == other.rule);
    let of_rule = |asks: &UnmetApprovalRule| {
        let Some(count) = asks.count else {
            return (
                PromotionGateState::Pending,
                format!("rule {}: {}", asks.rule, ApprovalShortfall::BrokenRule),
            );
        };
        let counts = |login: &&String| roles.includes(&asks.approvers, &login.to_ascii_lowercase());
        let by = head.approved_by.iter().filter(counts).count();
        let state = if by >= count { PromotionGateState::Success } else { PromotionGateState::Pending };
        (state, format!("{by} of {}, rule {}", asks.requirement(), asks.rule))
    };
    asked.extend(rules.iter().map(of_rule));
    worst_of("approvals", "rules", &asked)
}

/// For a pull request that requests approvals and whose description does not list them.
pub fn unknown_approvals() -> PromotionGate {
    PromotionGate::new(
        "approvals",
        PromotionGateState::Pending,
        "its description does not name the content that it approves",
    )
}

/// The ring before this one, for an app.
fn previous_ring<'a>(input: &PromotionInput<'a>, app: &App, ring: &Ring) -> Option<&'a Ring> {
    let rings = rings_of(input, app);
    let at = rings.iter().position(|it| it.name == ring.name)?;
    at.checked_sub(1).and_then(|at| rings.get(at)).copied()
}

fn ring_gate(
    input: &PromotionInput<'_>,
    app: &App,
    before: &Ring,
    pin: &PinChange,
) -> (PromotionGateState, String) {
    let (name, ring) = (&app.id.name, &before.name);
    let state = input.rings.get(&(app.id.clone(), ring.clone()));
    match running_version(input, app, ring) {
        Ok(version) if version == pin.to => {
            let (units, done) = state.map_or((0, 0), |state| (state.units, state.done));
            (PromotionGateState::Success, format!("{done}/{units} done on {ring} with {name} {version}"))
        }
        Ok(version) => (PromotionGateState::Pending, format!("{ring} runs {name} {version}, not {}", pin.to)),
        Err(why) => {
            let coming = pin_of(input, app, ring).map(|(version, _)| version).filter(|it| *it != pin.to);
            let coming = coming.map(|it| format!(", {ring} gets {it}")).unwrap_or_default();
            (PromotionGateState::Pending, format!("{name}: {why}{coming}"))
        }
    }
}

fn soak_gate(input: &PromotionInput<'_>, app: &App, before: &Ring) -> Option<(PromotionGateState, String)> {
    let until = soaks_until(input, app, before)?;
    let (name, ring) = (&app.id.name, &before.name);
    let shown = until.strftime("%F %H:%M:%S UTC");
    if running_version(input, app, ring).is_err() {
        return Some((PromotionGateState::Pending, format!("{name} begins when {ring} is done")));
    }
    Some(match until > input.now {
        true => (PromotionGateState::Pending, format!("{name} on {ring} until {shown}")),
        false => (PromotionGateState::Success, format!("{name} on {ring} is over")),
    })
}

/// The measurements after the ring before. A merge without them waits in the rollout.
fn analysis_gate(
    input: &PromotionInput<'_>,
    app: &App,
    before: &Ring,
) -> Option<(PromotionGateState, String)> {
    let (standing, words) = ring_measurement(input, app, before)?;
    let (name, ring) = (&app.id.name, &before.name);
    if running_version(input, app, ring).is_err() {
        return Some((PromotionGateState::Pending, format!("{name} begins when {ring} is done")));
    }
    let state = match standing {
        None => PromotionGateState::Success,
        Some(GateProgress::Pending | GateProgress::Inconclusive) => PromotionGateState::Pending,
        Some(GateProgress::Failed) => PromotionGateState::Failure,
    };
    Some((state, format!("{name} on {ring}, {words}")))
}

/// Whether a window is shut for an app in a ring; `None` if no window selects it. A merge in spite of it waits in the rollout.
fn window_gate(input: &PromotionInput<'_>, app: &App, ring: &Ring) -> Option<(PromotionGateState, String)> {
    let clusters = input.fleet.clusters_of(app);
    let of_ring = clusters.iter().filter(|it| input.fleet.ring_of(it) == Some(&ring.name));
    let windows = AppWindows::of_fleet(input.fleet, app, of_ring);
    if windows.is_empty() {
        return None;
    }
    let name = &app.id.name;
    Some(match windows.shut_window(input.wall_time) {
        None => (PromotionGateState::Success, format!("open for {name} on {}", ring.name)),
        Some(ShutWindow { window: by, until }) => (
            PromotionGateState::Pending,
            format!("{name}: {}", window::shut_text(&by.name, until, by.reason.as_deref(), &by.may_override)),
        ),
    })
}

/// One gate for several apps: the worst state, and how many have passed.
fn worst_of_apps(name: &str, of_apps: &[(PromotionGateState, String)]) -> Option<PromotionGate> {
    worst_of(name, "apps", of_apps)
}

/// The same for other things than apps.
fn worst_of(name: &str, things: &str, all: &[(PromotionGateState, String)]) -> Option<PromotionGate> {
    let (state, text) = all.iter().max_by_key(|(state, _)| *state)?;
    let passed = all.iter().filter(|(state, _)| *state == PromotionGateState::Success).count();
    let text = match all.len() {
        1 => text.clone(),
        all if passed == all => format!("{passed}/{all} {things}"),
        all => format!("{passed}/{all} {things}; {text}"),
    };
    Some(PromotionGate::new(name, *state, &text))
}

/// The one status for branch protection: `PREFIX/gate`.
pub fn summary_gate(gates: &[PromotionGate]) -> PromotionGate {
    let passed = gates.iter().filter(|gate| gate.state == PromotionGateState::Success).count();
    let worst =
        gates.iter().max_by_key(|gate| gate.state).filter(|gate| gate.state != PromotionGateState::Success);
    let text = match worst {
        _ if gates.is_empty() => "no promotion".to_owned(),
        None => format!("{passed}/{passed} gates"),
        Some(gate) => format!("{passed}/{} gates; {}: {}", gates.len(), gate.name, gate.text),
    };
    PromotionGate::new("gate", worst.map_or(PromotionGateState::Success, |gate| gate.state), &text)
}

/// The input of the merge decision.
#[derive(Clone, Copy, Debug)]
pub struct MergeInput<'a> {
    pub change: &'a ProposedChange,
    /// The action of [`super::decide`] for the pull request.
    pub action: &'a PullRequestAction,
    pub mode: PromotionMode,
    pub gates: &'a [PromotionGate],
    /// The head that the gates were computed for, and the current head at the forge.
    pub judged_head: &'a Revision,
    pub head: &'a Revision,
    pub has_changes_requested: bool,
    pub has_foreign_commits: bool,
    /// As the forge reports it. `None`: not computed yet.
    pub is_mergeable: Option<bool>,
}

/// Whether tutti merges a pull request now; the merge is then bound to `head`. The forge itself checks the number of reviews that
/// branch protection requires, and refuses the merge.
pub fn may_merge(merge: &MergeInput<'_>) -> Result<(), String> {
    let refused = |why: &str| Err(why.to_owned());
    if !matches!(merge.change, ProposedChange::Promote { .. }) {
        return refused("a person merges it: the merge is the confirmation");
    }
    if merge.mode != PromotionMode::Auto {
        return refused("a person merges it: the ring does not have mode: auto");
    }
    if *merge.action != PullRequestAction::Keep {
        return refused("its content is not the current one");
    }
    if merge.has_foreign_commits {
        return refused("its branch has a commit that tutti did not make");
    }
    if merge.judged_head != merge.head {
        return Err(format!(
            "its head is {} now, the gates are those of {}",
            merge.head.short(),
            merge.judged_head.short()
        ));
    }
    let all = summary_gate(merge.gates);
    if merge.gates.is_empty() || all.state != PromotionGateState::Success {
        return Err(all.text);
    }
    if merge.has_changes_requested {
        return refused("a review requests changes");
    }
    match merge.is_mergeable {
        Some(true) => Ok(()),
        Some(false) => refused("it conflicts with its base"),
        None => refused("the forge does not report yet whether it can be merged"),
    }
}
