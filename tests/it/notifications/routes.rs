//! Which route sends which message, and when.

use jiff::{Timestamp, Unit, tz::TimeZone};

use super::fixture::{NotificationFixture, WEB, web};
use crate::support::chat::ChatFault;
use crate::support::manifests::component;

/// Hours around the present time, as a route writes them.
fn quiet_hours_now(except: &str) -> String {
    let now = Timestamp::now().to_zoned(TimeZone::UTC).round(Unit::Minute).expect("a minute");
    let hour = |by: i64| {
        let time = now.checked_add(jiff::Span::new().hours(by)).expect("a time");
        time.strftime("%H:%M").to_string()
    };
    format!(
        ", quietHours: [{{from: \"{}\", to: \"{}\", timeZone: UTC, except: [{except}]}}]",
        hour(-2),
        hour(2)
    )
}

#[tokio::test(start_paused = true)]
async fn messages_of_quiet_hours_come_after_them() {
    let quiet = quiet_hours_now("failed");
    let image = |version: &str| component("pay", &format!("registry.example.com/pay:{version}"));
    let pay = ("apps/pay/app.yaml", &*image("v1"));
    let scene =
        NotificationFixture::with_routes(&["p1"], &[("night", "generic", &quiet)], &[(WEB, &web("v1")), pay])
            .await;
    scene.release("v2").await;
    scene.sleep_seconds(1800).await;
    assert!(scene.received_events().is_empty(), "{:?}", scene.received_events());
    scene.push("bad", &[(pay.0, Some(&image("broken-1")))]).await;
    scene.until_received("failed rollout/bad/prod").await;
    scene.sleep_seconds(1800).await;
    assert_eq!(scene.received_events(), ["failed rollout/bad/prod"]);
    // The quiet hours are removed.
    let (path, text) = scene.route("night", "generic", "");
    scene.push("Day", &[(&path, Some(&text))]).await;
    scene.until_received("done rollout/v2/prod").await;
    scene.sleep_seconds(600).await;
    assert_eq!(scene.received_events(), ["failed rollout/bad/prod", "done rollout/v2/prod"]);
}

#[tokio::test(start_paused = true)]
async fn removed_routes_are_silent_and_new_routes_send() {
    let scene =
        NotificationFixture::with_routes(&["p1"], &[("one", "generic", "")], &[(WEB, &web("v1"))]).await;
    scene.until_received("done rollout/Begin/prod").await;
    scene.push("Without", &[("notifications/one.yaml", None)]).await;
    scene.sleep_seconds(60).await;
    // It may come back.
    assert!(scene.state_file().join("one.json").exists());
    scene.release("v2").await;
    scene.sleep_seconds(600).await;
    assert_eq!(scene.received_events(), ["done rollout/Begin/prod"]);
    let (path, text) = scene.route("two", "generic", "");
    scene.push("Another", &[(&path, Some(&text))]).await;
    scene.sleep_seconds(600).await;
    assert_eq!(scene.received_events(), ["done rollout/Begin/prod"]);
    scene.release("v3").await;
    scene.until_received("done rollout/v3/prod").await;
    scene.sleep_seconds(600).await;
    assert_eq!(scene.received_events(), ["done rollout/Begin/prod", "done rollout/v3/prod"]);
}

#[tokio::test(start_paused = true)]
async fn routes_see_their_own_apps_only() {
    let select = |app: &str| format!(", select: {{apps: {{names: [default/{app}]}}}}");
    let image = |version: &str| component("pay", &format!("registry.example.com/pay:{version}"));
    let (of_web, of_pay) = (select("web"), select("pay"));
    let routes = [("web", "generic", of_web.as_str()), ("pay", "feishu", &of_pay)];
    let pay = ("apps/pay/app.yaml", &*image("v1"));
    let scene = NotificationFixture::with_routes(&["p1"], &routes, &[(WEB, &web("v1")), pay]).await;
    scene.until("both", |told| told.len() == 2).await;
    let broken = image("broken-1");
    scene.push("both", &[(WEB, Some(&web("v2"))), (pay.0, Some(&broken))]).await;
    scene.until("both", |told| told.len() == 4).await;
    scene.sleep_seconds(600).await;
    let mut told = scene.received_events();
    told.sort();
    assert_eq!(
        told,
        [
            "done rollout/Begin/prod",
            "done rollout/both/prod",
            "✓ default/pay v1: done in prod",
            "✗ default/pay broken-1: failed in prod",
        ]
    );
    // Neither route mentions the other's app.
    for message in scene.chat.received() {
        let other = if message.service == "generic" { "default/pay" } else { "default/web" };
        assert!(!message.body.to_string().contains(other), "{}", message.body);
    }
}

/// A refused message delays no other, and arrives once it is accepted.
async fn check_failing_message(fault: ChatFault) {
    let pay = |version: &str| component("pay", &format!("registry.example.com/pay:{version}"));
    let files = [(WEB, &*web("v1")), ("apps/pay/app.yaml", &*pay("v1"))];
    let scene = NotificationFixture::with_routes(&["p1"], &[("one", "generic", "")], &files).await;
    scene.until_received("done rollout/Begin/prod").await;
    scene.chat.set_fault(fault);
    scene.push("stuck", &[(WEB, Some(&web("v2")))]).await;
    scene.sleep_seconds(60).await;
    scene.push("next", &[("apps/pay/app.yaml", Some(&pay("v2")))]).await;
    scene.until_received("done rollout/next/prod").await;
    scene.push("broken", &[("apps/pay/app.yaml", Some(&pay("broken-1")))]).await;
    scene.until_received("failed rollout/broken/prod").await;
    assert_eq!(scene.thread_summaries().len(), 2, "{:#?}", scene.thread_summaries());
    scene.chat.set_fault(ChatFault::None);
    scene.until_received("done rollout/stuck/prod").await;
    scene.sleep_seconds(600).await;
    let mut story = scene.thread_summaries();
    story.sort();
    assert_eq!(story, ["rollout/broken/prod: failed", "rollout/next/prod: done", "rollout/stuck/prod: done"]);
}

#[tokio::test(start_paused = true)]
async fn refused_message_holds_up_no_other() {
    check_failing_message(ChatFault::RejectContaining("\"subject\":\"stuck\"")).await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_message_delays_no_other() {
    check_failing_message(ChatFault::FailContaining("\"subject\":\"stuck\"")).await;
}
