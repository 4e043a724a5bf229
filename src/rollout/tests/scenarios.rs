//! Rollout scenarios: events, and the content of each unit afterwards.

use super::fleet::{groups, rings};
use super::simulator::Health;
use crate::model::{OnFailure, UnitShare};
use crate::rollout::{RenderChoice, RolloutHold, WaveState};

#[test]
fn groups_follow_one_after_another() {
    let mut fleet = groups().installed();
    fleet.push(&[("*", "v4")]);
    fleet.has("blue@c1=v1 canary@c1=v4 green@c1=v1 blue@c2=v1 canary@c2=v1 green@c2=v1");
    fleet.waits("canary@c2", "wave first is done, wave canary waits for confirmation of ");
    fleet.waits("green@c1", "waits for wave canary, 0/1 done, canary on c2: still at the old version");
    let asked = fleet.decision().confirmation.clone().expect("a confirmation");
    assert_eq!((&*asked.after, &*asked.through, asked.digest), ("first", "canary", fleet.digest()));
    fleet.approve("canary");
    fleet.has("blue@c1=v1 canary@c1=v4 green@c1=v1 blue@c2=v1 canary@c2=v4 green@c2=v1");
    fleet.waits("blue@c1", "wave canary is done, wave blue waits for confirmation of ");
    fleet.approve("blue");
    fleet.has("blue@c1=v4 canary@c1=v4 green@c1=v1 blue@c2=v4 canary@c2=v4 green@c2=v1");
    fleet.approve("green");
    fleet.has("blue@c1=v4 canary@c1=v4 green@c1=v4 blue@c2=v4 canary@c2=v4 green@c2=v4");
    assert!(!fleet.decision().is_open);
    assert!(fleet.decision().waves.iter().all(|wave| wave.state == WaveState::Done));
}

#[test]
fn revert_in_mid_rollout_goes_at_once() {
    let mut fleet = groups().installed();
    fleet.push(&[("*", "v4")]).settle();
    fleet.approve("canary").settle();
    fleet.health("canary@c1", Health::Failed).restore(1);
    fleet.step();
    assert!(fleet.contents().contains("canary@c1=v1") && fleet.contents().contains("canary@c2=v1"));
    fleet.has("blue@c1=v1 canary@c1=v1 green@c1=v1 blue@c2=v1 canary@c2=v1 green@c2=v1");
    assert!(
        fleet.units.values().filter(|unit| unit.objects[0].as_ref().is_some_and(|it| it.commit == 1)).count()
            == 4
    );
}

