//! A WeCom group bot: a subset of Markdown with three colours.

use serde_json::{Value, json};

use super::response::ErrorCodeAction;
use super::text::{MessageLines, join_links, truncate, without_markup};
use crate::notification::{Message, MessageSeverity};

/// Of the whole text, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 4_096;
const LONGEST_LINKS: usize = 1_500;
const LONGEST_LINE: usize = 600;

pub(super) fn body(message: &Message) -> Value {
    let lines = MessageLines::of(message);
    let mut text = coloured(
        &truncate(without_markup(&lines.title), LONGEST_LINE),
        MessageSeverity::of(message.happened),
    );
    if !lines.place.is_empty() {
        text = format!("{text}\n{}", truncate(without_markup(&lines.place), LONGEST_LINE));
    }
    let links = join_links(&lines.links, LONGEST_LINKS, |link| {
        format!("[{}]({})", without_markup(&link.text), link.url)
    });
    // The remaining bytes, with the line break.
    let room = MAX_TEXT_BYTES - text.len() - links.len() - 1;
    let why = lines.cause.iter().map(|line| format!("\n>{}", without_markup(line)));
    text.push_str(&truncate(why.collect(), room));
    if !links.is_empty() {
        text = format!("{text}\n{links}");
    }
    json!({"msgtype": "markdown", "markdown": {"content": text}})
}

/// Only green, grey and orange exist.
fn coloured(text: &str, severity: MessageSeverity) -> String {
    match severity {
        MessageSeverity::Info => format!("**{text}**"),
        MessageSeverity::Good => format!("<font color=\"info\">{text}</font>"),
        MessageSeverity::Warning | MessageSeverity::Bad => format!("<font color=\"warning\">{text}</font>"),
    }
}

pub(super) fn error_code_action(code: i64, _message: &str) -> Option<ErrorCodeAction> {
    match code {
        45009 => Some(ErrorCodeAction::Wait(60)),
        93000 => Some(ErrorCodeAction::Refused(
            "the bot does not exist any more: create a new one, and put its address into the Secret",
        )),
        40008 | 40058 => Some(ErrorCodeAction::Refused("the message is not understood")),
        _ => None,
    }
}
