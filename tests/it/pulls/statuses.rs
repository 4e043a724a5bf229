//! After random events each pending status gets one final and true state, with enough time between writes.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tutti::model::Revision;

use super::fixture::{CONTEXTS, PAY, PullRequestFixture, is_pending, pay};
use crate::support::forge::simulator::{ForgeFault, StatusWrite};
use crate::support::manifests::component;

const MIN_INTERVAL: Duration = Duration::from_secs(10);

/// Two writes of one context and commit are apart, unless the second is the result of a pending one.
fn assert_min_interval(words: &[StatusWrite], seed: u64) {
    let mut before: BTreeMap<(&Revision, &str), &StatusWrite> = BTreeMap::new();
    for word in words.iter().filter(|word| CONTEXTS.contains(&word.context.as_str())) {
        let Some(last) = before.insert((&word.commit, &word.context), word) else { continue };
        let is_result = last.state() == "pending" && word.state() != "pending";
        // A write whose answer was lost.
        let is_again = last.text == word.text;
        let apart = word.at - last.at;
        assert!(is_result || is_again || apart >= MIN_INTERVAL, "seed {seed}: {last:?}, then {word:?}");
    }
}

async fn check_random_events(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut scene = PullRequestFixture::two_clusters().await;
    let mut branches: Vec<(String, u64)> = Vec::new();
    // Whether the head is valid, by commit.
    let mut heads: BTreeMap<Revision, bool> = BTreeMap::new();
    let text = |number: u64, is_valid: bool| {
        let text = pay(&format!("w{number}"));
        if is_valid { text } else { text.replace("  port: 8080\n", "  port: many\n") }
    };
    for step in 0..30 {
        let is_valid = random.random_bool(0.7);
        let some = |random: &mut StdRng| random.random_range(0..branches.len().max(1));
        match random.random_range(0..10) {
            0 | 1 => {
                let branch = format!("bump-{step}");
                heads.insert(scene.push(&branch, &[(PAY, Some(&text(step, is_valid)))]), is_valid);
                let number = scene.open_without_wait(&branch);
                branches.push((branch, number));
            }
            2 | 3 => {
                let Some((branch, _)) = branches.get(some(&mut random)) else { continue };
                heads.insert(scene.push(branch, &[(PAY, Some(&text(step, is_valid)))]), is_valid);
            }
            4 => {
                let Some((_, number)) = branches.get(some(&mut random)) else { continue };
                let is_open = scene.simulator.pulls().iter().any(|it| it.number == *number && it.is_open);
                scene.simulator.set_open("li", *number, !is_open);
            }
            5 => {
                let other = component("other", &format!("registry.example.com/other:v{step}"));
                scene.push("main", &[("apps/other/app.yaml", Some(&other))]);
            }
            6 | 7 => {
                let faults = [
                    ForgeFault::Status(502),
                    ForgeFault::RateLimit(3),
                    ForgeFault::NoAnswer,
                    ForgeFault::LostAnswer,
                ];
                let fault = faults[random.random_range(0..faults.len())];
                let places = ["/statuses/", "/comments", "/pulls", "/status", ""];
                let place = places[random.random_range(0..places.len())];
                scene.simulator.fail_next(place, random.random_range(1..4), fault);
            }
            8 => scene.restart().await,
            _ => {}
        }
        let pause = Duration::from_millis([0, 50, 400, 3_000, 15_000][random.random_range(0..5)]);
        tokio::time::sleep(pause).await;
    }
    scene.simulator.clear_faults();
    let open: BTreeMap<Revision, u64> =
        scene.simulator.pulls().into_iter().filter(|it| it.is_open).map(|it| (it.head, it.number)).collect();
    for head in open.keys() {
        scene.until_settled(head).await;
    }
    // Long enough for polls, pauses and late webhooks.
    scene.assert_no_requests(400).await;
    let words = scene.simulator.status_writes();
    assert_min_interval(&words, seed);
    let mut last: BTreeMap<(&Revision, &str), &StatusWrite> = BTreeMap::new();
    words.iter().for_each(|word| _ = last.insert((&word.commit, &word.context), word));
    for ((commit, context), word) in last {
        assert!(
            !is_pending(&word.text),
            "seed {seed}: {} {context} never ended\n{}",
            commit.short(),
            scene.describe()
        );
        let Some(is_valid) = heads.get(commit).filter(|_| CONTEXTS[..2].contains(&context)) else { continue };
        let expected = if *is_valid { "success" } else { "failure" };
        let is_true = word.state() == expected || word.state() == "skipped" && !open.contains_key(commit);
        assert!(
            is_true,
            "seed {seed}: {} is valid: {is_valid}, {context} says {}\n{}",
            commit.short(),
            word.text,
            scene.describe()
        );
    }
    for pull in scene.simulator.pulls() {
        let comments = scene.simulator.comments(pull.number);
        assert!(comments.len() <= 1, "seed {seed}: {comments:#?}");
        assert!(!pull.is_open || comments.len() == 1, "seed {seed}: #{} has no comment", pull.number);
    }
}

#[tokio::test(start_paused = true)]
async fn every_status_ends_in_one_true_state() {
    for seed in 0..8 {
        check_random_events(seed).await;
    }
}
