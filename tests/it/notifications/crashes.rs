//! The process dies at each point of a message; the next one has its folder, or none.

use super::fixture::{NotificationFixture, WEB, web};
use crate::support::chat::ChatFault;

/// The ids of accepted messages, in order.
fn message_ids(scene: &NotificationFixture) -> Vec<String> {
    scene.chat.received().iter().map(|it| it.body["id"].as_str().expect("an id").to_owned()).collect()
}

/// The process dies while the service handles a failure message in this way; `expected` is how often it arrives in the end.
async fn crash_during(fault: ChatFault, expected: usize) {
    let mut scene = NotificationFixture::two_rings().await;
    scene.push("bad", &[(WEB, Some(&web("broken-1")))]).await;
    scene.until_received("started rollout/bad/test").await;
    scene.chat.set_fault(fault);
    let asked = scene.chat.request_count();
    while scene.chat.request_count() == asked {
        scene.sleep_seconds(1).await;
    }
    // Only what was stored before sending exists.
    assert!(scene.route_state("all").to_string().contains("\"sent\":"), "{:#}", scene.route_state("all"));
    scene.kill().await;
    scene.chat.set_fault(ChatFault::None);
    scene.sleep_seconds(30).await;
    scene.start_notifier();
    scene.until_received("failed rollout/bad/test").await;
    scene.sleep_seconds(600).await;
    let told = scene.received_events();
    assert_eq!(told.iter().filter(|it| *it == "failed rollout/bad/test").count(), expected, "{told:#?}");
    let mut all = message_ids(&scene);
    assert_eq!(all.len(), told.len());
    all.dedup();
    assert_eq!(all.len(), told.len() + 1 - expected, "a repeat has the same id");
    assert!(!scene.route_state("all").to_string().contains("\"sent\":"), "{:#}", scene.route_state("all"));
}

#[tokio::test(start_paused = true)]
async fn an_undelivered_message_arrives_once_after_a_crash() {
    crash_during(ChatFault::NoAnswer, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_delivered_message_repeats_at_most_once() {
    crash_during(ChatFault::AcceptWithoutAnswer, 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_repeats_no_message() {
    let mut scene = NotificationFixture::two_rings().await;
    scene.push("bad", &[(WEB, Some(&web("broken-1")))]).await;
    scene.until_received("failed rollout/bad/test").await;
    scene.sleep_seconds(60).await;
    let told = scene.received_events();
    for _ in 0..3 {
        scene.kill().await;
        scene.start_notifier();
        scene.sleep_seconds(300).await;
        assert_eq!(scene.received_events(), told);
    }
    // It continues where it was.
    scene.release("v2").await;
    scene.until_received("done rollout/v2/prod").await;
}

/// A message was sent but not recorded, and the state changed before the next process reads it: only the new state is sent.
#[tokio::test(start_paused = true)]
async fn the_latest_state_is_sent_after_a_restart() {
    let mut scene = NotificationFixture::two_rings().await;
    scene.sleep_seconds(60).await;
    scene.chat.set_fault(ChatFault::AcceptWithoutAnswer);
    scene.push("v2", &[(WEB, Some(&web("v2")))]).await;
    scene.until_received("started rollout/v2/prod").await;
    scene.kill().await;
    scene.chat.set_fault(ChatFault::None);
    scene.sleep_seconds(600).await;
    scene.start_notifier();
    scene.until_received("done rollout/v2/prod").await;
    scene.sleep_seconds(600).await;
    assert_eq!(scene.thread_summaries(), ["rollout/v2/prod: started done", "rollout/v2/test: done"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_folder_repeats_no_finished_rollout() {
    let mut scene = NotificationFixture::two_rings().await;
    scene.release("v2").await;
    scene.until_received("done rollout/v2/prod").await;
    let before = scene.received_events();
    scene.kill().await;
    std::fs::remove_dir_all(scene.state_file()).expect("a folder");
    scene.start_notifier();
    scene.sleep_seconds(600).await;
    assert_eq!(scene.received_events(), before);
    scene.release("v3").await;
    scene.until_received("done rollout/v3/prod").await;
    // A failure at the first read is sent: whether it was sent before is unknown.
    scene.push("bad", &[(WEB, Some(&web("broken-1")))]).await;
    scene.until_received("failed rollout/bad/test").await;
    let before = scene.received_events();
    scene.kill().await;
    std::fs::remove_dir_all(scene.state_file()).expect("a folder");
    scene.start_notifier();
    scene.sleep_seconds(600).await;
    let new = scene.received_events().split_off(before.len());
    assert_eq!(new, ["started rollout/bad/prod", "failed rollout/bad/test"]);
}

/// A whole process starts empty: it knows apps before their states.
#[tokio::test(start_paused = true)]
async fn a_new_disk_repeats_no_finished_rollout() {
    let mut scene = NotificationFixture::two_rings().await;
    scene.release("v2").await;
    scene.until_received("done rollout/v2/prod").await;
    let before = scene.received_events();
    std::fs::remove_dir_all(scene.state_file()).expect("a folder");
    scene.restart().await;
    scene.sleep_seconds(600).await;
    assert_eq!(scene.received_events(), before);
}
