//! Receivers of each kind through the router, and the delivery log.

use super::*;
use crate::api::deliveries_router;
use crate::leader::{LeaderRole, LeadershipState};

const BUILD: &str = r#"{"event":"build","repo":{"slug":"shop/pay"},"build":{"status":"success"}}"#;

/// The receivers of [`hooks_with_receivers`], and one for builds.
fn with_builds(capacity: usize) -> (HooksState, Router, mpsc::Receiver<WebhookHint>) {
    let (state, router, hints) = hooks_with_receivers(capacity);
    let builds = HookReceiver { kind: WebhookReceiverKind::Generic, ..receiver("builds", &["s3cr3t"]) };
    state.set_receivers([receiver("gitea", &["s3cr3t"]), builds]);
    (state, router, hints)
}

fn build(body: &str, secret: &str) -> Request<Body> {
    let signature = format!("sha256={}", signed(body.as_bytes(), secret));
    let request = Request::post("/hooks/v1/builds").header("x-tutti-signature-256", signature);
    request.header("authorization", "Bearer t0ken").body(Body::from(body.to_owned())).expect("a request")
}

async fn ask(state: &HooksState, method: &str, path: &str) -> (StatusCode, Value) {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).expect("a request");
    answer(&deliveries_router(state.clone()), request).await
}

