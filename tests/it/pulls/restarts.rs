//! A new process without state continues the work of the one before.

use super::fixture::{CONTEXTS, PAY, PullRequestFixture, is_pending, pay};

#[tokio::test(start_paused = true)]
async fn a_new_process_says_nothing_again() {
    let mut scene = PullRequestFixture::two_clusters().await;
    let head = scene.push("bump", &[(PAY, Some(&pay("v2")))]);
    let number = scene.open("bump").await;
    scene.until_settled(&head).await;
    scene.until("a comment", |now| now.comments(number).len() == 1).await;
    let base = scene.simulator.tip("main").expect("a tip");
    scene.until("the base", |now| now.last_status(&base, CONTEXTS[0]).starts_with("success ")).await;
    scene.assert_no_requests(20).await;
    for _ in 0..2 {
        let before = scene.simulator.requests().len();
        scene.restart().await;
        scene.assert_no_requests(150).await;
        assert_eq!(scene.writes_since(before), Vec::<String>::new());
        assert!(scene.simulator.requests().len() > before + 3, "it asked");
    }
}

// After each write for a pull request.
#[tokio::test(start_paused = true)]
async fn the_next_process_completes_all_statuses() {
    for writes in 0.. {
        let mut scene = PullRequestFixture::two_clusters().await;
        scene.assert_no_requests(5).await;
        scene.simulator.stop_after_writes(writes);
        let head = scene.simulator.push("li", "bump", "Change", &[(PAY, Some(&pay("v2")))]);
        let number = scene.open_without_wait("bump");
        scene
            .until("the end of the process, or of its work", |now| {
                now.is_unresponsive() || now.comments(number).len() == 1
            })
            .await;
        let was_still = scene.simulator.is_unresponsive();
        scene.kill().await;
        scene.simulator.clear_faults();
        scene.start().await;
        scene.until_settled(&head).await;
        scene.until("a comment", |now| now.comments(number).len() == 1).await;
        scene.assert_no_requests(60).await;
        assert_eq!(scene.simulator.comments(number).len(), 1, "after {writes}");
        for context in CONTEXTS {
            let said = scene.simulator.statuses_of(&head, context);
            let results = said.iter().filter(|word| word.starts_with("success ")).count();
            let is_last = said.last().is_some_and(|word| word.starts_with("success "));
            // An answer to a dead process is written once more at most.
            assert!(is_last && results == 1 && said.len() <= 3, "after {writes}: {said:?}");
        }
        if !was_still {
            assert!(writes >= 6, "only {writes} writes");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_process_ends_outdated_statuses() {
    let mut scene = PullRequestFixture::two_clusters().await;
    // From a fork: pending until somebody labels it.
    let number = scene.simulator.pull_from_fork("eve", "Bump", &[(PAY, Some(&pay("v2")))]);
    let head = scene.simulator.pulls()[0].head.clone();
    scene.until("pending", |now| now.last_status(&head, CONTEXTS[1]).starts_with("pending ")).await;
    scene.kill().await;
    scene.simulator.set_open("li", number, false);
    scene.start().await;
    let closed = "skipped closed before there was a result";
    scene
        .until("an end", |now| {
            now.last_status(&head, CONTEXTS[0]) == closed && now.last_status(&head, CONTEXTS[1]) == closed
        })
        .await;

    // The same for an outdated head.
    let base = scene.simulator.tip("main").expect("a tip");
    scene.until("the base", |now| now.last_status(&base, CONTEXTS[0]).starts_with("success ")).await;
    scene.assert_no_requests(30).await;
    let first = scene.push("bump", &[(PAY, Some(&pay("v3")))]);
    let number = scene.open_without_wait("bump");
    let words = |now: &crate::support::forge::simulator::ForgeSimulator| {
        now.status_writes().iter().filter(|it| it.commit == first).count()
    };
    // One after the other, so that no result is posted.
    for _ in 0..1000 {
        if words(&scene.simulator) > 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    scene.kill().await;
    let second = scene.push("bump", &[(PAY, Some(&pay("v4")))]);
    scene.start().await;
    scene.until_settled(&second).await;
    scene
        .until("an end", |now| {
            CONTEXTS.iter().all(|context| {
                now.statuses_of(&first, context).is_empty() || !is_pending(&now.last_status(&first, context))
            })
        })
        .await;
    scene.until("a comment", |now| now.comments(number).len() == 1).await;
}
