//! `tutti notify test` against chat services that check signatures; errors of `tutti notify preview`.

use secrecy::{ExposeSecret as _, SecretString};
use tutti::notification::service::ResolvedService;

use crate::support::chat::{ChatFault, ChatServer, SECRET, SIGNING_KEY};
use crate::support::program::CommandFixture;

const FEISHU_ROUTE: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Notification
metadata: {name: shop-feishu}
spec:
  service: feishu
  url: {env: TUTTI_SECRET_URL}
  secret: {env: TUTTI_SECRET_KEY}
  language: zh
";
const EVENTS_ROUTE: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Notification
metadata: {name: events}
spec:
  service: generic
  url: {env: TUTTI_SECRET_URL}
  secret: {env: TUTTI_SECRET_KEY}
";
const WITHHELD_ROUTE: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Notification
metadata: {name: withheld}
spec:
  service: teams
  url: {env: TEAMS_URL}
";

async fn stage_with_routes() -> CommandFixture {
    CommandFixture::new(&[
        ("notifications/shop-feishu.yaml", FEISHU_ROUTE),
        ("notifications/events.yaml", EVENTS_ROUTE),
        ("notifications/withheld.yaml", WITHHELD_ROUTE),
    ])
    .await
}

/// Both streams and the exit code of a route test. No credential is printed.
async fn test_route(stage: &CommandFixture, route: &str, url: &str, key: &str) -> (String, String, i32) {
    let command = ["notify", "test", route];
    let told = stage
        .run_with(&command, |program| {
            program.env("TUTTI_SECRET_URL", url).env("TUTTI_SECRET_KEY", key).env("USER", "li");
        })
        .await;
    let printed = format!("{}{}", told.0, told.1);
    assert!(!printed.contains(url) && !printed.contains(key), "{printed}");
    told
}

fn service_url(target: ResolvedService) -> SecretString {
    match target {
        ResolvedService::Feishu { url, .. } | ResolvedService::Generic { url, .. } => url,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn route_with_correct_secret_delivers() {
    let (chat, stage) = (ChatServer::start().await, stage_with_routes().await);
    let feishu = service_url(chat.feishu(None));
    let (said, told, code) = test_route(&stage, "shop-feishu", feishu.expose_secret(), SECRET).await;
    let expected = "route shop-feishu: feishu accepted the message: ✓ 通知路由 shop-feishu 的测试消息\n";
    assert_eq!((said.as_str(), code), (expected, 0), "{told}");
    let events = service_url(chat.generic(None));
    let (said, told, code) = test_route(&stage, "events", events.expose_secret(), SIGNING_KEY).await;
    assert_eq!(code, 0, "{said}{told}");
    let received = chat.received();
    let card = &received[0].body["card"];
    assert_eq!(card["header"]["title"]["content"], "✓ 通知路由 shop-feishu 的测试消息");
    assert_eq!(card["elements"][0]["text"]["content"], "main");
    let why = card["elements"][1]["text"]["content"].as_str().expect("who sends it");
    assert!(why.starts_with("由 li@"), "{why}");
    assert_eq!(received[1].body["type"], "dev.tutti.test.v1");
    assert_eq!(received[1].body["data"]["route"], "events");
    assert_eq!(received.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_service_has_its_own_exit_code() {
    let (chat, stage) = (ChatServer::start().await, stage_with_routes().await);
    let (feishu, events) = (service_url(chat.feishu(None)), service_url(chat.generic(None)));
    for (route, url, key, fault, code, words) in [
        (
            "shop-feishu",
            &feishu,
            "SEC-wrong",
            ChatFault::None,
            5,
            "the message is refused: feishu answers 19021",
        ),
        ("events", &events, "whsec_AAAA", ChatFault::None, 5, "the message is refused: generic answers 401"),
        (
            "shop-feishu",
            &feishu,
            SECRET,
            ChatFault::ServerError,
            6,
            "the message is not sent: feishu answers 500",
        ),
        (
            "shop-feishu",
            &feishu,
            SECRET,
            ChatFault::DropConnection,
            6,
            "the message may have arrived: feishu does not answer",
        ),
    ] {
        chat.set_fault(fault);
        let (said, told, found) = test_route(&stage, route, url.expose_secret(), key).await;
        assert_eq!(found, code, "{said}{told}");
        assert!(said.starts_with(&format!("route {route}: {words}")), "{said}{told}");
    }
    assert_eq!(chat.received(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_route_or_credential_sends_nothing() {
    let (chat, stage) = (ChatServer::start().await, stage_with_routes().await);
    let events = service_url(chat.generic(None));
    for (route, url, key, words) in [
        ("shop-feshu", "-", "-", "no route shop-feshu in notifications/; did you mean shop-feishu?"),
        ("other", "-", "-", "no route other in notifications/; there are events, shop-feishu, withheld"),
        ("withheld", "-", "-", "--secret-env TEAMS_URL"),
        ("shop-feishu", "http://chat.example.com/hook", SECRET, "is not an https:// address"),
        ("events", events.expose_secret(), "no base64!", "not a key of Standard Webhooks"),
    ] {
        let (said, told, code) = {
            let command = ["notify", "test", route];
            let variables = [("TUTTI_SECRET_URL", url), ("TUTTI_SECRET_KEY", key)];
            stage.run_with(&command, |program| _ = program.envs(variables)).await
        };
        assert_eq!((said.as_str(), code), ("", 2), "{route}: {told}");
        assert!(told.contains(words), "{route}: {told}");
    }
    let (said, told, code) = stage.run(&["notify", "test", "shop-feishu"]).await;
    assert_eq!((said.as_str(), code), ("", 2), "{told}");
    assert!(
        told.contains("route shop-feishu cannot be used") && told.contains("TUTTI_SECRET_URL: it is not set"),
        "{told}"
    );
    assert_eq!(chat.codes(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_commit_has_no_preview() {
    let stage = stage_with_routes().await;
    let (said, told, code) = stage.run(&["notify", "preview", "--commit", "HEAD"]).await;
    assert_eq!((said.as_str(), code), ("", 2), "{told}");
    assert!(told.contains("has none before it"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commit_with_a_mistake_has_a_preview() {
    let stage = stage_with_routes().await;
    stage.repository.commit("Break", &[("apps/web/app.yaml", Some("kind: [\n"))]);
    let (said, told, code) = stage.run(&["notify", "preview", "--commit", "main", "--route", "events"]).await;
    assert_eq!(code, 2, "{said}{told}");
    assert!(
        said.starts_with("events (generic)\n  failed\n      ✗ commit ")
            && said.contains("apps/web/app.yaml:"),
        "{said}"
    );
    assert!(told.contains("error[") && told.contains("apps/web/app.yaml"), "{told}");
}
