//! Slack: an incoming webhook, or a bot that can change its messages.

use serde_json::{Value, json};

use super::SendOutcome;
use super::response::ServiceResponseRef;
use super::text::{MessageLines, join_links, truncate};
use crate::model::short_line;
use crate::notification::{Message, MessageSeverity};

pub(super) const POST_URL: &str = "https://slack.com/api/chat.postMessage";
pub(super) const UPDATE_URL: &str = "https://slack.com/api/chat.update";

/// In bytes; a text of a block has at most 3,000 characters.
const LONGEST_TEXT: usize = 2_900;
/// Of an identifier, in characters.
const LONGEST_NAME: usize = 64;

/// Errors of an update that cannot be made.
const GONE_ERRORS: [&str; 3] = ["cant_update_message", "edit_window_closed", "message_not_found"];

/// Errors that no retry resolves, with the action to take.
const REFUSED_ERRORS: [(&[&str], &str); 4] = [
    (
        &["account_inactive", "invalid_auth", "not_authed", "token_expired", "token_revoked"],
        "put a valid token of the bot into the Secret",
    ),
    (&["missing_scope", "no_permission", "restricted_action"], "the bot needs the right chat:write"),
    (
        &["channel_not_found", "is_archived", "not_in_channel"],
        "name a channel that exists, by its ID, and invite the bot to it",
    ),
    (
        &["invalid_attachments", "invalid_blocks", "msg_blocks_too_long", "msg_too_long", "no_text"],
        "the message is not understood",
    ),
];

/// The id of a posted message: the channel ID, which [`UPDATE_URL`] needs instead of the name, and the timestamp.
pub(super) fn parse_message_name(known: Option<&str>) -> Option<(&str, &str)> {
    let is_name = |text: &str| {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
        !text.is_empty() && text.len() <= LONGEST_NAME && text.chars().all(fits)
    };
    known?.split_once('/').filter(|(channel, ts)| is_name(channel) && is_name(ts))
}

pub(super) fn bot_body(message: &Message, channel: &str, posted: Option<(&str, &str)>) -> Value {
    let mut body = body(message);
    match posted {
        Some((channel, ts)) => {
            body["channel"] = channel.into();
            body["ts"] = ts.into();
        }
        None => {
            body["channel"] = channel.into();
            body["unfurl_links"] = false.into();
            body["unfurl_media"] = false.into();
        }
    }
    body
}

pub(super) fn body(message: &Message) -> Value {
    let lines = MessageLines::of(message);
    let details: Vec<String> =
        [lines.place].into_iter().chain(lines.cause).filter(|line| !line.is_empty()).collect();
    let details = truncate(without_mentions(&details.join("\n")), LONGEST_TEXT);
    let links = join_links(&lines.links, LONGEST_TEXT, |link| {
        // A bar ends the address, a line break ends the link.
        format!("<{}|{}>", escaped(&link.url), escaped(&link.text.replace('|', "¦")))
    });
    let mut blocks = Vec::new();
    if !details.is_empty() {
        blocks.push(
            json!({"type": "section", "text": {"type": "plain_text", "text": details, "emoji": false}}),
        );
    }
    if !links.is_empty() {
        blocks.push(json!({"type": "section", "text": {"type": "mrkdwn", "text": links, "verbatim": true}}));
    }
    let what = escaped(&lines.title);
    let colour = colour(MessageSeverity::of(message.happened));
    let attachment = json!({"color": colour, "fallback": what, "blocks": blocks});
    // An update without the field would keep the old attachments.
    let attachments = if blocks.is_empty() { vec![] } else { vec![attachment] };
    json!({"text": what, "mrkdwn": false, "parse": "none", "attachments": attachments})
}

fn colour(severity: MessageSeverity) -> &'static str {
    match severity {
        MessageSeverity::Info => "#1d9bd1",
        MessageSeverity::Good => "good",
        MessageSeverity::Warning => "warning",
        MessageSeverity::Bad => "danger",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A plain text is shown as it is; this covers other clients, where it could begin a mention.
fn without_mentions(text: &str) -> String {
    text.replace("<!", "＜!").replace("<@", "＜@").replace("<#", "＜#")
}

/// Whether the message to be changed no longer exists; it is then posted again.
pub(super) fn is_gone(body: &[u8]) -> bool {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    json.is_some_and(|json| json["error"].as_str().is_some_and(|error| GONE_ERRORS.contains(&error)))
}

/// `chat.postMessage` and `chat.update` always answer 200.
pub(super) fn bot_outcome(answer: &ServiceResponseRef<'_>) -> SendOutcome {
    if !answer.status.is_success() {
        return answer.outcome_by_status();
    }
    let json = answer.json().unwrap_or_default();
    let text = |name: &str| json.get(name).and_then(Value::as_str);
    match json.get("ok").and_then(Value::as_bool) {
        Some(true) => {
            let known = text("channel").zip(text("ts")).map(|(channel, ts)| format!("{channel}/{ts}"));
            SendOutcome::Sent(known.filter(|known| parse_message_name(Some(known)).is_some()))
        }
        Some(false) => {
            let error = short_line(text("error").unwrap_or("without an error"), LONGEST_NAME);
            let why = format!("{} answers {error}", answer.service);
            if GONE_ERRORS.contains(&error.as_str()) {
                return SendOutcome::Refused(format!("{why}: the message cannot be changed any more"));
            }
            match REFUSED_ERRORS.iter().find(|(errors, _)| errors.contains(&error.as_str())) {
                Some((_, help)) => SendOutcome::Refused(format!("{why}; {help}")),
                None => answer.retry_outcome(why),
            }
        }
        None => answer.retry_outcome(answer.unreadable_text()),
    }
}
