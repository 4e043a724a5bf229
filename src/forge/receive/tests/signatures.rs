//! Which deliveries are authenticated, and which are not.

use super::*;
use crate::forge::receive::shown_headers;

fn is_believed(kind: WebhookReceiverKind, pairs: &[(&str, &str)], body: &[u8], known: &[&str]) -> bool {
    let received = receive(kind, &headers(pairs), body, known);
    !matches!(received, Err(WebhookRejection::Unauthorized(_)))
}

#[test]
fn known_signatures_are_verified() {
    let body = br#"{"ref":"refs/heads/main"}"#;
    let expected = "8588fd50c04ac2c191575340c4c0fe284157898def8e4d10af822f05dd7c9bb5";
    let check = |signature: &str, body: &[u8], known: &[&str], is_good: bool| {
        let pairs = [("x-gitea-signature", signature), ("x-gitea-event", "push")];
        assert_eq!(
            is_believed(WebhookReceiverKind::Gitea, &pairs, body, known),
            is_good,
            "{signature} {known:?}"
        );
        let (signature, kind) = (format!("sha256={signature}"), WebhookReceiverKind::Generic);
        for name in ["x-tutti-signature-256", "x-hub-signature-256", "x-signature"] {
            assert_eq!(is_believed(kind, &[(name, &signature)], body, known), is_good, "{name}: {signature}");
        }
    };
    check(expected, body, &["s3cr3t"], true);
    check(expected, body, &["new", "s3cr3t"], true);
    check(&expected.to_uppercase(), body, &["s3cr3t"], false);
    check(&expected[..63], body, &["s3cr3t"], false);
    check(&format!("{expected}0"), body, &["s3cr3t"], false);
    check(expected, br#"{"ref":"refs/heads/maim"}"#, &["s3cr3t"], false);
    check(expected, body, &["s3cr3T"], false);
    check(expected, body, &[], false);
    check(&digits(body, ""), body, &[""], false);
    check("", body, &["s3cr3t"], false);
    // Only forges may omit the name of the algorithm.
    assert!(!is_believed(WebhookReceiverKind::Generic, &[("x-signature", expected)], body, &["s3cr3t"]));
}

#[test]
fn known_drone_signature_is_verified() {
    const KEY: &str = "GMEuUHQfmrMRsseWxi9YlIeBtn9lm6im";
    const DATE: &str = "Wed, 01 Jan 2020 00:00:00 GMT";
    const DIGEST: &str = "SHA-256=ozf1tQoYclAqeCIyZOXItiFQE5H4tnDnaSrsTI0cmK8=";
    const CODE: &str = "mwyvU2RqyJ1LQikuXNaCXQ3uU3+RZe8iM+sR5hoAd48=";
    let body = br#"{"event":"build","action":"updated"}"#;
    let then: Timestamp = "2020-01-01T00:00:00Z".parse().expect("a time");
    let parameters = |code: &str| {
        format!(r#"keyId="hmac-key",algorithm="hmac-sha256",signature="{code}",headers="date digest""#)
    };
    let check = |name: &str, value: &str, at: i64, expected: Option<&str>| {
        let headers = headers(&[("date", DATE), ("digest", DIGEST), (name, value)]);
        let now = Timestamp::from_second(then.as_second() + at).expect("a time");
        let found =
            authenticate(WebhookReceiverKind::Drone, &headers, body.to_vec(), &secrets(&["x", KEY]), now);
        let found = found.err().map(|error| error.to_string());
        let is_expected = match expected {
            Some(words) => found.as_deref().is_some_and(|found| found.contains(words)),
            None => found.is_none(),
        };
        assert!(is_expected, "{value}: {found:?}");
    };
    check("signature", &parameters(CODE), 0, None);
    check("authorization", &format!("Signature {}", parameters(CODE)), 300, None);
    check("signature", &parameters(CODE), 301, Some("five minutes"));
    check("signature", &parameters(CODE), -301, Some("five minutes"));
    check("authorization", &format!("Bearer {CODE}"), 0, Some("there is none"));
    check("signature", "", 0, Some("there is none"));
    check("signature", &parameters(&CODE[..43]), 0, Some("does not fit"));
    check("signature", &parameters(&CODE.to_uppercase()), 0, Some("does not fit"));
    check("signature", &parameters(CODE).replace("hmac-sha256", "hmac-sha1"), 0, Some("algorithm"));
    check("signature", &parameters(CODE).replace("date digest", "date"), 0, Some("both"));
    check("signature", &parameters(CODE).replace("date digest", "digest"), 0, Some("both"));
    check(
        "signature",
        &parameters(CODE).replace("date digest", "date digest x"),
        0,
        Some("missing or repeated"),
    );
    check("signature", &format!("{0},{0}", parameters(CODE)), 0, Some("algorithm"));
}

/// The body and digest of Drone's own tests.
#[test]
fn known_drone_digest_is_verified() {
    let body = br#"{"event":"user","action":"created","user":{"id":0,"login":"octocat","email":"","machine":false,"admin":false,"active":false,"avatar":"","syncing":false,"synced":0,"created":0,"updated":0,"last_login":0}}"#;
    let date = date(now());
    let signed =
        [("date", date.as_str()), ("digest", "SHA-256=bw+FzoGHHfDn+x1a2CDnH9RyUxhWgEP4m68MDZSw73c=")];
    let signature = drone("date digest", &signed, SECRET);
    let pairs = [signed[0], signed[1], ("signature", signature.as_str())];
    assert!(is_believed(WebhookReceiverKind::Drone, &pairs, body, &[SECRET]));
    assert!(!is_believed(WebhookReceiverKind::Drone, &pairs, &body[..body.len() - 1], &[SECRET]));
}

#[test]
fn drone_signature_covers_body_and_named_headers() {
    let body = br#"{"event":"build"}"#;
    let (date, digest) = (date(now()), digest(body));
    let check = |names: &str, pairs: &[(&str, &str)], body: &[u8], expected: bool| {
        let signature = drone(names, pairs, SECRET);
        let all = [pairs, &[("signature", signature.as_str())]].concat();
        let found = is_believed(WebhookReceiverKind::Drone, &all, body, &[SECRET]);
        assert_eq!(found, expected, "{names} {pairs:?}");
    };
    let (at, of_body) = (("date", date.as_str()), ("digest", digest.as_str()));
    check("date digest", &[at, of_body], body, true);
    check("digest date", &[at, of_body], body, true);
    check("date digest x-drone-event", &[at, of_body, ("x-drone-event", "build")], body, true);
    check("date", &[at, of_body], body, false);
    check("date digest", &[at, of_body], br#"{"event":"user"}"#, false);
    // A captured delivery with another body and its digest.
    let other = super::digest(br#"{"event":"user"}"#);
    let captured = drone("date digest", &[at, of_body], SECRET);
    let swapped = [at, ("digest", other.as_str()), ("signature", captured.as_str())];
    assert!(!is_believed(WebhookReceiverKind::Drone, &swapped, br#"{"event":"user"}"#, &[SECRET]));
    // Of two dates the signed one is unknown.
    check("date digest", &[at, ("date", "Thu, 01 Jan 1970 00:00:00 GMT"), of_body], body, false);
    check("date digest", &[("date", "yesterday"), of_body], body, false);
    check("date digest", &[("date", "Thu, 01 Jan 1970 00:00:00 GMT"), of_body], body, false);
}

#[test]
fn known_standard_webhooks_signature_is_verified() {
    const KEY: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
    const GOOD: &str = "v1,po45o/q3kOO5DINIefjO8a7tiJoJNgPTVhlGFU1rWLE=";
    let check = |id: &str, time: &str, signature: &str, key: &str, at: i64, expected: bool| {
        let pairs = [("webhook-id", id), ("webhook-timestamp", time), ("webhook-signature", signature)];
        let now = Timestamp::from_second(1_600_000_000 + at).expect("a time");
        let (kind, body) = (WebhookReceiverKind::StandardWebhooks, br#"{"a":1}"#.to_vec());
        let found = authenticate(kind, &headers(&pairs), body, &secrets(&[key]), now);
        assert_eq!(found.is_ok(), expected, "{pairs:?} {key} {at}: {found:?}");
    };
    check("msg_1", "1600000000", GOOD, KEY, 0, true);
    check("msg_1", "1600000000", GOOD, KEY, 300, true);
    check("msg_1", "1600000000", &format!("v2,eA== v1a,eA== v1,eA== {GOOD}"), KEY, -300, true);
    check("msg_1", "1600000000", GOOD, KEY, 301, false);
    check("msg_1", "1600000000", GOOD, KEY, -301, false);
    check("msg_2", "1600000000", GOOD, KEY, 0, false);
    check("msg_1", "1600000001", GOOD, KEY, 0, false);
    check("", "1600000000", GOOD, KEY, 0, false);
    check("msg_1", "", GOOD, KEY, 0, false);
    check("msg_1", "1600000000", "", KEY, 0, false);
    check("msg_1", "1600000000", &GOOD[3..], KEY, 0, false);
    check("msg_1", "1600000000", &GOOD.to_uppercase(), KEY, 0, false);
    check("msg_1", "1600000000", GOOD, "whsec_not base64", 0, false);
    check("msg_1", "1600000000", GOOD, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", 0, false);
    // The key itself, without base64.
    check("msg_1", "1600000000", GOOD, "0123456789abcdef01234567", 0, true);
}

#[test]
fn signed_time_must_be_a_number() {
    let check = |time: &str| {
        let text = format!("msg_1.{time}.{{}}");
        let signature = format!("v1,{}", STANDARD.encode(code(text.as_bytes(), SECRET)));
        let pairs = [("webhook-id", "msg_1"), ("webhook-timestamp", time), ("webhook-signature", &signature)];
        assert!(!is_believed(WebhookReceiverKind::StandardWebhooks, &pairs, b"{}", &[SECRET]), "{time}");
    };
    ["now", "9223372036854775807", "99999999999999999999", "-1", "1600000000.5"].into_iter().for_each(check);
}

#[test]
fn first_signature_header_counts() {
    let body = br#"{"ref":"refs/heads/main"}"#;
    let good = digits(body, SECRET);
    let prefixed = format!("sha256={good}");
    let check = |pairs: &[(&str, &str)], at_gitea: bool, at_forgejo: bool| {
        let all = [pairs, &[("x-gitea-event", "push")]].concat();
        for (kind, expected) in
            [(WebhookReceiverKind::Gitea, at_gitea), (WebhookReceiverKind::Forgejo, at_forgejo)]
        {
            assert_eq!(is_believed(kind, &all, body, &[SECRET]), expected, "{kind:?} {pairs:?}");
        }
    };
    check(&[("x-gitea-signature", &good)], true, false);
    check(&[("x-forgejo-signature", &good)], true, true);
    check(&[("x-forgejo-signature", &good), ("x-gitea-signature", "bad")], true, true);
    check(&[("x-forgejo-signature", "bad"), ("x-gitea-signature", &good)], false, false);
    check(&[("x-forgejo-signature", "\u{ff}"), ("x-gitea-signature", &good)], false, false);
    check(&[("x-forgejo-signature", ""), ("x-gitea-signature", &good)], true, false);
    check(&[("x-hub-signature-256", &prefixed)], true, false);
    check(&[("x-gitea-signature", ""), ("x-hub-signature-256", "sha256=")], false, false);
    check(&[("x-hub-signature", "sha1=0123456789abcdef")], false, false);
    check(&[], false, false);
}

/// Rejections for every kind of receiver.
#[test]
fn unsigned_and_forged_deliveries_are_rejected() {
    let body = br#"{"event":"build","ref":"refs/heads/main"}"#;
    for kind in DIALECTS {
        let good = signed(kind, "push", body, SECRET);
        assert!(receive(kind, &good, body, &[SECRET]).is_ok(), "{kind:?}");
        assert!(receive(kind, &good, body, &["old", SECRET]).is_ok(), "{kind:?}: rotation");
        let check = |headers: &HeaderMap, body: &[u8], known: &[&str], what: &str| {
            let received = receive(kind, headers, body, known);
            assert!(
                matches!(received, Err(WebhookRejection::Unauthorized(_))),
                "{kind:?} {what}: {received:?}"
            );
        };
        check(&good, &body[1..], &[SECRET], "another body");
        check(&good, b"", &[SECRET], "no body");
        check(&good, body, &["other"], "another secret");
        check(&good, body, &[], "no secret");
        check(&signed(kind, "push", body, "x"), body, &[SECRET], "signed with another secret");
        check(&headers(&[("x-gitea-event", "push")]), body, &[SECRET], "unsigned");
        check(&headers(&[("x-hub-signature", "sha1=00")]), body, &[SECRET], "SHA-1 only");
        // A signature for another kind fits only if both kinds sign alike.
        for other in DIALECTS {
            let is_alike = |kind| match kind {
                WebhookReceiverKind::Forgejo => WebhookReceiverKind::Gitea,
                WebhookReceiverKind::Woodpecker => WebhookReceiverKind::Generic,
                kind => kind,
            };
            if is_alike(kind) != is_alike(other) {
                check(&signed(other, "push", body, SECRET), body, &[SECRET], "as another kind signs");
            }
        }
        let mut emptied = good.clone();
        let names: Vec<HeaderName> =
            emptied.keys().filter(|name| name.as_str().contains("signature")).cloned().collect();
        assert!(!names.is_empty(), "{kind:?}");
        for name in names {
            emptied.insert(name, HeaderValue::from_static(""));
        }
        check(&emptied, body, &[SECRET], "an empty signature");
    }
}

#[test]
fn delivery_id_comes_from_signed_content() {
    let id = |kind, body: &[u8]| {
        let headers = signed(kind, "push", body, SECRET);
        authenticate(kind, &headers, body.to_vec(), &secrets(&[SECRET]), now()).expect("genuine").delivery
    };
    let (one, two) = (br#"{"event":"build","n":1}"#, br#"{"event":"build","n":2}"#);
    for kind in [WebhookReceiverKind::Drone, WebhookReceiverKind::Woodpecker, WebhookReceiverKind::Generic] {
        assert_eq!(id(kind, one), id(kind, one), "{kind:?}");
        assert_ne!(id(kind, one), id(kind, two), "{kind:?}");
    }
    assert_eq!(id(WebhookReceiverKind::StandardWebhooks, one).as_deref(), Some("msg_1"));
    assert_eq!(id(WebhookReceiverKind::Gitea, one).as_deref(), Some("d-1"));
}

#[test]
fn signatures_and_tokens_are_not_shown() {
    let mut pairs = vec![("authorization", "Bearer t0ken"), ("cookie", "t0ken"), ("x-mine", "t0ken")];
    let long = "Drone".repeat(1000);
    pairs.extend([("content-type", "application/json"), ("user-agent", &long)]);
    let mut all = headers(&pairs);
    for kind in DIALECTS {
        all.extend(signed(kind, "push", b"{}", SECRET));
    }
    let shown = format!("{:?}", shown_headers(&all));
    for secret in ["t0ken", &digits(b"{}", SECRET), "v1,", "keyId"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    assert!(shown.contains(r#"("content-type", Some("application/json"))"#), "{shown}");
    assert!(shown.contains(r#"("authorization", None)"#) && shown.len() < 2500, "{shown}");
    let many: Vec<String> = (0..200).map(|number| format!("x-{number}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "")).collect();
    assert_eq!(shown_headers(&headers(&many)).len(), 48);
}
