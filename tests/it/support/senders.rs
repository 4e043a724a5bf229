//! Signs webhook deliveries as each kind of sender does.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use sha2::{Digest as _, Sha256};
use tutti::model::WebhookReceiverKind;

/// A new delivery for each number: its body and headers.
pub fn delivery(
    kind: WebhookReceiverKind,
    secret: &str,
    number: u64,
) -> (Vec<(&'static str, String)>, String) {
    let body = match kind {
        WebhookReceiverKind::Gitea | WebhookReceiverKind::Forgejo => {
            r#"{"ref":"refs/heads/main","repository":{"full_name":"platform/config"},"sender":{"login":"li"}}"#
                .to_owned()
        }
        WebhookReceiverKind::Drone => format!(
            r#"{{"event":"build","action":"updated","repo":{{"slug":"shop/pay"}},"build":{{"number":{number},"status":"success"}}}}"#
        ),
        WebhookReceiverKind::Woodpecker => {
            format!(r#"{{"CI_REPO":"shop/pay","CI_PIPELINE_NUMBER":"{number}","CI_PIPELINE_STATUS":"success"}}"#)
        }
        WebhookReceiverKind::Generic | WebhookReceiverKind::StandardWebhooks => {
            format!(r#"{{"image":"registry.example.com/pay:{number}"}}"#)
        }
    };
    (headers(kind, "push", body.as_bytes(), secret, number), body)
}

pub fn headers(
    kind: WebhookReceiverKind,
    event: &str,
    body: &[u8],
    secret: &str,
    number: u64,
) -> Vec<(&'static str, String)> {
    let mut headers = vec![("content-type", "application/json".to_owned())];
    let digits = || hex::encode(hmac_bytes(body, secret));
    match kind {
        WebhookReceiverKind::Gitea => headers.extend([
            ("x-gitea-event", event.to_owned()),
            ("x-gitea-delivery", format!("d-{number}")),
            ("x-gitea-signature", digits()),
        ]),
        WebhookReceiverKind::Forgejo => headers.extend([
            ("x-forgejo-event", event.to_owned()),
            ("x-gitea-event", event.to_owned()),
            ("x-forgejo-delivery", format!("d-{number}")),
            ("x-forgejo-signature", digits()),
            ("x-gitea-signature", digits()),
        ]),
        WebhookReceiverKind::Woodpecker | WebhookReceiverKind::Generic => {
            headers.push(("x-tutti-signature-256", format!("sha256={}", digits())));
        }
        WebhookReceiverKind::StandardWebhooks => {
            let (id, time) = (format!("msg_{number}"), Timestamp::now().as_second());
            let text = [format!("{id}.{time}.").as_bytes(), body].concat();
            let signature = format!("v1,{}", STANDARD.encode(hmac_bytes(&text, secret)));
            headers.extend([
                ("webhook-id", id),
                ("webhook-timestamp", time.to_string()),
                ("webhook-signature", signature),
            ]);
        }
        WebhookReceiverKind::Drone => headers.extend(drone_headers(body, secret, Timestamp::now())),
    }
    headers
}

/// The headers of a Drone delivery at this time.
pub fn drone_headers(body: &[u8], secret: &str, at: Timestamp) -> [(&'static str, String); 4] {
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&at).expect("a date");
    let digest = format!("SHA-256={}", STANDARD.encode(Sha256::digest(body)));
    let signature = STANDARD.encode(hmac_bytes(format!("date: {date}\ndigest: {digest}").as_bytes(), secret));
    let parameters =
        format!(r#"keyId="hmac-key",algorithm="hmac-sha256",signature="{signature}",headers="date digest""#);
    [("x-drone-event", "build".to_owned()), ("date", date), ("digest", digest), ("signature", parameters)]
}

fn hmac_bytes(text: &[u8], secret: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}
