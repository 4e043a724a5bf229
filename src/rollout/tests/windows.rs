//! Windows: nothing new begins while one is shut, what has begun goes on, and the way back is open.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::fleet::{rings, unit_id, wave};
use super::simulator::{Health, Run, Simulator};
use crate::model::{Location, OnFailure, Share, TargetSelector, UnitMark, Window, WindowAction, WindowTimes};
use crate::rollout::{Allows, AppWindows, Choice};

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

/// A window that lasts on these clusters.
pub fn shut(name: &str, clusters: &[&str], until: Option<Timestamp>) -> AppWindows {
    AppWindows::on(clusters.iter().copied(), vec![window(name, until)])
}

const ALL: [&str; 3] = ["c1", "c2", "c3"];

impl Simulator {
    /// For so many seconds from now.
    fn freeze(&mut self, clusters: &[&str], seconds: i64) -> Timestamp {
        let until = self.now.checked_add(SignedDuration::from_secs(seconds)).expect("a time");
        self.windows = shut("freeze", clusters, Some(until));
        until
    }

    /// As objects are that were written before any window was there.
    fn without_marks(&mut self) -> &mut Self {
        for unit in self.units.values_mut() {
            unit.mark = UnitMark::default();
            unit.objects.iter_mut().flatten().for_each(|object| object.mark = UnitMark::default());
        }
        self
    }

