//! The content of valid deliveries.

use serde_json::{Value, json};

use super::*;
use crate::forge::{WebhookHint, WebhookHintKind};

fn accepted(kind: WebhookReceiverKind, event: &str, body: &Value) -> WebhookHint {
    match deliver(kind, event, body.to_string().as_bytes()) {
        Ok(WebhookOutcome::Accepted(hint)) => hint,
        other => panic!("{event} {body}: {other:?}"),
    }
}

#[track_caller]
fn is_ignored(kind: WebhookReceiverKind, event: &str, body: &Value, words: &str) {
    match deliver(kind, event, body.to_string().as_bytes()) {
        Ok(WebhookOutcome::Ignored { reason }) => assert!(reason.contains(words), "{reason}"),
        other => panic!("{event} {body}: {other:?}"),
    }
}

/// The fields of every forge event.
fn event(rest: Value) -> Value {
    let mut event = json!({"repository": {"full_name": "platform/config"}, "sender": {"login": "li"}});
    let Value::Object(rest) = rest else { panic!("{rest}") };
    event.as_object_mut().expect("an object").extend(rest);
    event
}

#[test]
fn forge_events_become_hints() {
    let pull = json!({"number": 7, "head": {"sha": COMMIT, "ref": "x"}});
    let check = |name: &str, body: Value, expected: WebhookHint| {
        let expected = WebhookHint {
            receiver: "door".to_owned(),
            repository: Some("platform/config".to_owned()),
            sender: Some("li".to_owned()),
            delivery: Some("d-1".to_owned()),
            ..expected
        };
        for kind in [WebhookReceiverKind::Gitea, WebhookReceiverKind::Forgejo] {
            assert_eq!(accepted(kind, name, &event(body.clone())), expected, "{name} {body}");
        }
    };
    let after = Some(COMMIT.to_owned());
    let main = WebhookHint {
        reference: Some("refs/heads/main".to_owned()),
        after: after.clone(),
        ..WebhookHint::default()
    };
    check("push", json!({"ref": "refs/heads/main", "after": COMMIT, "commits": []}), main.clone());
    let created = json!({"ref": "main", "ref_type": "branch", "sha": COMMIT});
    check("create", created, WebhookHint { kind: WebhookHintKind::BranchCreated, ..main.clone() });
    let deleted = json!({"ref": "main", "ref_type": "branch"});
    check("delete", deleted, WebhookHint { kind: WebhookHintKind::BranchDeleted, after: None, ..main });
    let hint = |kind| WebhookHint { kind, pull: Some(7), after: after.clone(), ..WebhookHint::default() };
    for action in
        ["opened", "closed", "reopened", "edited", "synchronized", "synchronize", "of a later version"]
    {
        let body = json!({"action": action, "number": 7, "pull_request": pull});
        check("pull_request", body, hint(WebhookHintKind::Pull));
    }
    for action in ["label_updated", "label_cleared"] {
        let body = json!({"action": action, "number": 7, "pull_request": pull});
        check("pull_request", body, hint(WebhookHintKind::Label));
    }
    let review = json!({"action": "reviewed", "number": 7, "pull_request": pull, "commit_id": "",
        "review": {"type": "pull_request_review_approved", "content": ""}});
    for name in ["pull_request_approved", "pull_request_rejected", "pull_request_comment"] {
        check(name, review.clone(), hint(WebhookHintKind::Review));
    }
    let commented = json!({"action": "created", "is_pull": true, "issue": {"number": 7},
        "comment": {"body": "/tutti plan"}});
    check("issue_comment", commented, WebhookHint { after: None, ..hint(WebhookHintKind::Comment) });
}

#[test]
fn forge_events_without_a_change_are_ignored() {
    let zero = "0".repeat(40);
    let check = |name: &str, body: Value, words: &str| {
        is_ignored(WebhookReceiverKind::Gitea, name, &event(body.clone()), words);
        is_ignored(WebhookReceiverKind::Forgejo, name, &event(body), words);
    };
    check("status", json!({"context": "tutti/deploy/prod", "state": "pending"}), "`status`");
    check("issues", json!({}), "event `issues`");
    check("workflow_run", json!({"action": "completed"}), "event `workflow_run`");
    check("push", json!({"ref": "refs/heads/main", "after": zero}), "deletes");
    check("push", json!({"ref": "refs/tags/v1", "after": zero}), "deletes");
    check("push", json!({"ref": "refs/for/main", "after": COMMIT}), "not to a branch");
    check("create", json!({"ref": "v1", "ref_type": "tag"}), "not about a branch");
    check("delete", json!({"ref": "v1", "ref_type": "tag"}), "not about a branch");
    for action in ["assigned", "unassigned", "milestoned", "demilestoned", "review_requested"] {
        check("pull_request", json!({"action": action, "number": 7}), action);
    }
    check(
        "issue_comment",
        json!({"action": "created", "is_pull": false, "issue": {"number": 7}}),
        "an issue",
    );
    let own = json!({"body": "<!-- tutti:plan v1 -->\n### plan"});
    let ours = json!({"action": "edited", "is_pull": true, "issue": {"number": 7}, "comment": own});
    check("issue_comment", ours, "tutti itself");
}

