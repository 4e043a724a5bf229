//! Random bytes and randomly damaged deliveries, signed and unsigned: each gets an answer, and nothing panics.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::*;

const EVENTS: [&str; 9] = [
    "push",
    "create",
    "pull_request",
    "pull_request_comment",
    "issue_comment",
    "pull_request_approved",
    "status",
    "\"x",
    "",
];
const MEDIA: [&str; 4] = ["application/json", "application/x-www-form-urlencoded", "", "\u{7f}"];

fn any<T: Copy>(random: &mut StdRng, all: &[T]) -> T {
    all[random.random_range(0..all.len())]
}

fn real() -> Value {
    json!({"ref": "refs/heads/main", "after": COMMIT, "repository": {"full_name": "a/b"}, "is_pull": true, "number": 7,
        "action": "opened", "issue": {"number": 7}, "comment": {"body": "x"}, "sender": {"login": "li"}, "event": "build",
        "repo": {"slug": "a/b"}, "build": {"ref": "refs/tags/v1", "stages": []}, "CI_REPO": "a/b", "commits": [{"id": null}]})
}

/// Replaces a value somewhere inside.
fn replace(value: &mut Value, random: &mut StdRng) {
    if random.random_range(0..3) > 0 {
        let count = value.as_object().map(serde_json::Map::len).filter(|count| *count > 0);
        let inner =
            count.and_then(|count| value.as_object_mut()?.values_mut().nth(random.random_range(0..count)));
        if let Some(inner) = inner {
            return replace(inner, random);
        }
    }
    let strange =
        [json!(null), json!(-1), json!(1e300), json!([]), json!({}), json!("refs/tags/"), json!("\u{0}")];
    *value = strange[random.random_range(0..strange.len())].clone();
}

fn body(random: &mut StdRng) -> Vec<u8> {
    let mut body = match random.random_range(0..3) {
        0 => (0..random.random_range(0..300)).map(|_| random.random()).collect(),
        1 => {
            let mut value = real();
            (0..random.random_range(1..5)).for_each(|_| replace(&mut value, random));
            value.to_string().into_bytes()
        }
        _ => real().to_string().into_bytes(),
    };
    if random.random_range(0..3) == 0 {
        damage(&mut body, random);
    }
    body
}

fn damage(bytes: &mut Vec<u8>, random: &mut StdRng) {
    for _ in 0..random.random_range(1..4) {
        let place = random.random_range(0..=bytes.len());
        match random.random_range(0..3) {
            0 => bytes.truncate(place),
            1 => bytes.insert(place, random.random()),
            _ => bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte = random.random()),
        }
    }
}

#[test]
fn hostile_deliveries_are_answered() {
    let mut random = StdRng::seed_from_u64(31);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..12_000 {
        let (kind, event) = (any(&mut random, &DIALECTS), any(&mut random, &EVENTS));
        let bytes = body(&mut random);
        let mut headers = signed(kind, event, &bytes, SECRET);
        if let Ok(media) = HeaderValue::from_str(any(&mut random, &MEDIA)) {
            headers.insert("content-type", media);
        }
        let is_damaged = random.random_range(0..4) == 0;
        if is_damaged {
            let names: Vec<HeaderName> = headers.keys().cloned().collect();
            let name = &names[random.random_range(0..names.len())];
            let mut value = headers[name].as_bytes().to_vec();
            damage(&mut value, &mut random);
            let Ok(value) = HeaderValue::from_bytes(&value) else { continue };
            headers.insert(name.clone(), value);
        }
        let received = receive(kind, &headers, &bytes, &[SECRET]);
        let answer = match &received {
            Ok(WebhookOutcome::Accepted(_)) => 202,
            Ok(WebhookOutcome::Ignored { .. }) => 200,
            Err(rejected) => rejected.status().as_u16(),
        };
        assert!((200..300).contains(&answer) || (400..500).contains(&answer), "{kind:?}: {received:?}");
        assert!(is_damaged || answer != 401, "{kind:?}: what is signed is believed, {received:?}");
        seen.insert((kind, answer));
    }
    for kind in DIALECTS {
        for answer in [200, 202, 400, 401, 415] {
            let has = seen.contains(&(kind, answer));
            // The receivers for one kind of event never ignore one.
            let never = answer == 200
                && matches!(
                    kind,
                    WebhookReceiverKind::Woodpecker
                        | WebhookReceiverKind::Generic
                        | WebhookReceiverKind::StandardWebhooks
                );
            assert!(has != never, "{kind:?} {answer}");
        }
    }
}
