//! Messages to chat services that check signatures and rates: correct and wrong secrets, limits, failing services.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret as _;
use serde_json::json;
use tutti::model::{MessageLanguage, NotificationPhase};
use tutti::notification::service::send::{RequestRewriter, client, deliver};
use tutti::notification::service::{ResolvedService, SendOutcome, rate_limits};
use tutti::notification::{Message, MessageLink};

use crate::support::chat::{ChatFault, ChatServer, SECRET, SIGNING_KEY, TOKEN};

fn message(number: usize) -> Message {
    Message {
        id: format!("rollout/3f9c2d1/prod/{number}"),
        thread: "rollout/3f9c2d1/prod".to_owned(),
        happened: NotificationPhase::Failed,
        language: MessageLanguage::En,
        at: Timestamp::now(),
        title: format!("✗ pay 1.8.{number} → prod failed"),
        place: "3f9c2d1 bump pay · li".to_owned(),
        cause: "bj5 · Pod shop/pay-7c9f CrashLoopBackOff: <!channel> @all".to_owned(),
        links: vec![MessageLink {
            text: "Commit".to_owned(),
            url: "https://git.example.com/c/3f9c2d1".to_owned(),
        }],
        data: json!({"number": number}),
    }
}

async fn send_message_at(
    chat: &ChatServer,
    target: &ResolvedService,
    number: usize,
    at: Timestamp,
    known: Option<&str>,
) -> SendOutcome {
    let client = client().expect("a client");
    deliver(&client, target, &message(number), at, known, &RequestRewriter(Arc::new(chat.redirect_slack())))
        .await
}

async fn send_message(chat: &ChatServer, target: &ResolvedService, number: usize) -> SendOutcome {
    send_message_at(chat, target, number, Timestamp::now(), None).await
}

#[track_caller]
fn assert_refused(outcome: &SendOutcome, words: &str) {
    let SendOutcome::Refused(why) = outcome else { panic!("{outcome:?}") };
    assert!(why.contains(words), "{why}");
}

#[track_caller]
fn assert_retry_later(outcome: &SendOutcome, seconds: Option<u64>, words: &str) {
    let SendOutcome::RetryLater { after, why } = outcome else { panic!("{outcome:?}") };
    assert_eq!(*after, seconds.map(Duration::from_secs), "{why}");
    assert!(why.contains(words), "{why}");
}

/// The message may have arrived.
#[track_caller]
fn assert_unconfirmed(outcome: &SendOutcome, words: &str) {
    let SendOutcome::Unconfirmed(why) = outcome else { panic!("{outcome:?}") };
    assert!(why.contains(words), "{why}");
}

#[tokio::test]
async fn feishu_accepts_signed_messages() {
    let chat = ChatServer::start().await;
    let right = chat.feishu(Some(SECRET));
    assert_eq!(send_message(&chat, &right, 0).await, SendOutcome::Sent(None));
    assert_refused(&send_message(&chat, &chat.feishu(Some("wrong")), 1).await, "19021");
    assert_refused(&send_message(&chat, &chat.feishu(None), 2).await, "19021");
    let late = Timestamp::now() - SignedDuration::from_hours(2);
    assert_refused(&send_message_at(&chat, &right, 3, late, None).await, "the clock of this machine");
    let ResolvedService::Feishu { url, secret } = right else { unreachable!() };
    let other = ResolvedService::Feishu { url: format!("{}0", url.expose_secret()).into(), secret };
    assert_refused(&send_message(&chat, &other, 4).await, "19001");
    let received = chat.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].body["card"]["header"]["title"]["content"], "✗ pay 1.8.0 → prod failed");
    assert_eq!(chat.codes(), ["0", "19021", "19021", "19021", "19001"]);
}

#[tokio::test]
async fn dingtalk_accepts_signed_messages_within_its_limit() {
    let chat = ChatServer::start().await;
    let right = chat.dingtalk(Some(SECRET));
    assert_refused(&send_message(&chat, &chat.dingtalk(Some("wrong")), 0).await, "sign not match");
    assert_refused(&send_message(&chat, &chat.dingtalk(None), 0).await, "invalid timestamp");
    let late = Timestamp::now() + SignedDuration::from_hours(2);
    assert_refused(&send_message_at(&chat, &right, 0, late, None).await, "invalid timestamp");
    for number in 0..20 {
        assert_eq!(send_message(&chat, &right, number).await, SendOutcome::Sent(None), "{number}");
    }
    assert_retry_later(&send_message(&chat, &right, 20).await, Some(600), "130101");
    assert!(rate_limits(&right).is_some_and(|limits| limits.per_minute < 20));
    let numbers: Vec<String> = (0..20).map(|number| format!("✗ pay 1.8.{number} → prod failed")).collect();
    let received = chat.received();
    let titles: Vec<&str> =
        received.iter().filter_map(|message| message.body["markdown"]["title"].as_str()).collect();
    assert_eq!(titles, numbers);
}