/// Some versions send statuses to hooks for pushes, with an empty event name.
#[test]
fn empty_event_name_falls_back_to_the_type() {
    let check = |kind: &str, body: &Value, expected: Option<WebhookHintKind>| {
        let body = body.to_string();
        let mut headers = signed(WebhookReceiverKind::Gitea, "", body.as_bytes(), SECRET);
        headers.insert("x-gitea-event-type", kind.parse().expect("a value"));
        let received =
            receive(WebhookReceiverKind::Gitea, &headers, body.as_bytes(), &[SECRET]).expect("genuine");
        let found = if let WebhookOutcome::Accepted(hint) = received { Some(hint.kind) } else { None };
        assert_eq!(found, expected, "{kind}");
    };
    check("status", &json!({"context": "tutti/deploy"}), None);
    check("pull_request_sync", &json!({"action": "synchronized", "number": 7}), Some(WebhookHintKind::Pull));
    check(
        "pull_request_label",
        &json!({"action": "label_updated", "number": 7}),
        Some(WebhookHintKind::Label),
    );
    check(
        "pull_request_review_approved",
        &json!({"action": "reviewed", "number": 7}),
        Some(WebhookHintKind::Review),
    );
    let commented = json!({"action": "created", "is_pull": true, "issue": {"number": 7}});
    check("pull_request_comment", &commented, Some(WebhookHintKind::Comment));
}

#[test]
fn form_is_signed_over_its_payload() {
    let payload = r#"{"ref":"refs/heads/main"}"#;
    let body = b"payload=%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%7D";
    for signature in [digits(payload.as_bytes(), SECRET), digits(body, SECRET)] {
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        let pairs = [("x-gitea-event", "push"), ("x-gitea-signature", &signature), ("content-type", form)];
        let received =
            receive(WebhookReceiverKind::Gitea, &headers(&pairs), body, &[SECRET]).expect("received");
        let WebhookOutcome::Accepted(hint) = received else { panic!("{received:?}") };
        assert_eq!(hint.reference.as_deref(), Some("refs/heads/main"));
    }
}

#[test]
fn builds_and_tags_keep_their_payload() {
    let tag = event(json!({"ref": "refs/tags/v1.8.0", "after": COMMIT}));
    let hint = accepted(WebhookReceiverKind::Gitea, "push", &tag);
    assert_eq!((hint.kind, hint.reference.as_deref()), (WebhookHintKind::Tag, Some("refs/tags/v1.8.0")));
    assert_eq!(hint.payload.as_deref(), Some(&tag));

    let build = json!({"status": "success", "event": "tag", "ref": "refs/tags/v1.8.0", "after": COMMIT, "sender": "li",
        "stages": [{"steps": []}]});
    let sent = json!({"event": "build", "action": "updated", "repo": {"slug": "shop/pay"}, "build": build});
    let hint = accepted(WebhookReceiverKind::Drone, "", &sent);
    assert_eq!((hint.kind, hint.repository.as_deref()), (WebhookHintKind::Build, Some("shop/pay")));
    assert_eq!((hint.after.as_deref(), hint.sender.as_deref()), (Some(COMMIT), Some("li")));
    let payload = hint.payload.expect("kept");
    assert_eq!((&payload["build"]["status"], &payload["build"]["stages"]), (&json!("success"), &Value::Null));
    for name in ["user", "repo"] {
        is_ignored(WebhookReceiverKind::Drone, "", &json!({"event": name, "action": "created"}), name);
    }
    is_ignored(WebhookReceiverKind::Drone, "", &json!({}), "no `event`");

    let step = json!({"CI_REPO": "shop/pay", "CI_COMMIT_SHA": COMMIT, "CI_COMMIT_REF": "refs/heads/main",
        "CI_COMMIT_AUTHOR": "li", "CI_COMMIT_PULL_REQUEST": "12", "CI_PIPELINE_STATUS": "success"});
    let expected = WebhookHint {
        receiver: "door".to_owned(),
        repository: Some("shop/pay".to_owned()),
        reference: Some("refs/heads/main".to_owned()),
        after: Some(COMMIT.to_owned()),
        pull: Some(12),
        kind: WebhookHintKind::Build,
        sender: Some("li".to_owned()),
        delivery: Some(hex::encode(Sha256::digest(step.to_string()))),
        payload: Some(std::sync::Arc::new(step.clone())),
    };
    assert_eq!(accepted(WebhookReceiverKind::Woodpecker, "", &step), expected);

    for kind in [WebhookReceiverKind::Generic, WebhookReceiverKind::StandardWebhooks] {
        let hint = accepted(kind, "", &json!({"image": "pay:1.8.0"}));
        assert_eq!(hint.kind, WebhookHintKind::Build);
        assert_eq!(hint.payload.as_deref(), Some(&json!({"image": "pay:1.8.0"})), "{kind:?}");
    }
}