    fn override_window(&mut self, window: &str) -> &mut Self {
        let digest = self.digest();
        self.approve_digest(digest, Allows::Override { window: window.to_owned() })
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
    // The first wave has begun: it finishes.
    fleet.bad.clear();
    fleet.has("c1=v2 c2=v1 c3=v1").waits("c2", "window freeze is shut until ");
    assert_eq!(fleet.decision().deadline, Some(until));
    assert!(fleet.decision().is_open);
    fleet.pass(9_900).has("c1=v2 c2=v1 c3=v1");
    fleet.pass(200).has("c1=v2 c2=v2 c3=v2");
    assert!(!fleet.decision().is_open);
}

#[test]
fn what_has_begun_is_written_to_its_end() {
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
    // Deleted by hand, it is put back.
    fleet.delete("c1").has("c1=v2 c2=v1 c3=v1");
    fleet.delete("c2").has("c1=v2 c2=v1 c3=v1");
}

#[test]
fn app_of_one_wave_is_held_where_window_is() {
    let mut fleet = Simulator::new(vec![wave("all", false)]);
    fleet.add("c1", 0).add("c2", 0).add("c3", 0);
    let mut fleet = fleet.installed();
    fleet.freeze(&["c2"], 10_000);
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v2").waits("c2", "window freeze is shut");
    fleet.pass(10_000).has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn way_back_passes() {
    let mut fleet = installed();
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v2 c3=v2");
    fleet.freeze(&ALL, 100_000);
    fleet.push(&[("*", "v3")]).has("c1=v2 c2=v2 c3=v2");
    fleet.restore(1).has("c1=v1 c2=v1 c3=v1");
    // And back again is new.
    fleet.restore(1).push(&[("*", "v3")]).has("c1=v1 c2=v1 c3=v1").waits("c1", "window freeze is shut");
}

/// Objects that were written before a window was there do not name what they had before: history does.
#[test]
fn way_back_is_known_from_history() {
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
fn refused_version_goes_back_in_freeze() {
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
    // The earlier word was for the earlier rollout of that version.
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
    fleet.windows = AppWindows::on(ALL, vec![window("one", None), window("two", None)]);
    fleet.push(&[("*", "v2")]).settle();
    fleet.waits("c1", "window one is shut, managers may override (year end)");
    fleet.override_window("one").has("c1=v1 c2=v1 c3=v1").waits("c1", "window two is shut");
    fleet.override_window("two").has("c1=v2 c2=v2 c3=v2");
}

/// One window of `allow` that lasts is enough, so an override of one is, too; what is denied stays denied.
#[test]
fn override_of_an_allow_window_opens_all_of_them() {
    let far = |name: &str| {
        let from = "2030-01-01T00:00:00Z".parse().expect("a time");
        let times = WindowTimes::Once { from, to: Timestamp::MAX };
        Arc::new(Window { action: WindowAction::Allow, times, ..Window::clone(&window(name, None)) })
    };
    let mut fleet = installed();
    fleet.windows = AppWindows::on(ALL, vec![far("day"), far("night")]);
    fleet.push(&[("*", "v2")]).has("c1=v1 c2=v1 c3=v1").waits("c1", "window day is shut until 2030-01-01");
    fleet.override_window("night").has("c1=v2 c2=v2 c3=v2");
    fleet.windows = AppWindows::on(ALL, vec![far("day"), window("freeze", None)]);
    fleet.push(&[("*", "v3")]).settle();
    fleet.override_window("day").has("c1=v2 c2=v2 c3=v2").waits("c1", "window freeze is shut");
    fleet.override_window("freeze").has("c1=v3 c2=v3 c3=v3");
}

/// A window opens no other gate, and is named once the others are open.
#[test]
fn other_gates_hold_too() {
    let mut fleet = rings().installed();
    fleet.freeze(&["c2", "c3"], 100_000);
    fleet
        .push(&[("*", "v2")])
        .has("c1=v2 c2=v1 c3=v1")
        .waits("c2", "wave test is done, wave prod waits for conf");
    fleet.approve("prod").has("c1=v2 c2=v1 c3=v1").waits("c2", "window freeze is shut");
    fleet.waves[1].limits.max_concurrency = Some(Share::Count(1));
    fleet.pass(100_000).slow("v2").has("c1=v2 c2=v2 c3=v1");
}

#[test]
fn first_installation_waits_like_any_version() {
    let mut fleet = Simulator::new(vec![wave("test", false), wave("prod", false)]);
    fleet.add("c1", 0).add("c2", 1).add("c3", 1);
    fleet.freeze(&ALL, 10_000);
    fleet.push(&[("*", "v1")]).has("c1= c2= c3=").waits("c1", "window freeze is shut");
    assert_eq!(fleet.choice("c2"), &Choice::Nothing);
    fleet.pass(10_000).has("c1=v1 c2=v1 c3=v1");
}

#[test]
fn rebuilt_cluster_gets_what_its_wave_runs() {
    let mut fleet = installed();
    fleet.freeze(&ALL, 100_000);
    fleet.rebuild("c3").has("c1=v1 c2=v1 c3=v1");
    fleet.push(&[("*", "v2")]).rebuild("c3").has("c1=v1 c2=v1 c3=v1");
}

/// What its ring still runs in an earlier wave is no news for it. What an earlier wave took may be.
#[test]
fn rebuilt_cluster_alone_in_its_wave_gets_what_its_ring_runs() {
    let mut fleet = Simulator::new(vec![wave("one", false), wave("two", false)]);
    fleet.add("c1", 0).add("c2", 1);
    let mut fleet = fleet.installed();
    let both = ["c1", "c2"];
    fleet.freeze(&both, 100_000);
    fleet.push(&[("*", "v2")]).rebuild("c2").has("c1=v1 c2=v1").waits("c1", "window freeze is shut");
    fleet.rebuild("c1").has("c1=v1 c2=v1");
    fleet.rebuild("c1").rebuild("c2").has("c1= c2=").waits("c2", "window freeze is shut");
    // What other windows are for is another ring.
    let mut fleet = installed();
    fleet.freeze(&["c2", "c3"], 100_000);
    fleet.rebuild("c2").rebuild("c3").has("c1=v1 c2= c3=").waits("c2", "window freeze is shut");
}

/// Somebody sets the clock, or the machine slept: a window is of what clocks show, a soak is not.
#[test]
fn clock_that_is_set_moves_windows_and_no_soak() {
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

/// The answer is of now: the clock may go back, and a process may begin anew.
#[test]
fn clock_and_process_do_not_matter() {
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
