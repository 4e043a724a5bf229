//! The process dies at each point of a message; the next one has its folder, or none.

use super::scene::{Scene, WEB, web};
use crate::support::chat::Fault;

/// The ids of accepted messages, in order.
fn ids(scene: &Scene) -> Vec<String> {
    scene.chat.received().iter().map(|it| it.body["id"].as_str().expect("an id").to_owned()).collect()
}

/// The process dies while the service handles a failure message in this way; `expected` is how often it arrives in the end.
async fn dies_while(fault: Fault, expected: usize) {
    let mut scene = Scene::rings().await;
    scene.push("bad", &[(WEB, Some(&web("broken-1")))]).await;
    scene.until_told("started rollout/bad/test").await;
    scene.chat.set_fault(fault);
    let asked = scene.chat.asked();
    while scene.chat.asked() == asked {
        scene.quiet(1).await;
    }
    // Only what was stored before sending exists.
    assert!(scene.remembers("all").to_string().contains("\"sent\":"), "{:#}", scene.remembers("all"));
    scene.kill().await;
    scene.chat.set_fault(Fault::None);
    scene.quiet(30).await;
    scene.tell();
    scene.until_told("failed rollout/bad/test").await;
    scene.quiet(600).await;
    let told = scene.told();
    assert_eq!(told.iter().filter(|it| *it == "failed rollout/bad/test").count(), expected, "{told:#?}");
    let mut all = ids(&scene);
    assert_eq!(all.len(), told.len());
    all.dedup();
    assert_eq!(all.len(), told.len() + 1 - expected, "a repeat has the same id");
    assert!(!scene.remembers("all").to_string().contains("\"sent\":"), "{:#}", scene.remembers("all"));
}

#[tokio::test(start_paused = true)]
async fn an_undelivered_message_arrives_once_after_a_crash() {
    dies_while(Fault::Hangs, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_delivered_message_repeats_at_most_once() {
    dies_while(Fault::TakesAndHangs, 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_repeats_no_message() {
    let mut scene = Scene::rings().await;
    scene.push("bad", &[(WEB, Some(&web("broken-1")))]).await;
    scene.until_told("failed rollout/bad/test").await;
    scene.quiet(60).await;
    let told = scene.told();
    for _ in 0..3 {
        scene.kill().await;
        scene.tell();
        scene.quiet(300).await;
        assert_eq!(scene.told(), told);
    }
    // It continues where it was.
    scene.release("v2").await;
    scene.until_told("done rollout/v2/prod").await;
}

/// A message was sent but not recorded, and the state changed before the next process reads it: only the new state is sent.
#[tokio::test(start_paused = true)]
async fn the_latest_state_is_sent_after_a_restart() {
    let mut scene = Scene::rings().await;
    scene.quiet(60).await;
    scene.chat.set_fault(Fault::TakesAndHangs);
    scene.push("v2", &[(WEB, Some(&web("v2")))]).await;
    scene.until_told("started rollout/v2/prod").await;
    scene.kill().await;
    scene.chat.set_fault(Fault::None);
    scene.quiet(600).await;
    scene.tell();
    scene.until_told("done rollout/v2/prod").await;
    scene.quiet(600).await;
    assert_eq!(scene.story(), ["rollout/v2/prod: started done", "rollout/v2/test: done"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_folder_repeats_no_finished_rollout() {
    let mut scene = Scene::rings().await;
    scene.release("v2").await;
    scene.until_told("done rollout/v2/prod").await;
    let before = scene.told();
    scene.kill().await;
    std::fs::remove_dir_all(scene.memory()).expect("a folder");
    scene.tell();
    scene.quiet(600).await;
    assert_eq!(scene.told(), before);
    scene.release("v3").await;
    scene.until_told("done rollout/v3/prod").await;
    // A failure at the first read is sent: whether it was sent before is unknown.
    scene.push("bad", &[(WEB, Some(&web("broken-1")))]).await;
    scene.until_told("failed rollout/bad/test").await;
    let before = scene.told();
    scene.kill().await;
    std::fs::remove_dir_all(scene.memory()).expect("a folder");
    scene.tell();
    scene.quiet(600).await;
    let new = scene.told().split_off(before.len());
    assert_eq!(new, ["started rollout/bad/prod", "failed rollout/bad/test"]);
}

/// A whole process starts empty: it knows apps before their states.
#[tokio::test(start_paused = true)]
async fn a_new_disk_repeats_no_finished_rollout() {
    let mut scene = Scene::rings().await;
    scene.release("v2").await;
    scene.until_told("done rollout/v2/prod").await;
    let before = scene.told();
    std::fs::remove_dir_all(scene.memory()).expect("a folder");
    scene.restart().await;
    scene.quiet(600).await;
    assert_eq!(scene.told(), before);
}