#[test]
fn revert_of_revert_waits_for_new_approval() {
    let mut fleet = rings().installed();
    fleet.push(&[("*", "v2")]).settle();
    fleet.slow("v2").approve("prod").has("c1=v2 c2=v2 c3=v2");
    fleet.restore(1).has("c1=v1 c2=v1 c3=v1");
    fleet.bad.clear();
    fleet.restore(2).has("c1=v2 c2=v1 c3=v1");
    fleet.waits("c2", "wave test is done, wave prod waits for confirmation of ");
    fleet.approve("prod").has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn change_of_one_unit_needs_no_confirmation() {
    let mut fleet = groups().installed();
    fleet.health("canary", Health::Failed).push(&[("green@c2", "v1-config")]);
    fleet.has("blue@c1=v1 canary@c1=v1 green@c1=v1 blue@c2=v1 canary@c2=v1 green@c2=v1-config");
}

#[test]
fn change_of_last_units_ignores_earlier_waves() {
    let mut fleet = groups().installed();
    fleet.push(&[("canary", "v4"), ("green", "v1-port")]);
    // Canary changes too, so green waits for it.
    fleet.has("blue@c1=v1 canary@c1=v4 green@c1=v1 blue@c2=v1 canary@c2=v1 green@c2=v1");
    let mut fleet = groups().installed();
    fleet.push(&[("green", "v1-port")]);
    fleet.has("blue@c1=v1 canary@c1=v1 green@c1=v1-port blue@c2=v1 canary@c2=v1 green@c2=v1-port");
}

#[test]
fn move_of_pod_set_keeps_rollout_open() {
    let mut fleet = groups();
    fleet.add("green@c3", 3);
    fleet.push(&[("*", "v1"), ("green@c3", "")]).settle();
    fleet.slow("v1").push(&[("green@c3", "v1"), ("green@c2", "")]);
    fleet.settle();
    assert!(fleet.decision().is_open);
    fleet.bad.clear();
    fleet.has("blue@c1=v1 canary@c1=v1 green@c1=v1 blue@c2=v1 canary@c2=v1 green@c2=v1 green@c3=v1");
    assert!(!fleet.decision().is_open, "what is gone from the head may go now");
}

#[test]
fn unknown_objects_are_adopted_by_waves() {
    let mut fleet = rings().installed();
    fleet.push(&[("*", "v1-adopted")]);
    fleet.commits[1].is_lost = true;
    fleet.kill();
    fleet.has("c1=v1-adopted c2=v1 c3=v1");
    assert_eq!(fleet.choice("c2"), &RenderChoice::Frozen);
    fleet.waits("c2", "frozen, wave test is done, wave prod waits for confirmation of ");
    assert!(fleet.decision().confirmation.is_some(), "a person is asked for frozen units too");
    assert!(fleet.hold("c2").is_some_and(RolloutHold::waits_for_a_person));
    fleet.approve("prod").has("c1=v1-adopted c2=v1-adopted c3=v1-adopted");
}

#[test]
fn restart_beside_offline_cluster_changes_nothing() {
    let mut fleet = rings().installed();
    fleet.waves[1].limits.max_concurrency = Some(UnitShare::Count(1));
    fleet.push(&[("*", "v2")]).settle();
    fleet.slow("v2").approve("prod").settle();
    assert_eq!(fleet.contents(), "c1=v2 c2=v2 c3=v1");
    fleet.bad.clear();
    fleet.lose("c1").kill();
    fleet.has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn rebuilt_cluster_gets_what_its_wave_runs() {
    let mut fleet = rings().installed();
    fleet.push(&[("*", "v2")]).settle();
    fleet.rebuild("c2").has("c1=v2 c2=v1 c3=v1");
    fleet.waits("c2", "wave test is done, wave prod waits for confirmation of ");
    fleet.kill();
    fleet.has("c1=v2 c2=v1 c3=v1").approve("prod").has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn rebuilt_wave_gets_what_earlier_units_ran() {
    let mut fleet = rings().installed();
    fleet.push(&[("*", "v2")]).settle();
    fleet.rebuild("c2").rebuild("c3").has("c1=v2 c2=v1 c3=v1");
}

#[test]
fn rebuilt_cluster_of_finished_rollout_gets_head() {
    let mut fleet = rings().installed();
    fleet.push(&[("*", "v2")]).settle();
    fleet.approve("prod").settle();
    fleet.health("c1", Health::Progressing).slow("v2").rebuild("c3").has("c1=v2 c2=v2 c3=v2");
    // During a failure it gets the previous content.
    let mut fleet = rings();
    fleet.add("c1b", 0);
    let mut fleet = fleet.installed();
    fleet.crashing("v2").push(&[("*", "v2")]);
    fleet.waves[0].limits.max_concurrency = Some(UnitShare::Count(1));
    fleet.settle();
    fleet.rebuild("c1b").has("c1=v2 c1b=v1 c2=v1 c3=v1");
}

#[test]
fn new_cluster_beside_failing_units_keeps_order() {
    let mut fleet = rings();
    fleet.units.retain(|id, _| id.cluster.as_str() == "c1");
    fleet.push(&[("*", "v1")]).settle();
    fleet.add("c2", 1).add("c3", 1).push(&[("*", "v2")]);
    fleet.has("c1=v2 c2= c3=").waits("c2", "wave test is done, wave prod waits for confirmation of ");
    fleet.approve("prod").has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn deleted_objects_of_held_unit_come_back() {
    let mut fleet = rings().installed();
    fleet.push(&[("*", "v2")]).settle();
    fleet.delete("c2").has("c1=v2 c2=v1 c3=v1");
    fleet.delete("c2").kill();
    fleet.has("c1=v2 c2=v1 c3=v1");
}

#[test]
fn unit_without_objects_is_done() {
    let mut fleet = groups().installed();
    fleet.push(&[("*", "v2"), ("canary", "")]);
    fleet.has("blue@c1=v1 canary@c1=v1 green@c1=v1 blue@c2=v1 canary@c2=v1 green@c2=v1");
    fleet.waits("blue@c1", "wave canary is done, wave blue waits for confirmation of ");
    assert!(fleet.decision().is_open, "what canary had stays until the end");
    fleet.approve("blue").settle();
    fleet.approve("green").has("blue@c1=v2 canary@c1=v1 green@c1=v2 blue@c2=v2 canary@c2=v1 green@c2=v2");
    assert!(!fleet.decision().is_open);
}

#[test]
fn quarter_of_three_units_is_one() {
    let mut fleet = rings();
    fleet.add("c4", 1);
    fleet.waves[1].limits.max_concurrency = Some(UnitShare::Percent(25));
    let mut fleet = fleet.installed();
    fleet.push(&[("*", "v2")]).settle();
    fleet.slow("v2").approve("prod").has("c1=v2 c2=v2 c3=v1 c4=v1");
}

#[test]
fn first_installation_waits_until_all_are_read() {
    let mut fleet = rings();
    fleet.push(&[("*", "v1")]);
    fleet.unread("c1").unread("c2").unread("c3").has("c1= c2= c3=");
    fleet.back("c1").back("c2").has("c1= c2= c3=").waits("c2", "waits for the first read of c3");
    fleet.back("c3").step();
    assert_eq!(fleet.contents(), "c1=v1 c2=v1 c3=v1");

    let mut fleet = rings();
    fleet.lose("c3").push(&[("*", "v1")]).has("c1=v1 c2= c3=");
    fleet.waits("c2", "wave test is done, wave prod waits for confirmation of ");
    fleet.approve("prod").has("c1=v1 c2=v1 c3=");

    let mut fleet = rings();
    fleet.policy.gate_first = true;
    fleet.push(&[("*", "v1")]).has("c1=v1 c2= c3=");
}

#[test]
fn other_api_versions_keep_approvals() {
    let mut fleet = rings().installed();
    fleet.push(&[("*", "v2")]).settle();
    fleet.approve("prod").settle();
    // The same version with another render for c2.
    let unit = fleet.units.get_mut(&super::fleet::unit_id("c2")).expect("c2");
    unit.objects[0].as_mut().expect("an object").content = "v2-old-api".into();
    fleet.has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn early_approval_waits_for_health() {
    let mut fleet = groups().installed();
    fleet.push(&[("*", "v4")]).settle();
    fleet.approve("blue").slow("v4");
    fleet.has("blue@c1=v1 canary@c1=v4 green@c1=v1 blue@c2=v1 canary@c2=v4 green@c2=v1");
    fleet.waits("blue@c1", "waits for wave canary, 0/1 done, canary on c2: 1/2 pods ready");
    fleet.health("canary@c1", Health::Progressing).settle();
    fleet.waits("blue@c1", "waits for wave first, 0/1 done, canary on c1: 1/2 pods ready");
    fleet.bad.clear();
    fleet.has("blue@c1=v4 canary@c1=v4 green@c1=v1 blue@c2=v4 canary@c2=v4 green@c2=v1");
}

#[test]
fn earlier_app_holds_units_on_its_cluster() {
    let mut fleet = rings().installed();
    let hold = RolloutHold::After { app: crate::model::AppId::new("shop", "b"), because: "held".into() };
    let unit = super::fleet::unit_id("c1");
    fleet.units.get_mut(&unit).expect("c1").after = Some(hold.clone());
    fleet.push(&[("*", "v2")]).has("c1=v1 c2=v1 c3=v1").waits("c1", "waits for app shop/b: held");
    fleet.waits("c2", "waits for wave test, 0/1 done, c1: still at the old version");
    // An empty unit does not come first either.
    fleet.rebuild("c1");
    fleet.units.get_mut(&unit).expect("c1").after = Some(hold);
    fleet.has("c1= c2=v1 c3=v1");
    fleet.units.get_mut(&unit).expect("c1").after = None;
    fleet.has("c1=v2 c2=v1 c3=v1");
}

#[test]
fn empty_unit_gets_finished_content_of_another() {
    let mut fleet = rings().installed();
    fleet.slow("v2").push(&[("*", "v2")]).step_until("c1=v2 c2=v1 c3=v1");
    let hold = RolloutHold::After { app: crate::model::AppId::new("shop", "b"), because: "held".into() };
    fleet.units.get_mut(&super::fleet::unit_id("c1")).expect("c1").after = Some(hold);
    fleet.push(&[("*", "v3")]).rebuild("c2").rebuild("c3");
    fleet.has("c1=v2 c2=v1 c3=v1");
    fleet.bad.clear();
    fleet.settle().rebuild("c2").rebuild("c3");
    fleet.has("c1=v2 c2=v2 c3=v2");
}

/// rings() with a ring between test and prod, and no confirmation.
fn three_rings() -> super::simulator::Simulator {
    let names = ["test", "stage", "prod", "rest"];
    let waves = names.map(|name| super::fleet::wave(name, false)).into();
    let mut fleet = super::simulator::Simulator::new(waves);
    fleet.add("c1", 0).add("c2", 1).add("c3", 2);
    fleet
}

#[test]
fn unchanged_version_does_not_count_as_started() {
    let mut fleet = three_rings().installed();
    fleet.waves[0].limits.soak = Some(std::time::Duration::from_secs(300));
    fleet.waves[1].limits.confirm = true;
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1").pass(301).has("c1=v2 c2=v2 c3=v1");
    // Prod keeps its content, which does not count as a later wave that has started: the soak of test applies.
    fleet.push(&[("c1", "v3"), ("c2", "v3"), ("c3", "v1")]).has("c1=v3 c2=v2 c3=v1");
    fleet.waits("c2", "wave test is done, the next opens at ");
    // It does not stop the others when it becomes unhealthy.
    fleet.health("c3", Health::Failed).pass(301).has("c1=v3 c2=v3 c3=v1");
}

#[test]
fn wave_hidden_by_error_is_waited_for() {
    let mut fleet = rings().installed();
    let hidden = fleet.units.remove(&super::fleet::unit_id("c1")).expect("c1");
    fleet.may_lack_clusters = true;
    fleet.push(&[("*", "v2")]).has("c2=v1 c3=v1");
    fleet.waits(
        "c2",
        "every cluster of wave test is left out: an error in the repository may hide its clusters",
    );
    fleet.units.insert(super::fleet::unit_id("c1"), hidden);
    fleet.may_lack_clusters = false;
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1");

    // Removed from Git without an error: no unit.
    let mut fleet = rings().installed();
    fleet.units.remove(&super::fleet::unit_id("c1"));
    fleet.push(&[("c1", ""), ("*", "v2")]).has("c2=v2 c3=v2");
}

#[test]
fn unrenderable_unit_keeps_its_content() {
    let mut fleet = rings().installed();
    fleet.policy.on_failure = OnFailure::Revert;
    fleet.units.get_mut(&super::fleet::unit_id("c2")).expect("c2").mistake = Some("no value".into());
    fleet.push(&[("*", "v2")]).settle();
    fleet.approve("prod").has("c1=v2 c2=v1 c3=v2");
    fleet.waits("c2", "the new version cannot be rendered here: no value");
    fleet.units.get_mut(&super::fleet::unit_id("c2")).expect("c2").mistake = None;
    fleet.has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn tolerated_failures_block_no_unit() {
    let mut fleet = rings().installed();
    fleet.waves[0].limits.confirm = false;
    fleet.waves[1].limits.max_concurrency = Some(UnitShare::Count(1));
    fleet.waves[1].limits.max_failures = 1;
    fleet.push(&[("*", "v2")]).step_until("c1=v2 c2=v2 c3=v1");
    fleet.health("c2", Health::Failed);
    fleet.has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn wave_in_maintenance_waits_until_later_has_begun() {
    let mut fleet = rings().installed();
    fleet.lose("c1").push(&[("*", "v2")]).has("c1=v1 c2=v1 c3=v1");
    fleet.waits("c2", "every cluster of wave test is left out: offline");
    fleet.back("c1").settle();
    fleet.lose("c3").approve("prod").has("c1=v2 c2=v2 c3=v1").lose("c1").settle();
    fleet.back("c3").has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn newer_commits_supersede_older_ones() {
    let mut fleet = rings().installed();
    for version in 2..10 {
        fleet.push(&[("*", &format!("v{version}"))]).step();
        assert!(fleet.contents().ends_with("c2=v1 c3=v1"), "{}", fleet.contents());
    }
    fleet.has("c1=v9 c2=v1 c3=v1").approve("prod").has("c1=v9 c2=v9 c3=v9");
}

#[test]
fn limit_applies_to_reverts() {
    let mut fleet = rings().installed();
    fleet.waves[1].limits.max_concurrency = Some(UnitShare::Count(1));
    fleet.push(&[("*", "v2")]).settle();
    fleet.approve("prod").has("c1=v2 c2=v2 c3=v2");
    fleet.slow("v1").restore(1).has("c1=v1 c2=v1 c3=v2");
    fleet.waits("c3", "wave prod changes 1 at a time (maxConcurrency)");
}

#[test]
fn soak_counts_from_when_wave_is_done() {
    let mut fleet = rings().installed();
    fleet.waves[0].limits.confirm = false;
    fleet.waves[0].limits.soak = Some(std::time::Duration::from_secs(300));
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1");
    assert!(fleet.words("c2").ends_with(" UTC"));
    fleet.waits("c2", "wave test is done, the next opens at 2026-11-26 08:05:");
    assert_eq!(fleet.decision().deadline, fleet.hold("c2").and_then(RolloutHold::until));
    fleet.pass(200).kill();
    fleet.has("c1=v2 c2=v1 c3=v1").pass(200).has("c1=v2 c2=v1 c3=v1");
    fleet.pass(100).has("c1=v2 c2=v2 c3=v2");
}
