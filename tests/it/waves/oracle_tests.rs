//! The oracle finds violations: recorded rollouts with a write that is moved to an earlier time.

use std::time::Duration;

use super::fixture::{component, ring_fixture, ring_waves};
use crate::support::oracle::{OracleEvent, RolloutHistory, find_violations};

/// A whole rollout of R: test, an approval, prod.
async fn recorded_rollout() -> RolloutHistory {
    let scene = ring_fixture().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.confirm("prod").await;
    scene.until_over().await;
    scene.assert_ends_at_head();
    scene.oracle.story()
}

fn is_write_to(event: &OracleEvent, cluster: &str) -> bool {
    matches!(event, OracleEvent::Write(write) if write.cluster == cluster)
}

fn event_position(story: &RolloutHistory, is_it: impl Fn(&OracleEvent) -> bool) -> usize {
    story.events.iter().rposition(|(_, event)| is_it(event)).expect("it is there")
}

/// Moves the last event of one kind right before the last one of the other.
fn with_moved_event(
    mut story: RolloutHistory,
    what: impl Fn(&OracleEvent) -> bool,
    before: impl Fn(&OracleEvent) -> bool,
) -> RolloutHistory {
    let (from, to) = (event_position(&story, what), event_position(&story, before));
    assert!(to < from, "it came before");
    let (_, mut event) = story.events.remove(from);
    let (at, of) = &story.events[to];
    let at = *at;
    if let (OracleEvent::Write(moved), OracleEvent::Write(of)) = (&mut event, of) {
        moved.objects_before = of.objects_before.clone();
    }
    story.events.insert(to, (at, event));
    // The moved write stays pending no longer than before.
    for (_, event) in &mut story.events {
        if let OracleEvent::Write(write) = event {
            write.answered_at_event = None;
        }
    }
    story.grace = Duration::ZERO;
    story
}

fn violations_of(story: &RolloutHistory) -> String {
    find_violations(story, &ring_waves("default/pay")).join("\n")
}

#[tokio::test(start_paused = true)]
async fn write_before_the_first_wave_is_a_violation() {
    let story = recorded_rollout().await;
    let early = with_moved_event(story, |it| is_write_to(it, "c2"), |it| is_write_to(it, "c1"));
    assert!(
        violations_of(&early).contains("c2: wave test is not done: c1 is not at this version"),
        "{}",
        violations_of(&early)
    );
}

#[tokio::test(start_paused = true)]
async fn write_before_confirmation_is_a_violation() {
    let story = recorded_rollout().await;
    let early =
        with_moved_event(story, |it| is_write_to(it, "c3"), |it| matches!(it, OracleEvent::Commit(_)));
    assert!(violations_of(&early).contains("c3: c3 takes"), "{}", violations_of(&early));
    assert!(violations_of(&early).contains("before anybody confirmed it"));
}

#[tokio::test(start_paused = true)]
async fn write_beside_an_unwell_wave_is_a_violation() {
    let mut story = recorded_rollout().await;
    let last = event_position(&story, |it| is_write_to(it, "c3"));
    if let (_, OracleEvent::Write(write)) = &mut story.events[last] {
        let of_test = write.objects_before.iter_mut().filter(|((cluster, _), _)| cluster == "c1");
        of_test.for_each(|(_, seen)| seen.is_healthy = false);
    }
    assert!(
        violations_of(&story).contains("c3: wave test is not done: c1 is not well"),
        "{}",
        violations_of(&story)
    );
}

#[tokio::test(start_paused = true)]
async fn foreign_content_and_two_tasks_are_violations() {
    let story = recorded_rollout().await;
    let last = event_position(&story, |it| is_write_to(it, "c3"));
    let mut strange = story.clone();
    if let (_, OracleEvent::Write(write)) = &mut strange.events[last]
        && let Some(applied) = &mut write.applied
    {
        applied.content = Some(tutti::model::Digest::of(b"of no commit"));
    }
    assert!(
        violations_of(&strange).contains("neither the head's nor what it ran"),
        "{}",
        violations_of(&strange)
    );
    let mut twice = story.clone();
    if let (_, OracleEvent::Write(write)) = &mut twice.events[last] {
        write.answered_at_event = Some(last + 2);
    }
    let again = twice.events[last].clone();
    twice.events.insert(last + 1, again);
    assert!(
        violations_of(&twice).contains("an earlier write of it is under way"),
        "{}",
        violations_of(&twice)
    );
    // A record without writes has no violation.
    let none = RolloutHistory { events: Vec::new(), ..story };
    assert_eq!(find_violations(&none, &ring_waves("default/pay")), Vec::<String>::new());
}
