//! Windows: no new content starts while a window is shut, a change in progress continues, and a revert is possible.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::fleet::{rings, unit_id, wave};
use super::simulator::{Health, Run, Simulator};
use crate::model::{
    Location, OnFailure, TargetSelector, UnitRolloutAnnotations, UnitShare, Window, WindowAction, WindowTimes,
};
use crate::rollout::{AppWindows, ApprovalEffect, RenderChoice};

fn window(name: &str, until: Option<Timestamp>) -> Arc<Window> {
    Arc::new(Window {
        name: name.to_owned(),
        action: WindowAction::Deny,
        selector: TargetSelector::default(),
        times: match until {
            Some(to) => WindowTimes::Once { from: Timestamp::UNIX_EPOCH, to },
            None => WindowTimes::Unknown,
        },
        reason: Some("year end".to_owned()),
        may_override: vec!["managers".to_owned()],
        location: Location::new("policies/freeze.yaml", 1, 1),
    })
}

/// A window that is active on these clusters, without an end.
pub fn shut(name: &str, clusters: &[&str], until: Option<Timestamp>) -> AppWindows {
    AppWindows::on(clusters.iter().copied(), vec![window(name, until)])
}

const ALL: [&str; 3] = ["c1", "c2", "c3"];
pub const END: Option<Timestamp> = Some(Timestamp::MAX);

impl Simulator {
    /// For this many seconds from now.
    fn freeze(&mut self, clusters: &[&str], seconds: i64) -> Timestamp {
        let until = self.now.checked_add(SignedDuration::from_secs(seconds)).expect("a time");
        self.windows = shut("freeze", clusters, Some(until));
        until
    }

    /// Objects from before any window existed have no marks.
    fn without_marks(&mut self) -> &mut Self {
        for unit in self.units.values_mut() {
            unit.mark = UnitRolloutAnnotations::default();
            unit.objects
                .iter_mut()
                .flatten()
                .for_each(|object| object.mark = UnitRolloutAnnotations::default());
        }
        self
    }

    fn override_window(&mut self, window: &str) -> &mut Self {
        let digest = self.digest();
        self.approve_digest(digest, ApprovalEffect::Override { window: window.to_owned() })
    }
}

/// Test, then prod, without confirmation; v1 everywhere.
fn installed() -> Simulator {
    let mut fleet = Simulator::new(vec![wave("test", false), wave("prod", false)]);
    fleet.add("c1", 0).add("c2", 1).add("c3", 1);
    fleet.installed()
}

#[test]
fn freeze_holds_second_wave_until_it_ends() {
    let mut fleet = installed();
    fleet.slow("v2").push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1");
    let until = fleet.freeze(&ALL, 10_000);
    // The first wave has started: it finishes.
    fleet.bad.clear();
    fleet.has("c1=v2 c2=v1 c3=v1").waits("c2", "window freeze is shut until ");
    assert_eq!(fleet.decision().deadline, Some(until));
    assert!(fleet.decision().is_open);
    fleet.pass(9_900).has("c1=v2 c2=v1 c3=v1");
    fleet.pass(200).has("c1=v2 c2=v2 c3=v2");
    assert!(!fleet.decision().is_open);
}

#[test]
fn started_change_is_completed() {
    let mut fleet = installed();
    fleet.writes_whole = false;
    fleet.push(&[("*", "v2")]);
    for _ in 0..2 {
        fleet.step();
    }
    let first = &fleet.units[&unit_id("c1")];
    assert!(first.run == Run::Head && !first.is_whole(&"v2".into()), "{first:?}");
    fleet.freeze(&ALL, 10_000);
    fleet.has("c1=v2 c2=v1 c3=v1");
    // Deleted by hand, it is created again.
    fleet.delete("c1").has("c1=v2 c2=v1 c3=v1");
    fleet.delete("c2").has("c1=v2 c2=v1 c3=v1");
}

