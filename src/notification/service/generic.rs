//! Another program: a CloudEvents 1.0 event, in a request signed according to Standard Webhooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::service_request::header;
use super::signature::signature;
use super::text::MessageLines;
use crate::model::{NotificationPhase, short_line};
use crate::notification::Message;

/// In bytes. Larger facts are left out.
pub(super) const LARGEST_DATA: usize = 64 * 1024;
/// Of an identifier, in characters.
const LONGEST_NAME: usize = 200;

/// `dev.tutti.<this>.v1`.
fn kind(happened: NotificationPhase) -> &'static str {
    match happened {
        NotificationPhase::Started => "rollout.started",
        NotificationPhase::Waiting => "rollout.waiting",
        NotificationPhase::Done => "rollout.done",
        NotificationPhase::Failed => "rollout.failed",
        NotificationPhase::Degraded => "rollout.degraded",
        NotificationPhase::Recovered => "rollout.recovered",
        NotificationPhase::Reverted => "rollout.reverted",
        NotificationPhase::Opened => "promotion.opened",
        NotificationPhase::Held => "promotion.held",
        NotificationPhase::Merged => "promotion.merged",
        NotificationPhase::Offline => "cluster.offline",
        NotificationPhase::Online => "cluster.online",
        NotificationPhase::DeleteWaits => "cluster.delete-waits",
        NotificationPhase::CredentialEnds => "cluster.credential-ends",
        NotificationPhase::ServerEnds => "server.ends",
        NotificationPhase::Test => "test",
    }
}

pub(super) fn body(message: &Message) -> Value {
    let MessageLines { title: what, place, cause: why, links } = MessageLines::exact(message);
    let mut data = match &message.data {
        Value::Object(facts) => facts.clone(),
        Value::Null => Map::new(),
        facts => Map::from_iter([("facts".to_owned(), facts.clone())]),
    };
    if serde_json::to_vec(&data).map_or(0, |data| data.len()) > LARGEST_DATA {
        data = Map::from_iter([("truncated".to_owned(), true.into())]);
    }
    let links: Vec<Value> = links.iter().map(|link| json!({"text": link.text, "url": link.url})).collect();
    data.insert("what".to_owned(), what.into());
    data.insert("where".to_owned(), place.into());
    data.insert("why".to_owned(), why.join("\n").into());
    data.insert("links".to_owned(), links.into());
    json!({
        "specversion": "1.0",
        "id": id(message),
        "type": format!("dev.tutti.{}.v1", kind(message.happened)),
        "source": source(message),
        "subject": short_line(&message.thread, LONGEST_NAME),
        "time": message.at.to_string(),
        "datacontenttype": "application/json",
        "data": data,
    })
}

/// With the instance, if the facts name it.
fn source(message: &Message) -> String {
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | '_');
    match message.data.get("instance").and_then(Value::as_str) {
        Some(name) if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(fits) => {
            format!("/tutti/{name}")
        }
        _ => "/tutti".to_owned(),
    }
}

fn id(message: &Message) -> String {
    short_line(&message.id, LONGEST_NAME)
}

/// The signature headers of a request with this body at this time.
pub(super) fn sign(
    headers: &mut HeaderMap,
    message: &Message,
    at: Timestamp,
    secret: &str,
    body: &[u8],
) -> Result<(), String> {
    let key = secret.strip_prefix("whsec_").unwrap_or(secret);
    let key = STANDARD.decode(key).ok().filter(|key| !key.is_empty()).ok_or(
        "the secret is not a key of Standard Webhooks: `whsec_`, then base64 as `openssl rand -base64 32` \
         makes it",
    )?;
    // Both become header values, separated by a dot.
    let id: String = id(message).chars().map(|it| if it.is_ascii_graphic() { it } else { '_' }).collect();
    let timestamp = at.as_second();
    let signed = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
    header(headers, "webhook-id", &id)?;
    header(headers, "webhook-timestamp", &timestamp.to_string())?;
    header(headers, "webhook-signature", &format!("v1,{}", signature(&key, &signed)?))
}