async fn list(state: &HooksState, query: &str) -> Vec<Value> {
    let (status, list) = ask(state, "GET", &format!("/api/v1/deliveries{query}")).await;
    assert_eq!(status, StatusCode::OK);
    list["deliveries"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn build_payload_reaches_the_hints() {
    let (_, router, mut hints) = with_builds(8);
    assert_eq!(answer(&router, build(BUILD, "s3cr3t")).await.0, StatusCode::ACCEPTED);
    let hint = hints.try_recv().expect("a hint");
    assert_eq!(hint.payload.expect("kept")["build"]["status"], json!("success"));
    // The same body is the same delivery. A receiver accepts only signatures made for it.
    let duplicate = (StatusCode::OK, json!({"result": "duplicate"}));
    assert_eq!(answer(&router, build(BUILD, "s3cr3t")).await, duplicate);
    assert_eq!(answer(&router, build("{}", "next")).await.0, StatusCode::UNAUTHORIZED);
    let of_forge = delivery("builds", "push", PUSH, "s3cr3t", "d-1");
    assert_eq!(answer(&router, of_forge).await.0, StatusCode::UNAUTHORIZED);
    assert!(hints.try_recv().is_err());
}

#[tokio::test]
async fn deliveries_are_listed_with_their_verdicts() {
    let (state, router, _hints) = with_builds(8);
    for request in [
        delivery("gitea", "push", PUSH, "s3cr3t", "d-1"),
        delivery("gitea", "push", PUSH, "s3cr3t", "d-1"),
        delivery("gitea", "status", "{}", "s3cr3t", "d-2"),
        delivery("gitea", "push", PUSH, "wrong", "d-3"),
        delivery("nobody", "push", PUSH, "s3cr3t", "d-4"),
        build(BUILD, "s3cr3t"),
    ] {
        router.clone().oneshot(request).await.expect("infallible");
    }
    let all = list(&state, "").await;
    let seen: Vec<_> = all.iter().map(|it| (it["number"].as_u64(), it["verdict"].as_str())).collect();
    let expected = [
        (Some(6), Some("accepted")),
        (Some(5), Some("unknown_receiver")),
        (Some(4), Some("unauthorized")),
        (Some(3), Some("ignored")),
        (Some(2), Some("duplicate")),
        (Some(1), Some("accepted")),
    ];
    assert_eq!(seen, expected);
    assert_eq!(list(&state, "?limit=2").await, all[..2]);
    let hint = json!({"kind": "push", "repository": "platform/config", "reference": "refs/heads/main", "after": null,
        "pull": null, "sender": null});
    assert_eq!(
        (&all[5]["hint"], &all[5]["event"], &all[5]["type"]),
        (&hint, &json!("push"), &json!("gitea"))
    );
    assert_eq!(all[3]["reason"], json!("event `status`: commit statuses change nothing here"));
    assert!(all[2]["reason"].as_str().is_some_and(|reason| reason.contains("signature")), "{}", all[2]);
    assert!(all.iter().all(|it| it["time"].as_str().is_some_and(|time| time.ends_with('Z'))));

    let (status, one) = ask(&state, "GET", "/api/v1/deliveries/6").await;
    assert_eq!((status, &one["bytes"]), (StatusCode::OK, &json!(BUILD.len())));
    let text = one.to_string();
    assert!(text.contains(r#"{"name":"authorization","value":null}"#), "{text}");
    for secret in ["t0ken", "s3cr3t", &signed(BUILD.as_bytes(), "s3cr3t")] {
        assert!(!text.contains(secret), "{text}");
    }
    for path in ["/api/v1/deliveries/7", "/api/v1/deliveries/x", "/api/v1/deliveries/-1"] {
        assert_eq!(ask(&state, "GET", path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn only_an_accepted_delivery_is_replayed() {
    let (state, router, mut hints) = with_builds(8);
    for request in [build(BUILD, "s3cr3t"), build(BUILD, "s3cr3t"), build(BUILD, "wrong")] {
        router.clone().oneshot(request).await.expect("infallible");
    }
    let first = hints.try_recv().expect("a hint");
    let (status, body) = ask(&state, "POST", "/api/v1/deliveries/1/replay").await;
    assert_eq!((status, body), (StatusCode::ACCEPTED, json!({"accepted": true, "number": 4})));
    assert_eq!(hints.try_recv().expect("the same"), first);
    assert_eq!(list(&state, "?limit=1").await[0]["reason"], json!("replay of 1"));
    // A replay can be replayed.
    assert_eq!(ask(&state, "POST", "/api/v1/deliveries/4/replay").await.0, StatusCode::ACCEPTED);
    assert_eq!(hints.try_recv().expect("the same"), first);
    for (number, expected) in
        [(2, StatusCode::CONFLICT), (3, StatusCode::CONFLICT), (9, StatusCode::NOT_FOUND)]
    {
        let path = format!("/api/v1/deliveries/{number}/replay");
        assert_eq!(ask(&state, "POST", &path).await.0, expected, "{number}");
    }
    assert!(hints.try_recv().is_err());
    drop(hints);
    let closed = ask(&state, "POST", "/api/v1/deliveries/1/replay").await.0;
    assert_eq!(closed, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn unsigned_deliveries_displace_no_signed_one() {
    let (state, router, mut hints) = with_builds(8);
    let accepted = delivery("gitea", "push", PUSH, "s3cr3t", "first");
    assert_eq!(answer(&router, accepted).await.0, StatusCode::ACCEPTED);
    for number in 0..1500 {
        let request = delivery("gitea", "push", PUSH, "wrong", &number.to_string());
        assert_eq!(answer(&router, request).await.0, StatusCode::UNAUTHORIZED);
    }
    let all = list(&state, "?limit=100000").await;
    assert_eq!((all.len(), &all[200]["number"]), (201, &json!(1)));
    hints.try_recv().expect("a hint");
    // 1,000 signed ones.
    for number in 2..=1200_u64 {
        let (status, body) = ask(&state, "POST", "/api/v1/deliveries/1/replay").await;
        if status == StatusCode::NOT_FOUND {
            assert!(number > 1000, "{number} {body}");
            assert_eq!(list(&state, "?limit=100000").await.len(), 1200);
            return;
        }
        hints.try_recv().expect("the same");
    }
    panic!("the oldest is not dropped");
}

#[tokio::test]
async fn memory_of_deliveries_is_bounded_in_bytes() {
    let (state, router, mut hints) = with_builds(8);
    let body = json!({"event": "build", "text": "x".repeat(60 * 1024)}).to_string();
    assert_eq!(answer(&router, build(&body, "s3cr3t")).await.0, StatusCode::ACCEPTED);
    hints.try_recv().expect("a hint");
    let mut last = 1;
    for _ in 0..600 {
        let (status, body) = ask(&state, "POST", &format!("/api/v1/deliveries/{last}/replay")).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{body}");
        last = body["number"].as_u64().expect("a number");
        hints.try_recv().expect("the same");
    }
    let kept = list(&state, "?limit=100000").await.len();
    assert!((200..300).contains(&kept), "16 MiB hold {kept} of 60 KiB");
}

/// A hint about a branch may be lost, as Git is read anyway. A build is sent once.
#[tokio::test]
async fn delivery_refused_for_room_may_be_resent() {
    let (state, router, mut hints) = with_builds(1);
    assert_eq!(answer(&router, delivery("gitea", "push", PUSH, "s3cr3t", "1")).await.0, StatusCode::ACCEPTED);
    assert_eq!(answer(&router, build(BUILD, "s3cr3t")).await.0, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(list(&state, "?limit=1").await[0]["verdict"], json!("rate_limited"));
    hints.try_recv().expect("the push");
    assert_eq!(answer(&router, build(BUILD, "s3cr3t")).await.0, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn standby_refuses_payloads() {
    let (role, standing) = watch::channel(LeaderRole::StandsBy { leader: Some("other".to_owned()) });
    let (sender, _hints) = mpsc::channel(8);
    let state = HooksState::new(sender, Metrics::default())
        .standing(Some(LeadershipState { role: standing, permit: Default::default() }));
    let builds = HookReceiver { kind: WebhookReceiverKind::Generic, ..receiver("builds", &["s3cr3t"]) };
    state.set_receivers([receiver("gitea", &["s3cr3t"]), builds]);
    let router = hooks_router(state);
    let push = delivery("gitea", "push", PUSH, "s3cr3t", "1");
    assert_eq!(answer(&router, push).await.0, StatusCode::ACCEPTED);
    let (status, body) = answer(&router, build(BUILD, "s3cr3t")).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(body["detail"].as_str().is_some_and(|detail| detail.contains("stands by")), "{body}");
    role.send(LeaderRole::Leads).expect("somebody listens");
    assert_eq!(answer(&router, build(BUILD, "s3cr3t")).await.0, StatusCode::ACCEPTED);
}
