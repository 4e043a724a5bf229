//! What each service accepts, and its answers to everything else.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::Sha256;

use super::{CHANNEL, ChatReply, ChatState, SECRET, SIGNING_KEY, TOKEN, seconds_from_now};

/// The id of [`CHANNEL`].
const CHANNEL_ID: &str = "C0RELEASES";
const HOUR: i64 = 3_600;
/// The tolerance of Standard Webhooks.
const TOLERANCE: i64 = 300;

pub(super) fn reply(
    told: &mut ChatState,
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
    bytes: &[u8],
) -> ChatReply {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_json = header("content-type").contains("json");
    let body: Value = if is_json { serde_json::from_slice(bytes).unwrap_or_default() } else { Value::Null };
    let reply = match path {
        "/open-apis/bot/v2/hook/1" => feishu(told, body, bytes.len()),
        "/robot/send" => dingtalk(told, query.unwrap_or_default(), body, bytes.len()),
        "/api/chat.postMessage" | "/api/chat.update" => {
            slack(told, path.ends_with("update"), header("authorization"), body)
        }
        "/events" => signed_event(told, &header, body, bytes),
        _ if path.starts_with("/open-apis/bot/v2/hook/") => {
            code_reply("code", "msg", 19001, "param invalid: incoming webhook access token invalid")
        }
        _ => ChatReply::new(404, &404, json!({})),
    };
    told.codes.push(reply.code.clone());
    reply
}

fn hmac(key: &[u8], text: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key");
    mac.update(text);
    STANDARD.encode(mac.finalize().into_bytes())
}

fn code_reply(code: &str, message: &str, number: i64, words: &str) -> ChatReply {
    ChatReply::new(200, &number, json!({code: number, message: words}))
}

fn feishu(told: &mut ChatState, body: Value, size: usize) -> ChatReply {
    let coded = |number, words| code_reply("code", "msg", number, words);
    let timestamp = body["timestamp"].as_str().unwrap_or_default();
    let time = timestamp.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let sign = hmac(format!("{timestamp}\n{SECRET}").as_bytes(), b"");
    if time.is_none_or(|time| seconds_from_now(time) >= HOUR) || body["sign"] != sign {
        return coded(19021, "sign match fail or timestamp is not within one hour from current time");
    }
    if told.exceeds_rate("feishu", 100) {
        return coded(11232, "frequency limited");
    }
    let card = &body["card"];
    let is_card = body["msg_type"] == "interactive"
        && card["header"]["title"]["content"].is_string()
        && card["elements"].as_array().is_some_and(|elements| !elements.is_empty());
    if !is_card || size > 20_000 {
        return coded(9499, "Bad Request");
    }
    told.record_message("feishu", None, body);
    coded(0, "success")
}

fn dingtalk(told: &mut ChatState, query: &str, body: Value, size: usize) -> ChatReply {
    let coded = |number, words| code_reply("errcode", "errmsg", number, words);
    let address = reqwest::Url::parse(&format!("http://localhost/?{query}")).expect("a query");
    let value = |name: &str| {
        let pair = address.query_pairs().find(|(key, _)| key == name);
        pair.map(|(_, value)| value.into_owned()).unwrap_or_default()
    };
    if value("access_token") != "1" {
        return coded(300005, "token is not exist");
    }
    let timestamp = value("timestamp");
    let time = timestamp.parse().ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    if time.is_none_or(|time| seconds_from_now(time) >= HOUR) {
        return coded(310000, "invalid timestamp");
    }
    if value("sign") != hmac(SECRET.as_bytes(), format!("{timestamp}\n{SECRET}").as_bytes()) {
        return coded(310000, "sign not match");
    }
    if told.exceeds_rate("dingtalk", 20) {
        return coded(130101, "send too fast, exceed 20 times per minute");
    }
    if size > 20_000 {
        return coded(460101, "body is too large");
    }
    let has = |name: &str| body["markdown"][name].as_str().is_some_and(|text| !text.is_empty());
    if body["msgtype"] != "markdown" || !has("title") || !has("text") {
        return coded(40035, "invalid parameter");
    }
    told.record_message("dingtalk", None, body);
    coded(0, "ok")
}

fn slack(told: &mut ChatState, is_update: bool, authorization: &str, mut body: Value) -> ChatReply {
    let refused = |error: &str| ChatReply::new(200, error, json!({"ok": false, "error": error}));
    if authorization != format!("Bearer {TOKEN}") {
        return refused("invalid_auth");
    }
    if told.exceeds_rate("slack", 60) {
        let reply = ChatReply::new(429, "ratelimited", json!({"ok": false, "error": "ratelimited"}));
        return ChatReply { wait: Some(30), ..reply };
    }
    let channel = body["channel"].as_str().unwrap_or_default();
    // An update takes no channel name.
    if channel != CHANNEL_ID && (is_update || channel != CHANNEL) {
        return refused("channel_not_found");
    }
    if body["text"].as_str().is_none_or(str::is_empty) {
        return refused("no_text");
    }
    let known: Vec<String> = told.received.iter().filter_map(|message| message.ts.clone()).collect();
    let ts = if is_update {
        let ts = body["ts"].as_str().unwrap_or_default().to_owned();
        if !known.contains(&ts) || told.deleted.contains(&ts) {
            return refused("message_not_found");
        }
        ts
    } else {
        format!("1599360473.{:06}", known.len() + 1)
    };
    body["channel"] = CHANNEL_ID.into();
    told.record_message("slack", Some(ts.clone()), body);
    ChatReply::new(200, "ok", json!({"ok": true, "channel": CHANNEL_ID, "ts": ts}))
}

fn signed_event<'a>(
    told: &mut ChatState,
    header: &impl Fn(&str) -> &'a str,
    body: Value,
    bytes: &[u8],
) -> ChatReply {
    let refused = |status: u16| ChatReply::new(status, &status, json!({}));
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let time = timestamp.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let key = STANDARD.decode(SIGNING_KEY.trim_start_matches("whsec_")).expect("base64");
    let signature = hmac(&key, &[format!("{id}.{timestamp}.").as_bytes(), bytes].concat());
    let is_signed =
        header("webhook-signature").split(' ').any(|it| it.strip_prefix("v1,") == Some(signature.as_str()));
    if id.is_empty() || time.is_none_or(|time| seconds_from_now(time) >= TOLERANCE) || !is_signed {
        return refused(401);
    }
    let has = |name: &str| body[name].as_str().is_some_and(|text| !text.is_empty());
    if body["specversion"] != "1.0" || !has("id") || !has("type") || !has("source") {
        return refused(400);
    }
    told.record_message("generic", None, body);
    ChatReply::new(204, &204, json!({}))
}