#[tokio::test]
async fn slack_message_is_updated_in_place() {
    let chat = ChatServer::start().await;
    let right = chat.slack(TOKEN);
    assert_refused(&send_message(&chat, &chat.slack("xoxb-wrong"), 0).await, "invalid_auth");
    let SendOutcome::Sent(Some(name)) = send_message(&chat, &right, 0).await else { panic!("not sent") };
    let now = Timestamp::now();
    assert_eq!(
        send_message_at(&chat, &right, 1, now, Some(&name)).await,
        SendOutcome::Sent(Some(name.clone()))
    );
    let received = chat.received();
    assert_eq!(received[0].ts, received[1].ts);
    assert_eq!(received[1].body["text"], "✗ pay 1.8.1 → prod failed");
    // A message that a person deleted is posted again, under a new name.
    chat.delete_message(received[0].ts.as_deref().expect("a message"));
    let SendOutcome::Sent(Some(other)) = send_message_at(&chat, &right, 2, now, Some(&name)).await else {
        panic!("not sent")
    };
    assert_ne!(other, name);
    assert_eq!(chat.codes(), ["invalid_auth", "ok", "ok", "message_not_found", "ok"]);
    let mut elsewhere = right.clone();
    if let ResolvedService::SlackBot { channel, .. } = &mut elsewhere {
        "#other".clone_into(channel);
    }
    assert_refused(&send_message(&chat, &elsewhere, 3).await, "invite the bot");
}

#[tokio::test]
async fn slack_retry_after_is_obeyed() {
    let chat = ChatServer::start().await;
    let right = chat.slack(TOKEN);
    for number in 0..60 {
        assert!(matches!(send_message(&chat, &right, number).await, SendOutcome::Sent(Some(_))), "{number}");
    }
    assert_retry_later(&send_message(&chat, &right, 60).await, Some(30), "429");
}

#[tokio::test]
async fn generic_webhook_accepts_signed_messages() {
    let chat = ChatServer::start().await;
    let right = chat.generic(Some(SIGNING_KEY));
    assert_eq!(send_message(&chat, &right, 7).await, SendOutcome::Sent(None));
    assert_refused(&send_message(&chat, &chat.generic(Some("whsec_AAAA")), 1).await, "401");
    assert_refused(&send_message(&chat, &chat.generic(None), 2).await, "401");
    let late = Timestamp::now() - SignedDuration::from_mins(6);
    assert_refused(&send_message_at(&chat, &right, 3, late, None).await, "401");
    let received = chat.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].body["type"], "dev.tutti.rollout.failed.v1");
    assert_eq!(received[0].body["data"]["number"], 7);
}

#[tokio::test]
async fn failing_services_are_retried_later() {
    let chat = ChatServer::start().await;
    for target in [
        chat.feishu(Some(SECRET)),
        chat.dingtalk(Some(SECRET)),
        chat.slack(TOKEN),
        chat.generic(Some(SIGNING_KEY)),
    ] {
        let name = target.name();
        let is_generic = name == "generic";
        for (fault, words) in [(ChatFault::ServerError, "answers 500"), (ChatFault::Redirect, "answers 302")]
        {
            chat.set_fault(fault);
            assert_retry_later(&send_message(&chat, &target, 0).await, None, &format!("{name} {words}"));
        }
        chat.set_fault(ChatFault::DropConnection);
        assert_unconfirmed(&send_message(&chat, &target, 0).await, &format!("{name} does not answer"));
        chat.set_fault(ChatFault::EndlessAnswer);
        let outcome = send_message(&chat, &target, 0).await;
        if is_generic {
            assert_eq!(outcome, SendOutcome::Sent(None));
        } else {
            assert_retry_later(&outcome, None, "without a code");
        }
        assert!(chat.received().is_empty());
    }
    // The service received the message before the connection broke: it is sent again.
    chat.set_fault(ChatFault::AcceptAndDrop);
    let target = chat.generic(Some(SIGNING_KEY));
    assert_unconfirmed(&send_message(&chat, &target, 5).await, "does not answer");
    chat.set_fault(ChatFault::None);
    assert_eq!(send_message(&chat, &target, 5).await, SendOutcome::Sent(None));
    let ids: Vec<_> = chat.received().into_iter().map(|message| message.body["id"].clone()).collect();
    assert_eq!(ids, ["rollout/3f9c2d1/prod/5", "rollout/3f9c2d1/prod/5"]);
}

/// The clock skips the timeout.
#[tokio::test(start_paused = true)]
async fn hanging_services_time_out() {
    let chat = ChatServer::start().await;
    chat.set_fault(ChatFault::NoAnswer);
    assert_unconfirmed(&send_message(&chat, &chat.feishu(Some(SECRET)), 0).await, "feishu does not answer");
}

#[tokio::test]
async fn errors_hide_the_address() {
    let client = client().expect("a client");
    let now = Timestamp::now();
    // No server listens there.
    let closed = ResolvedService::WeCom { url: "http://127.0.0.1:1/send?key=s3cr3t".into() };
    let plain = ResolvedService::WeCom { url: "http://example.com/send?key=s3cr3t".into() };
    for target in [closed, plain] {
        let outcome = deliver(&client, &target, &message(0), now, None, &RequestRewriter::default()).await;
        assert!(!format!("{outcome:?} {target:?}").contains("s3cr3t"), "{outcome:?}");
        assert!(!matches!(outcome, SendOutcome::Sent(_)));
    }
}

#[cfg(not(feature = "mail"))]
#[tokio::test]
async fn build_without_mail_reports_it() {
    let client = client().expect("a client");
    let target = ResolvedService::Email {
        url: "smtps://li:pw@mail.example.com".into(),
        from: "tutti@example.com".to_owned(),
        to: vec!["ops@example.com".to_owned()],
    };
    let outcome =
        deliver(&client, &target, &message(0), Timestamp::now(), None, &RequestRewriter::default()).await;
    assert_refused(&outcome, "take one with the feature `mail`");
}
