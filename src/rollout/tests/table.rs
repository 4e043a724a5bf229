//! The tables of `docs/reference/rollout.md`: each state of a unit with each event, and each hold.

use std::collections::BTreeSet;

use super::fleet::rings;
use super::simulator::{Health, Simulator, digest};
use crate::model::{AppId, ApprovalShortfall, OnFailure, UnmetApprovalRule};
use crate::rollout::{
    CurrentUnitContent, GateProgress, RenderChoice, RolloutHold, UnitCondition, UnitId, WaveState,
};

const PAGE: &str = include_str!("../../../docs/reference/rollout.md");

const STATES: [&str; 9] =
    ["held", "changing", "done", "failed", "reverted", "frozen", "empty", "left out", "paused"];
const EVENTS: [&str; 12] = [
    "confirmed",
    "newer commit",
    "revert",
    "well",
    "fails",
    "deadline passes",
    "cluster lost",
    "cluster back",
    "cluster rebuilt",
    "paused",
    "resumed",
    "restart",
];

/// The unit on c2, of the second wave, in a state.
fn in_state(state: &str) -> Simulator {
    let mut fleet = rings();
    if state == "empty" {
        fleet.policy.gate_first = true;
        fleet.push(&[("*", "v1")]).settle();
        return fleet;
    }
    let mut fleet = fleet.installed();
    fleet.push(&[("*", "v2")]).settle();
    match state {
        "changing" => _ = fleet.slow("v2").approve("prod"),
        "done" => _ = fleet.approve("prod"),
        "failed" => _ = fleet.crashing("v2").approve("prod"),
        "reverted" => {
            fleet.policy.on_failure = OnFailure::Revert;
            fleet.crashing("v2").approve("prod");
        }
        "frozen" => {
            fleet.commits[1].is_lost = true;
            fleet.kill();
        }
        "left out" => _ = fleet.lose("c2"),
        "paused" => fleet.policy.paused = true,
        _ => {}
    }
    fleet.settle();
    fleet
}

fn happen(fleet: &mut Simulator, event: &str) {
    match event {
        "confirmed" => _ = fleet.approve("prod"),
        "newer commit" => _ = fleet.push(&[("*", "v3")]),
        "revert" => _ = fleet.restore(1),
        "well" => {
            fleet.bad.clear();
            fleet.health("*", Health::Well);
        }
        "fails" => _ = fleet.crashing("v1").crashing("v2").health("c2", Health::Failed),
        "deadline passes" => _ = fleet.pass(601),
        "cluster lost" => _ = fleet.lose("c2"),
        "cluster back" => _ = fleet.back("c2"),
        "cluster rebuilt" => _ = fleet.rebuild("c2"),
        "paused" => fleet.policy.paused = true,
        "resumed" => fleet.policy.paused = false,
        "restart" => fleet.kill(),
        other => panic!("{other} is no event"),
    }
}

fn state_of(fleet: &mut Simulator) -> &'static str {
    fleet.settle();
    let id = UnitId::new("c2", "");
    let facts = fleet.observe().remove(&id).expect("c2");
    let verdict = &fleet.decision().units[&id];
    match &verdict.hold {
        _ if facts.is_left_out() => "left out",
        Some(RolloutHold::Frozen { .. }) => "frozen",
        Some(RolloutHold::Reverted { .. }) => "reverted",
        Some(RolloutHold::Paused) => "paused",
        _ if verdict.choice == RenderChoice::Nothing => "empty",
        Some(_) => "held",
        None if verdict.failure.is_some() => "failed",
        None if facts.current_content == CurrentUnitContent::Head
            && !facts.is_behind
            && facts.condition == UnitCondition::Done =>
        {
            "done"
        }
        None => "changing",
    }
}

#[test]
fn each_state_with_each_event_is_documented() {
    let mut table = format!("| | {} |\n|{}\n", STATES.join(" | "), "---|".repeat(STATES.len() + 1));
    for event in EVENTS {
        let next = STATES.map(|state| {
            let mut fleet = in_state(state);
            assert_eq!(state_of(&mut fleet), state);
            happen(&mut fleet, event);
            state_of(&mut fleet)
        });
        table += &format!("| **{event}** | {} |\n", next.join(" | "));
    }
    assert!(PAGE.contains(&table), "docs/reference/rollout.md lacks this table:\n{table}");
}