#[test]
fn window_holds_app_of_one_wave() {
    let mut fleet = Simulator::new(vec![wave("all", false)]);
    fleet.add("c1", 0).add("c2", 0).add("c3", 0);
    let mut fleet = fleet.installed();
    fleet.freeze(&["c2"], 10_000);
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v2").waits("c2", "window freeze is shut");
    fleet.pass(10_000).has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn revert_passes_window() {
    let mut fleet = installed();
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v2 c3=v2");
    fleet.freeze(&ALL, 100_000);
    fleet.push(&[("*", "v3")]).has("c1=v2 c2=v2 c3=v2");
    fleet.restore(1).has("c1=v1 c2=v1 c3=v1");
    // The second revert is new content.
    fleet.restore(1).push(&[("*", "v3")]).has("c1=v1 c2=v1 c3=v1").waits("c1", "window freeze is shut");
}

/// Objects from before a window existed do not name their previous content: history does.
#[test]
fn revert_is_known_from_history() {
    for is_lost in [false, true] {
        let mut fleet = installed();
        fleet.push(&[("*", "v2")]).settle();
        fleet.push(&[]).settle();
        fleet.freeze(&ALL, 100_000);
        fleet.without_marks();
        fleet.commits[1].is_lost = is_lost;
        fleet.restore(1);
        match is_lost {
            false => fleet.has("c1=v1 c2=v1 c3=v1"),
            true => fleet.has("c1=v2 c2=v2 c3=v2").waits("c1", "window freeze is shut"),
        };
    }
}

#[test]
fn refused_version_is_reverted_in_freeze() {
    let mut fleet = installed();
    fleet.policy.on_failure = OnFailure::Revert;
    fleet.slow("v2").push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1");
    fleet.freeze(&ALL, 100_000);
    fleet.health("c1", Health::Failed).has("c1=v1 c2=v1 c3=v1").waits("c1", "version ");
}

#[test]
fn override_is_for_one_window_and_version() {
    let mut fleet = installed();
    fleet.freeze(&ALL, 100_000);
    fleet.push(&[("*", "v2")]).settle();
    fleet.override_window("other").has("c1=v1 c2=v1 c3=v1");
    fleet.override_window("freeze").has("c1=v2 c2=v2 c3=v2");
    fleet.push(&[("*", "v3")]).has("c1=v2 c2=v2 c3=v2");
    // The earlier approval was for the earlier rollout of that version.
    let v2 = fleet.digest_at(2);
    fleet.override_window("freeze").has("c1=v3 c2=v3 c3=v3");
    fleet.push(&[("*", "v4")]).override_window("freeze").has("c1=v4 c2=v4 c3=v4");
    fleet.push(&[("*", "v2")]).has("c1=v4 c2=v4 c3=v4");
    assert_eq!(fleet.digest(), v2);
    fleet.waits("c1", "window freeze is shut").override_window("freeze").has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn override_opens_no_other_window() {
    let mut fleet = installed();
    fleet.windows = AppWindows::on(ALL, vec![window("one", END), window("two", END)]);
    fleet.push(&[("*", "v2")]).settle();
    fleet.waits("c1", "window one is shut until ");
    fleet.override_window("one").has("c1=v1 c2=v1 c3=v1").waits("c1", "window two is shut");
    fleet.override_window("two").has("c1=v2 c2=v2 c3=v2");
}

/// Its Approvers are unknown, and that does not mean everybody.
#[test]
fn nobody_overrides_window_with_error() {
    let mut fleet = installed();
    let broken = Window { may_override: Vec::new(), ..Window::clone(&window("freeze", None)) };
    fleet.windows = AppWindows::on(ALL, vec![Arc::new(broken)]);
    fleet.push(&[("*", "v2")]).override_window("freeze").has("c1=v1 c2=v1 c3=v1");
    fleet.windows = AppWindows::default();
    fleet.has("c1=v2 c2=v2 c3=v2");
}

/// One open `allow` window is sufficient, so the override of one is too. A `deny` window stays shut.
#[test]
fn one_allow_override_opens_all_allow_windows() {
    let far = |name: &str| {
        let from = "2030-01-01T00:00:00Z".parse().expect("a time");
        let times = WindowTimes::Once { from, to: Timestamp::MAX };
        Arc::new(Window { action: WindowAction::Allow, times, ..Window::clone(&window(name, None)) })
    };
    let mut fleet = installed();
    fleet.windows = AppWindows::on(ALL, vec![far("day"), far("night")]);
    fleet.push(&[("*", "v2")]).has("c1=v1 c2=v1 c3=v1").waits("c1", "window day is shut until 2030-01-01");
    fleet.override_window("night").has("c1=v2 c2=v2 c3=v2");
    fleet.windows = AppWindows::on(ALL, vec![far("day"), window("freeze", END)]);
    fleet.push(&[("*", "v3")]).settle();
    fleet.override_window("day").has("c1=v2 c2=v2 c3=v2").waits("c1", "window freeze is shut");
    fleet.override_window("freeze").has("c1=v3 c2=v3 c3=v3");
}

/// A window opens no other gate, and is shown when the others are open.
#[test]
fn other_gates_apply_too() {
    let mut fleet = rings().installed();
    fleet.freeze(&["c2", "c3"], 100_000);
    fleet
        .push(&[("*", "v2")])
        .has("c1=v2 c2=v1 c3=v1")
        .waits("c2", "wave test is done, wave prod waits for conf");
    fleet.approve("prod").has("c1=v2 c2=v1 c3=v1").waits("c2", "window freeze is shut");
    fleet.waves[1].limits.max_concurrency = Some(UnitShare::Count(1));
    fleet.pass(100_000).slow("v2").has("c1=v2 c2=v2 c3=v1");
}

#[test]
fn first_installation_waits_like_any_version() {
    let mut fleet = Simulator::new(vec![wave("test", false), wave("prod", false)]);
    fleet.add("c1", 0).add("c2", 1).add("c3", 1);
    fleet.freeze(&ALL, 10_000);
    fleet.push(&[("*", "v1")]).has("c1= c2= c3=").waits("c1", "window freeze is shut");
    assert_eq!(fleet.choice("c2"), &RenderChoice::Nothing);
    fleet.pass(10_000).has("c1=v1 c2=v1 c3=v1");
}

#[test]
fn rebuilt_cluster_gets_what_its_wave_runs() {
    let mut fleet = installed();
    fleet.freeze(&ALL, 100_000);
    fleet.rebuild("c3").has("c1=v1 c2=v1 c3=v1");
    fleet.push(&[("*", "v2")]).rebuild("c3").has("c1=v1 c2=v1 c3=v1");
}

/// Content that its ring still runs in an earlier wave is not new. Content that an earlier wave took may be new.
#[test]
fn rebuilt_cluster_gets_content_of_its_ring() {
    let mut fleet = Simulator::new(vec![wave("one", false), wave("two", false)]);
    fleet.add("c1", 0).add("c2", 1);
    let mut fleet = fleet.installed();
    let both = ["c1", "c2"];
    fleet.freeze(&both, 100_000);
    fleet.push(&[("*", "v2")]).rebuild("c2").has("c1=v1 c2=v1").waits("c1", "window freeze is shut");
    fleet.rebuild("c1").has("c1=v1 c2=v1");
    fleet.rebuild("c1").rebuild("c2").has("c1= c2=").waits("c2", "window freeze is shut");
    // A cluster with other windows is another ring.
    let mut fleet = installed();
    fleet.freeze(&["c2", "c3"], 100_000);
    fleet.rebuild("c2").rebuild("c3").has("c1=v1 c2= c3=").waits("c2", "window freeze is shut");
}

/// A window that selects a cluster opens no wave, whether it is open or shut.
#[test]
fn rebuilt_cluster_waits_for_earlier_waves() {
    for seconds in [-1_000, 100_000] {
        let mut fleet = installed();
        fleet.slow("v2").push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1");
        fleet.freeze(&ALL, seconds);
        fleet.rebuild("c2").rebuild("c3").has("c1=v2 c2=v1 c3=v1").waits("c2", "waits for wave test, 0/1");
        fleet.kill();
        fleet.has("c1=v2 c2=v1 c3=v1");
    }
}

#[test]
fn rebuilt_cluster_gets_no_version_that_failed() {
    let mut fleet = installed();
    fleet.crashing("v2").push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1");
    fleet.freeze(&ALL, 100_000);
    fleet.push(&[("*", "v3")]).rebuild("c2").rebuild("c3").has("c1=v2 c2=v1 c3=v1");
    fleet.waits("c1", "window freeze is shut");
}

/// The clock is set or the machine slept: windows follow the machine's clock, soaks do not.
#[test]
fn set_clock_moves_windows_but_no_soak() {
    let mut fleet = installed();
    fleet.waves[0].limits.soak = Some(std::time::Duration::from_secs(1_000));
    let until = fleet.freeze(&ALL, 50_000);
    fleet.push(&[("*", "v2")]).has("c1=v1 c2=v1 c3=v1");
    fleet.ahead = SignedDuration::from_secs(40_000);
    fleet.has("c1=v1 c2=v1 c3=v1");
    let left = until.duration_since(fleet.now) - fleet.ahead;
    let deadline = fleet.decision().deadline.expect("a deadline").duration_since(fleet.now);
    assert!((deadline - left).abs() <= SignedDuration::from_secs(1), "{deadline} {left}");
    fleet.ahead = SignedDuration::from_secs(50_000);
    fleet.has("c1=v2 c2=v1 c3=v1").waits("c2", "wave test is done, the next opens at ");
    fleet.ahead = SignedDuration::from_secs(-50_000);
    fleet.pass(1_000).has("c1=v2 c2=v1 c3=v1").waits("c2", "window freeze is shut");
}

/// The decision is for the current time: the clock may go back, and the process may restart.
#[test]
fn clock_and_restart_do_not_matter() {
    let mut fleet = installed();
    fleet.freeze(&ALL, 10_000);
    fleet.push(&[("*", "v2")]).has("c1=v1 c2=v1 c3=v1");
    fleet.kill();
    fleet.has("c1=v1 c2=v1 c3=v1");
    assert!(fleet.units.values().all(|unit| matches!(unit.run, Run::Held(..))));
    fleet.pass(-5_000).has("c1=v1 c2=v1 c3=v1");
    fleet.pass(14_000).has("c1=v1 c2=v1 c3=v1");
    fleet.kill();
    fleet.pass(2_000).has("c1=v2 c2=v2 c3=v2");
    assert!(fleet.hold("c1").is_none(), "{:?}", fleet.decision().units[&unit_id("c1")]);
}
