//! A DingTalk group bot: Markdown, with the signature in the address.

use jiff::Timestamp;
use reqwest::Url;
use serde_json::{Value, json};

use super::response::ErrorCodeAction;
use super::signature::signature;
use super::text::{MessageLines, join_links, truncate, without_markup};
use crate::notification::Message;

/// In bytes: a body has at most 20,000.
const LONGEST_WHY: usize = 6_000;
const LONGEST_LINKS: usize = 4_000;

pub(super) fn sign(url: &mut Url, at: Timestamp, secret: &str) -> Result<(), String> {
    let timestamp = at.as_millisecond().to_string();
    let sign = signature(secret.as_bytes(), format!("{timestamp}\n{secret}").as_bytes())?;
    url.query_pairs_mut().append_pair("timestamp", &timestamp).append_pair("sign", &sign);
    Ok(())
}

pub(super) fn body(message: &Message) -> Value {
    let lines = MessageLines::of(message);
    let what = without_markup(&lines.title);
    let mut parts = vec![format!("#### {what}")];
    if !lines.place.is_empty() {
        parts.push(without_markup(&lines.place));
    }
    // A single line break is ignored.
    let why: Vec<String> = lines.cause.iter().map(|line| format!("> {}", without_markup(line))).collect();
    if !why.is_empty() {
        parts.push(truncate(why.join("\n\n"), LONGEST_WHY));
    }
    let links = join_links(&lines.links, LONGEST_LINKS, |link| {
        format!("[{}]({})", without_markup(&link.text), link.url)
    });
    if !links.is_empty() {
        parts.push(links);
    }
    json!({
        "msgtype": "markdown",
        "markdown": {"title": what, "text": parts.join("\n\n")},
        "at": {"atMobiles": [], "isAtAll": false},
    })
}

pub(super) fn error_code_action(code: i64, _message: &str) -> Option<ErrorCodeAction> {
    match code {
        // The bot is then blocked for ten minutes.
        130101 | 410100 => Some(ErrorCodeAction::Wait(600)),
        310000 => Some(ErrorCodeAction::Refused(
            "compare the secret with that of the bot, and the clock of this machine; where the bot checks \
             keywords or addresses, allow those of tutti",
        )),
        40035 | 400101 | 300001 | 300005 | 400106 => Some(ErrorCodeAction::Refused(
            "the bot does not exist any more: create a new one, and put its address into the Secret",
        )),
        400013 => {
            Some(ErrorCodeAction::Refused("the group does not exist any more: create a bot in another group"))
        }
        400102 => Some(ErrorCodeAction::Refused("the bot is switched off: switch it on in the group")),
        400105 | 460101 => Some(ErrorCodeAction::Refused("the message is not understood")),
        430101..=430104 => Some(ErrorCodeAction::Refused("the service does not allow these words or links")),
        _ => None,
    }
}
