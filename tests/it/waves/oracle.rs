//! The oracle finds violations: recorded rollouts with a write that is moved to an earlier time.

use std::time::Duration;

use super::scene::{component, fleet_r, rings_of};
use crate::support::oracle::{Event, Story, judge};

/// A whole rollout of R: test, an approval, prod.
async fn rollout() -> Story {
    let scene = fleet_r().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.confirm("prod").await;
    scene.until_over().await;
    scene.ends_at_head();
    scene.oracle.story()
}

fn is_write_to(event: &Event, cluster: &str) -> bool {
    matches!(event, Event::Write(write) if write.cluster == cluster)
}

fn place(story: &Story, is_it: impl Fn(&Event) -> bool) -> usize {
    story.events.iter().rposition(|(_, event)| is_it(event)).expect("it is there")
}

/// Moves the last event of one kind right before the last one of the other.
fn moved(mut story: Story, what: impl Fn(&Event) -> bool, before: impl Fn(&Event) -> bool) -> Story {
    let (from, to) = (place(&story, what), place(&story, before));
    assert!(to < from, "it came before");
    let (_, mut event) = story.events.remove(from);
    let (at, of) = &story.events[to];
    let at = *at;
    if let (Event::Write(moved), Event::Write(of)) = (&mut event, of) {
        moved.world = of.world.clone();
    }
    story.events.insert(to, (at, event));
    // The moved write stays pending no longer than before.
    for (_, event) in &mut story.events {
        if let Event::Write(write) = event {
            write.until = None;
        }
    }
    story.grace = Duration::ZERO;
    story
}

fn found(story: &Story) -> String {
    judge(story, &rings_of("default/pay")).join("\n")
}

#[tokio::test(start_paused = true)]
async fn write_before_the_first_wave_is_a_violation() {
    let story = rollout().await;
    let early = moved(story, |it| is_write_to(it, "c2"), |it| is_write_to(it, "c1"));
    assert!(
        found(&early).contains("c2: wave test is not done: c1 is not at this version"),
        "{}",
        found(&early)
    );
}

#[tokio::test(start_paused = true)]
async fn write_before_confirmation_is_a_violation() {
    let story = rollout().await;
    let early = moved(story, |it| is_write_to(it, "c3"), |it| matches!(it, Event::Commit(_)));
    assert!(found(&early).contains("c3: c3 takes"), "{}", found(&early));
    assert!(found(&early).contains("before anybody confirmed it"));
}

#[tokio::test(start_paused = true)]
async fn write_beside_an_unwell_wave_is_a_violation() {
    let mut story = rollout().await;
    let last = place(&story, |it| is_write_to(it, "c3"));
    if let (_, Event::Write(write)) = &mut story.events[last] {
        let of_test = write.world.iter_mut().filter(|((cluster, _), _)| cluster == "c1");
        of_test.for_each(|(_, seen)| seen.is_well = false);
    }
    assert!(found(&story).contains("c3: wave test is not done: c1 is not well"), "{}", found(&story));
}

#[tokio::test(start_paused = true)]
async fn foreign_content_and_two_tasks_are_violations() {
    let story = rollout().await;
    let last = place(&story, |it| is_write_to(it, "c3"));
    let mut strange = story.clone();
    if let (_, Event::Write(write)) = &mut strange.events[last]
        && let Some(applied) = &mut write.applied
    {
        applied.content = Some(tutti::model::Digest::of(b"of no commit"));
    }
    assert!(found(&strange).contains("neither the head's nor what it ran"), "{}", found(&strange));
    let mut twice = story.clone();
    if let (_, Event::Write(write)) = &mut twice.events[last] {
        write.until = Some(last + 2);
    }
    let again = twice.events[last].clone();
    twice.events.insert(last + 1, again);
    assert!(found(&twice).contains("an earlier write of it is under way"), "{}", found(&twice));
    // A record without writes has no violation.
    let none = Story { events: Vec::new(), ..story };
    assert_eq!(judge(&none, &rings_of("default/pay")), Vec::<String>::new());
}
