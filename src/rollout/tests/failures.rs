//! Failed units: which failures stop a rollout, which ones revert it, and which do not count.

use super::fleet::rings;
use super::simulator::Health;
use crate::model::{OnFailure, UnitShare};
use crate::rollout::{RenderChoice, RolloutHold};

#[test]
fn revert_needs_content_of_previous() {
    let mut fleet = rings().installed();
    fleet.policy.on_failure = OnFailure::Revert;
    fleet.crashing("v2").push(&[("*", "v2")]);
    fleet.commits[1].is_lost = true;
    fleet.has("c1=v2 c2=v1 c3=v1");
    assert_eq!(fleet.choice("c1"), &RenderChoice::Head);
    fleet.waits("c1", "RevertFailed: commit 0000000 cannot be read any more");
    assert_eq!(fleet.failure("c1"), "ImagePullBackOff");
    assert!(matches!(fleet.hold("c2"), Some(RolloutHold::Reverted { .. })));
}

#[test]
fn unhealthy_unit_stops_its_wave() {
    let mut fleet = rings().installed();
    fleet.waves[1].limits.max_concurrency = Some(UnitShare::Count(1));
    fleet.push(&[("*", "v2")]).settle();
    fleet.slow("v2").approve("prod").has("c1=v2 c2=v2 c3=v1");
    fleet.waits("c3", "wave prod changes 1 at a time (maxConcurrency)");
    let over = fleet.decision().deadline.expect("a deadline");
    fleet.now = over;
    fleet.has("c1=v2 c2=v2 c3=v1");
    fleet.waits("c3", "stopped, c2 failed: not done for 600 s: 1/2 pods ready");
    assert_eq!(fleet.failure("c2"), "not done for 600 s: 1/2 pods ready");
    fleet.health("c2", Health::Well).has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn paused_time_is_no_failure() {
    let mut fleet = rings().installed();
    fleet.slow("v2").push(&[("*", "v2")]).settle();
    fleet.policy.paused = true;
    fleet.settle().pass(3600).settle();
    fleet.waits("c2", "the app is paused");
    fleet.policy.paused = false;
    fleet.has("c1=v2 c2=v1 c3=v1");
    assert_eq!(fleet.failure("c1"), "-");
    fleet.pass(600).settle();
    assert_eq!(fleet.failure("c1"), "not done for 600 s: 1/2 pods ready");
}

#[test]
fn problem_after_rollout_is_no_failure() {
    let mut fleet = rings().installed();
    fleet.policy.on_failure = OnFailure::Revert;
    fleet.push(&[("*", "v2")]).settle();
    fleet.approve("prod").settle();
    fleet.pass(21 * 24 * 3600).health("c1", Health::Failed).crashing("v2").has("c1=v2 c2=v2 c3=v2");
    assert!(!fleet.decision().is_open);
    assert_eq!(fleet.failure("c1"), "-");
}

#[test]
fn reverted_version_does_not_start_again() {
    let mut fleet = rings().installed();
    fleet.policy.on_failure = OnFailure::Revert;
    fleet.push(&[("*", "v2")]).settle();
    fleet.crashing("v2").approve("prod").has("c1=v1 c2=v1 c3=v1");
    fleet.waits("c1", "version ").kill();
    fleet.has("c1=v1 c2=v1 c3=v1").pass(7200).has("c1=v1 c2=v1 c3=v1");
    fleet.push(&[]).kill();
    fleet.has("c1=v1 c2=v1 c3=v1");
    assert!(matches!(fleet.hold("c3"), Some(RolloutHold::Reverted { .. })));
    fleet.bad.clear();
    fleet.retry().has("c1=v2 c2=v1 c3=v1");
    fleet.waits("c2", "wave test is done, wave prod waits for confirmation of ");
}

#[test]
fn reverted_unit_stays_reverted_whatever_others_ran() {
    let mut fleet = rings();
    fleet.add("c0", 0);
    let mut fleet = fleet.installed();
    fleet.policy.on_failure = OnFailure::Revert;
    fleet.push(&[("c1", "v4")]).has("c0=v1 c1=v4 c2=v1 c3=v1");
    // Neither is done with v3: their revert content stays the same.
    fleet.bad.insert("v3".into(), Health::Progressing);
    fleet.push(&[("c0", "v3"), ("c1", "v3")]).step_until("c0=v3 c1=v3 c2=v1 c3=v1");
    fleet.push(&[("c1", "v1")]).step_until("c0=v3 c1=v1 c2=v1 c3=v1");
    fleet.health("c1", Health::Failed).has("c0=v1 c1=v4 c2=v1 c3=v1");
    fleet.kill();
    fleet.has("c0=v1 c1=v4 c2=v1 c3=v1");
}

#[test]
fn partial_revert_continues_after_restart() {
    let mut fleet = rings().installed();
    fleet.policy.on_failure = OnFailure::Revert;
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1");
    fleet.writes_whole = false;
    fleet.crashing("v2").health("c1", Health::Failed).step_until("c1=v1+v2 c2=v1 c3=v1");
    fleet.health("c1", Health::Progressing).kill();
    fleet.has("c1=v1 c2=v1 c3=v1");
    assert!(matches!(fleet.hold("c2"), Some(RolloutHold::Reverted { .. })));
}

#[test]
fn partial_unit_reverts_when_its_wave_shuts() {
    let mut fleet = rings().installed();
    fleet.push(&[("*", "v2")]).settle();
    fleet.writes_whole = false;
    fleet.approve("prod").step();
    assert_eq!(fleet.contents(), "c1=v2 c2=v1+v2 c3=v1+v2");
    fleet.push(&[("*", "v3")]).has("c1=v3 c2=v1 c3=v1");
}

#[test]
fn rebuilt_cluster_of_refused_version_gets_old_one() {
    let mut fleet = rings().installed();
    fleet.policy.on_failure = OnFailure::Revert;
    fleet.crashing("v2").push(&[("*", "v2")]).has("c1=v1 c2=v1 c3=v1");
    fleet.rebuild("c2").has("c1=v1 c2=v1 c3=v1");
}

#[test]
fn some_failures_may_be_allowed() {
    let mut fleet = rings();
    fleet.add("c4", 2);
    fleet.waves[1].limits.max_failures = 1;
    let mut fleet = fleet.installed();
    fleet.push(&[("*", "v2"), ("c2", "v2-bad")]).settle();
    fleet.crashing("v2-bad").approve("rest").has("c1=v2 c2=v2-bad c3=v2 c4=v2");
    // Never in the first wave.
    let mut fleet = rings().installed();
    fleet.waves[0].limits.max_failures = 1;
    fleet.crashing("v2").push(&[("*", "v2")]).approve("prod").has("c1=v2 c2=v1 c3=v1");
    fleet.waits("c2", "stopped, c1 failed: ImagePullBackOff");
}

#[test]
fn fix_passes_a_broken_version() {
    let mut fleet = rings().installed();
    fleet.crashing("v2").push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1");
    fleet.push(&[("*", "v3")]).has("c1=v3 c2=v1 c3=v1").approve("prod").has("c1=v3 c2=v3 c3=v3");
}
