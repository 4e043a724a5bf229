//! Many messages at once: promotion pull requests, as the pull request service reports them.

use std::sync::Arc;

use tutti::model::{AppId, NotificationPhase};
use tutti::notification::PromotionPull;

use super::fixture::{NotificationFixture, WEB, web};

async fn scene(service: &str) -> NotificationFixture {
    let scene =
        NotificationFixture::with_routes(&["p1"], &[("chat", service, "")], &[(WEB, &web("v1"))]).await;
    scene.sleep_seconds(120).await;
    scene
}

fn promotion_pull(number: u64, happened: NotificationPhase) -> PromotionPull {
    PromotionPull {
        number,
        title: format!("promote(app-{number}): 1.0 → 1.1 on prod"),
        url: format!("https://git.example.com/pulls/{number}"),
        apps: vec![AppId::new("shop", &format!("app-{number:03}"))],
        ring: "prod".to_owned(),
        happened,
    }
}

fn set_promotions(scene: &NotificationFixture, numbers: std::ops::Range<u64>, happened: NotificationPhase) {
    scene.promotions.send_modify(|all| {
        let all = Arc::make_mut(all.get_or_insert_default());
        all.retain(|it| !numbers.contains(&it.number));
        all.extend(numbers.clone().map(|number| promotion_pull(number, happened)));
    });
}

#[tokio::test(start_paused = true)]
async fn too_many_messages_become_a_complete_digest() {
    let scene = scene("dingtalk").await;
    let before = scene.received_events().len();
    set_promotions(&scene, 0..40, NotificationPhase::Opened);
    scene.until("a digest", |told| told.len() > before).await;
    scene.sleep_seconds(300).await;
    assert_eq!(scene.received_events()[before..], ["40 events"]);
    let text = scene.chat.received().pop().expect("a message").body["markdown"]["text"].to_string();
    assert!(text.contains("shop/app-000") && text.contains("and 30 more"), "{text}");

    // One after another, faster than the chat accepts them.
    for number in 0..30 {
        set_promotions(&scene, number..number + 1, NotificationPhase::Merged);
        scene.sleep_seconds(2).await;
    }
    scene.sleep_seconds(300).await;
    let told = scene.received_events().split_off(before + 1);
    let singles = told.iter().filter(|it| it.contains("shop/app-")).count();
    let digests: Vec<usize> = told.iter().filter_map(|it| it.strip_suffix(" events")?.parse().ok()).collect();
    assert_eq!(singles + digests.iter().sum::<usize>(), 30, "{told:#?}");
    assert!(!digests.is_empty() && told.len() < 30, "{told:#?}");
    // The chat refused no message.
    assert!(scene.chat.codes().iter().all(|code| code == "0"), "{:?}", scene.chat.codes());
    let all = scene.route_state("chat");
    for number in 0..30 {
        assert_eq!(all["threads"][format!("promotion/{number}")]["last"], "merged", "{number}");
    }
}

/// A program gets each event.
#[tokio::test(start_paused = true)]
async fn programs_get_no_digest() {
    let scene = scene("generic").await;
    let before = scene.received_events().len();
    set_promotions(&scene, 0..40, NotificationPhase::Opened);
    scene.until("all", |told| told.len() >= before + 40).await;
    scene.sleep_seconds(300).await;
    let mut numbers: Vec<u64> = scene.received_events()[before..]
        .iter()
        .filter_map(|it| it.strip_prefix("opened promotion/")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..40).collect::<Vec<u64>>());
}

#[tokio::test(start_paused = true)]
async fn slack_shows_one_message_for_each_thread() {
    let scene = scene("slack").await;
    let before = scene.chat.received().len();
    set_promotions(&scene, 7..8, NotificationPhase::Opened);
    scene.until("it is opened", |told| told.iter().any(|it| it.contains("proposed"))).await;
    set_promotions(&scene, 7..8, NotificationPhase::Held);
    scene.until("it is held", |told| told.iter().any(|it| it.contains("held"))).await;
    set_promotions(&scene, 7..8, NotificationPhase::Merged);
    scene.until("it is merged", |told| told.iter().any(|it| it.contains("merged"))).await;
    set_promotions(&scene, 8..9, NotificationPhase::Opened);
    let is_opened = |told: &[String]| told.iter().filter(|it| it.contains("proposed")).count() == 2;
    scene.until("another is opened", is_opened).await;
    // A person deletes the message: it is posted again.
    let posted = |number: usize| scene.chat.received()[before + number].ts.clone().expect("a message");
    scene.chat.delete_message(&posted(3));
    set_promotions(&scene, 8..9, NotificationPhase::Merged);
    let is_merged = |told: &[String]| told.iter().filter(|it| it.contains("merged")).count() == 2;
    scene.until("it is merged", is_merged).await;
    // A held one needs attention: it is no edit.
    assert!(posted(0) != posted(1) && posted(1) == posted(2));
    assert!(posted(3) != posted(4));
}

#[tokio::test(start_paused = true)]
async fn slack_edits_the_message_of_a_rollout() {
    let scene = scene("slack").await;
    let before = scene.chat.received().len();
    scene.set_pod_scenario("p1", "rules: [{image: 'registry.example.com/web:v2', fail: crash-loop}]");
    scene.push("v2", &[(WEB, Some(&web("v2")))]).await;
    scene.until("a failure", |told| told.iter().any(|it| it.contains("v2: failed"))).await;
    scene.sleep_seconds(60).await;
    scene.set_pod_scenario("p1", "rules: []");
    scene.until("it is done", |told| told.iter().any(|it| it.contains("v2: done"))).await;
    scene.sleep_seconds(60).await;
    let received = scene.chat.received().split_off(before);
    assert_eq!(received.len(), 2, "{received:#?}");
    assert!(received[0].ts.is_some() && received[0].ts == received[1].ts);
}
