//! A Feishu or Lark group bot: a card, with the signature in the body.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::response::ErrorCodeAction;
use super::signature::signature;
use super::text::MessageLines;
use crate::notification::{Message, MessageSeverity};

/// For all addresses together, in bytes: a body has at most 20 KB.
const LONGEST_LINKS: usize = 3_000;

/// All texts are `plain_text`, which has no mentions, links or tags.
pub(super) fn body(message: &Message, at: Timestamp, secret: Option<&str>) -> Result<Value, String> {
    let lines = MessageLines::of(message);
    let mut body = json!({});
    if let Some(secret) = secret {
        let timestamp = at.as_second().to_string();
        // The text is the key, and the signed content is empty.
        body["sign"] = signature(format!("{timestamp}\n{secret}").as_bytes(), b"")?.into();
        body["timestamp"] = timestamp.into();
    }
    let plain = |text: &str| json!({"tag": "plain_text", "content": text});
    let mut elements = Vec::new();
    for text in [lines.place, lines.cause.join("\n")] {
        if !text.is_empty() {
            elements.push(json!({"tag": "div", "text": plain(&text)}));
        }
    }
    let mut room = LONGEST_LINKS;
    let mut buttons = Vec::new();
    for link in &lines.links {
        let Some(left) = room.checked_sub(link.url.len()) else { continue };
        room = left;
        buttons.push(json!({"tag": "button", "text": plain(&link.text), "type": "default", "url": link.url}));
    }
    if !buttons.is_empty() {
        elements.push(json!({"tag": "action", "actions": buttons}));
    }
    // A card needs an element below its header.
    if elements.is_empty() {
        elements.push(json!({"tag": "div", "text": plain(&lines.title)}));
    }
    body["msg_type"] = "interactive".into();
    body["card"] = json!({
        "config": {"wide_screen_mode": true},
        "header": {"title": plain(&lines.title), "template": colour(MessageSeverity::of(message.happened))},
        "elements": elements,
    });
    Ok(body)
}

fn colour(severity: MessageSeverity) -> &'static str {
    match severity {
        MessageSeverity::Info => "blue",
        MessageSeverity::Good => "green",
        MessageSeverity::Warning => "orange",
        MessageSeverity::Bad => "red",
    }
}

pub(super) fn error_code_action(code: i64, message: &str) -> Option<ErrorCodeAction> {
    let message = message.to_lowercase();
    match code {
        11232 => Some(ErrorCodeAction::Wait(60)),
        // One code has both meanings.
        9499 if message.contains("too many") => Some(ErrorCodeAction::Wait(60)),
        9499 if message.contains("bad request") => {
            Some(ErrorCodeAction::Refused("the message is not understood"))
        }
        19001 => Some(ErrorCodeAction::Refused(
            "the bot does not exist any more: create a new one, and put its address into the Secret",
        )),
        19002 => Some(ErrorCodeAction::Refused("the message is not understood")),
        19021 => Some(ErrorCodeAction::Refused(
            "the signature does not fit: compare the secret with that of the bot, and the clock of this machine",
        )),
        19022 => Some(ErrorCodeAction::Refused("allow the address of this machine in the bot's settings")),
        19024 => Some(ErrorCodeAction::Refused(
            "the bot asks for a keyword: put one into its settings that every message has, or use a signature",
        )),
        _ => None,
    }
}
