//! Known signatures, rejections, parsed content, and hostile bytes.

mod hostile;
mod read;
mod signatures;

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};

use super::{authenticate, check_signed, read};
use crate::forge::{WebhookOutcome, WebhookRejection};
use crate::model::WebhookReceiverKind;

const COMMIT: &str = "3f9c2d1a0000000000000000000000000000beef";
const SECRET: &str = "s3cr3t";
const DIALECTS: [WebhookReceiverKind; 6] = [
    WebhookReceiverKind::Gitea,
    WebhookReceiverKind::Forgejo,
    WebhookReceiverKind::Drone,
    WebhookReceiverKind::Woodpecker,
    WebhookReceiverKind::Generic,
    WebhookReceiverKind::StandardWebhooks,
];

fn now() -> Timestamp {
    "2026-11-27T06:00:00Z".parse().expect("a time")
}

fn secrets(texts: &[&str]) -> Vec<SecretString> {
    texts.iter().map(|text| SecretString::from(*text)).collect()
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
    }
    headers
}

/// Receives a delivery as `api` does.
fn receive(
    kind: WebhookReceiverKind,
    headers: &HeaderMap,
    body: &[u8],
    known: &[&str],
) -> Result<WebhookOutcome, WebhookRejection> {
    check_signed(kind, headers)?;
    let genuine = authenticate(kind, headers, body.to_vec(), &secrets(known), now())?;
    read(kind, "door", headers, &genuine)
}

fn code(text: &[u8], secret: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn digits(body: &[u8], secret: &str) -> String {
    hex::encode(code(body, secret))
}

fn digest(body: &[u8]) -> String {
    format!("SHA-256={}", STANDARD.encode(Sha256::digest(body)))
}

fn date(at: Timestamp) -> String {
    rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&at).expect("a date")
}

/// Signs as Drone does, over these headers.
fn drone(names: &str, headers: &[(&str, &str)], secret: &str) -> String {
    let mut text = String::new();
    for name in names.split(' ') {
        let value = headers.iter().find(|(one, _)| *one == name).map_or("", |(_, value)| value);
        write!(text, "{}{name}: {value}", if text.is_empty() { "" } else { "\n" }).expect("memory");
    }
    let code = STANDARD.encode(code(text.as_bytes(), secret));
    format!(r#"keyId="hmac-key",algorithm="hmac-sha256",signature="{code}",headers="{names}""#)
}

/// Headers of a delivery with the signature of its sender.
fn signed(kind: WebhookReceiverKind, event: &str, body: &[u8], secret: &str) -> HeaderMap {
    let digits = digits(body, secret);
    let json = ("content-type", "application/json");
    match kind {
        WebhookReceiverKind::Gitea | WebhookReceiverKind::Forgejo => {
            let mut pairs = vec![json, ("x-gitea-event", event), ("x-gitea-delivery", "d-1")];
            pairs.push(("x-gitea-signature", &digits));
            if kind == WebhookReceiverKind::Forgejo {
                pairs.extend([("x-forgejo-event", event), ("x-forgejo-signature", &digits)]);
            }
            headers(&pairs)
        }
        WebhookReceiverKind::Woodpecker | WebhookReceiverKind::Generic => {
            headers(&[json, ("x-tutti-signature-256", &format!("sha256={digits}"))])
        }
        WebhookReceiverKind::StandardWebhooks => {
            let time = now().as_second().to_string();
            let text = [b"msg_1.", time.as_bytes(), b".", body].concat();
            let signature = format!("v1,{}", STANDARD.encode(code(&text, secret)));
            let id = ("webhook-id", "msg_1");
            headers(&[json, id, ("webhook-timestamp", &time), ("webhook-signature", &signature)])
        }
        WebhookReceiverKind::Drone => {
            let (date, digest) = (date(now()), digest(body));
            let signed = [("date", date.as_str()), ("digest", digest.as_str())];
            let signature = drone("date digest", &signed, secret);
            headers(&[json, signed[0], signed[1], ("signature", &signature), ("x-drone-event", "build")])
        }
    }
}

fn deliver(kind: WebhookReceiverKind, event: &str, body: &[u8]) -> Result<WebhookOutcome, WebhookRejection> {
    receive(kind, &signed(kind, event, body, SECRET), body, &[SECRET])
}