#[test]
fn kept_payload_is_bounded() {
    let largest = super::super::LARGEST_PAYLOAD;
    let fitting = json!({"a": "x".repeat(largest - "{'a':''}".len())});
    let long = json!({"a": "x".repeat(largest)});
    assert_eq!(accepted(WebhookReceiverKind::Generic, "", &fitting).payload.as_deref(), Some(&fitting));
    is_ignored(WebhookReceiverKind::Generic, "", &long, "larger than");
    is_ignored(WebhookReceiverKind::Gitea, "push", &json!({"ref": "refs/tags/v1", "a": long}), "larger than");
    // Steps of a build and whitespace are not kept.
    accepted(WebhookReceiverKind::Drone, "", &json!({"event": "build", "build": {"stages": long}}));
    let padded = format!("{fitting}{}", " ".repeat(largest));
    let received = deliver(WebhookReceiverKind::Generic, "", padded.as_bytes());
    assert!(matches!(received, Ok(WebhookOutcome::Accepted(_))), "{received:?}");
}

#[test]
fn payload_values_are_counted_before_parsing() {
    let of = |values: usize| format!("{{\"a\":[{}0]}}", "0,".repeat(values));
    for kind in
        [WebhookReceiverKind::Generic, WebhookReceiverKind::StandardWebhooks, WebhookReceiverKind::Woodpecker]
    {
        let received = deliver(kind, "", of(400_000).as_bytes());
        assert!(matches!(received, Ok(WebhookOutcome::Ignored { .. })), "{kind:?}: {received:?}");
    }
    for kind in DIALECTS {
        let received = deliver(kind, "push", of(600_000).as_bytes());
        let refused =
            matches!(&received, Err(WebhookRejection::Malformed(why)) if why.contains("500000 values"));
        assert!(refused, "{kind:?}: {received:?}");
    }
}

#[test]
fn long_texts_of_a_sender_are_shortened() {
    let long = "x\u{7}".repeat(40_000);
    let media = "x".repeat(40_000);
    let check = |kind, event: &str, body: &str, media: &str| {
        let mut headers = signed(kind, event, body.as_bytes(), SECRET);
        headers.insert("content-type", HeaderValue::from_str(media).expect("a value"));
        let words = match receive(kind, &headers, body.as_bytes(), &[SECRET]) {
            Ok(WebhookOutcome::Ignored { reason }) => reason,
            Err(rejected) => rejected.to_string(),
            other => panic!("{kind:?}: {other:?}"),
        };
        assert!(words.contains("xxx…") && words.len() < 500, "{kind:?}: {} bytes, {words:.500}", words.len());
    };
    for kind in [WebhookReceiverKind::Gitea, WebhookReceiverKind::Forgejo] {
        check(kind, &media, "{}", "application/json");
    }
    check(WebhookReceiverKind::Drone, "", &json!({"event": long}).to_string(), "application/json");
    for kind in DIALECTS {
        check(kind, "push", "{}", &media);
    }
}

#[test]
fn malformed_is_reported_after_a_valid_signature() {
    for kind in DIALECTS {
        let check = |body: &[u8]| {
            let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
            let received = deliver(kind, "push", body);
            assert!(
                matches!(received, Err(WebhookRejection::Malformed(_))),
                "{kind:?} {shown}: {received:?}"
            );
            let received = receive(kind, &signed(kind, "push", body, "other"), body, &[SECRET]);
            assert!(
                matches!(received, Err(WebhookRejection::Unauthorized(_))),
                "{kind:?} {shown}: {received:?}"
            );
        };
        check(b"");
        check(b"{");
        check(b"[]");
        check(b"null");
        check(b"\xff{}");
        check(&b"[".repeat(100_000));
        let body = b"<xml/>";
        let mut text = signed(kind, "push", body, SECRET);
        text.insert("content-type", HeaderValue::from_static("text/xml"));
        let expected = Err(WebhookRejection::UnsupportedMediaType("text/xml".to_owned()));
        assert_eq!(receive(kind, &text, body, &[SECRET]), expected, "{kind:?}");
    }
    for (event, body) in [
        ("push", r#"{"ref": 7}"#),
        ("push", r#"{"repository": "text", "sender": [1]}"#),
        ("pull_request", r#"{"action": "opened", "number": "7"}"#),
        ("pull_request", r#"{"action": "opened", "number": -7, "pull_request": null}"#),
        ("issue_comment", r#"{"is_pull": true, "issue": []}"#),
    ] {
        let received = deliver(WebhookReceiverKind::Gitea, event, body.as_bytes());
        assert!(matches!(received, Err(WebhookRejection::Malformed(_))), "{event} {body}: {received:?}");
    }
    let mut nameless = signed(WebhookReceiverKind::Gitea, "push", b"{}", SECRET);
    nameless.remove("x-gitea-event");
    let received = receive(WebhookReceiverKind::Gitea, &nameless, b"{}", &[SECRET]);
    assert!(matches!(received, Err(WebhookRejection::Malformed(_))), "{received:?}");
}