/// One hold of each kind. The match fails to compile when one is missing here.
fn all_holds() -> Vec<RolloutHold> {
    let because: std::sync::Arc<str> = "1/2 pods ready".into();
    let (wave, unit) = ("test".to_owned(), UnitId::new("c1", "canary"));
    let digest = digest("v2");
    let holds = vec![
        RolloutHold::Paused,
        RolloutHold::LeftOut { cluster: unit.cluster.clone(), because: because.clone() },
        RolloutHold::Unread,
        RolloutHold::NotRendered { because: because.clone() },
        RolloutHold::ClusterUnread { cluster: unit.clone() },
        RolloutHold::Wave {
            wave: wave.clone(),
            done: 1,
            of: 2,
            unit: unit.clone(),
            because: because.clone(),
        },
        RolloutHold::WaveLeftOut { wave: wave.clone(), because: because.clone() },
        RolloutHold::Soak { wave: wave.clone(), until: "2026-11-26T08:00:00Z".parse().expect("a time") },
        RolloutHold::Confirmation { after: wave.clone(), through: "prod".to_owned(), digest },
        RolloutHold::Concurrency { wave: wave.clone(), limit: 1 },
        RolloutHold::Stopped { unit, because: because.clone() },
        RolloutHold::Reverted { digest },
        RolloutHold::RevertFailed { because: because.clone() },
        RolloutHold::After { app: AppId::new("shop", "db"), because: because.clone() },
        RolloutHold::Pin { ring: wave, version: "1.4.2".to_owned(), through: "prod".to_owned(), digest },
        RolloutHold::Window {
            window: "year-end".to_owned(),
            until: Some("2027-01-01T16:00:00Z".parse().expect("a time")),
            reason: Some("year end".to_owned()),
            may_override: vec!["release-managers".to_owned()],
            digest,
        },
        RolloutHold::Analysis {
            wave: "test".to_owned(),
            analysis: "error-rate".to_owned(),
            standing: GateProgress::Pending,
            because: because.clone(),
            through: "prod".to_owned(),
            digest,
        },
        RolloutHold::Status {
            wave: "test".to_owned(),
            context: "drone/e2e".to_owned(),
            standing: GateProgress::Pending,
            because: because.clone(),
            through: "prod".to_owned(),
            digest,
        },
        RolloutHold::Approval {
            asks: vec![UnmetApprovalRule {
                rule: "production".to_owned(),
                count: Some(2),
                approvers: vec!["release-managers".to_owned()],
                reason: None,
                lack: ApprovalShortfall::TooFew(vec!["ann".to_owned()]),
            }],
            through: "prod".to_owned(),
            digest,
        },
        RolloutHold::Frozen { because, waits: None },
    ];
    match &holds[0] {
        RolloutHold::Paused
        | RolloutHold::LeftOut { .. }
        | RolloutHold::Unread
        | RolloutHold::NotRendered { .. }
        | RolloutHold::ClusterUnread { .. }
        | RolloutHold::Wave { .. }
        | RolloutHold::WaveLeftOut { .. }
        | RolloutHold::Soak { .. }
        | RolloutHold::Confirmation { .. }
        | RolloutHold::Concurrency { .. }
        | RolloutHold::Stopped { .. }
        | RolloutHold::Reverted { .. }
        | RolloutHold::RevertFailed { .. }
        | RolloutHold::After { .. }
        | RolloutHold::Pin { .. }
        | RolloutHold::Window { .. }
        | RolloutHold::Analysis { .. }
        | RolloutHold::Status { .. }
        | RolloutHold::Approval { .. }
        | RolloutHold::Frozen { .. } => holds,
    }
}

#[test]
fn each_hold_is_documented() {
    let mut documented: BTreeSet<&str> =
        PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    for hold in all_holds() {
        let value = serde_json::to_value(&hold).expect("a hold");
        let code = value["code"].as_str().expect("a code").to_owned();
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{code}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/reference/rollout.md lacks the hold {code}"));
        assert_eq!(row.contains("| a person |"), hold.waits_for_a_person(), "{row}");
        documented.remove(code.as_str());
        let words = hold.to_string();
        assert!(words.chars().count() <= 100, "{words}");
    }
    for state in [WaveState::Done, WaveState::Open, WaveState::Failed, WaveState::Shut] {
        let name = serde_json::to_value(state).expect("a state");
        assert!(documented.remove(name.as_str().expect("a name")), "{state:?}");
    }
    assert!(documented.is_empty(), "no hold and no state: {documented:?}");
}
