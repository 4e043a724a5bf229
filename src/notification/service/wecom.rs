//! A WeCom group bot: a subset of Markdown with three colours.

use serde_json::{Value, json};

use super::answer::Meaning;
use super::text::{Lines, cut, joined, without_markup};
use crate::notification::{Message, Severity};

/// Of the whole text, in bytes.
pub(super) const LONGEST: usize = 4_096;
const LONGEST_LINKS: usize = 1_500;
const LONGEST_LINE: usize = 600;

pub(super) fn body(message: &Message) -> Value {
    let lines = Lines::of(message);
    let mut text = coloured(&cut(without_markup(&lines.what), LONGEST_LINE), Severity::of(message.happened));
    if !lines.place.is_empty() {
        text = format!("{text}\n{}", cut(without_markup(&lines.place), LONGEST_LINE));
    }
    let links =
        joined(&lines.links, LONGEST_LINKS, |link| format!("[{}]({})", without_markup(&link.text), link.url));
    // The remaining bytes, with the line break.
    let room = LONGEST - text.len() - links.len() - 1;
    let why = lines.why.iter().map(|line| format!("\n>{}", without_markup(line)));
    text.push_str(&cut(why.collect(), room));
    if !links.is_empty() {
        text = format!("{text}\n{links}");
    }
    json!({"msgtype": "markdown", "markdown": {"content": text}})
}

/// Only green, grey and orange exist.
fn coloured(text: &str, severity: Severity) -> String {
    match severity {
        Severity::Info => format!("**{text}**"),
        Severity::Good => format!("<font color=\"info\">{text}</font>"),
        Severity::Warning | Severity::Bad => format!("<font color=\"warning\">{text}</font>"),
    }
}

pub(super) fn meaning(code: i64, _message: &str) -> Option<Meaning> {
    match code {
        45009 => Some(Meaning::Wait(60)),
        93000 => {
            Some(Meaning::Refused("the bot is no more: create it anew, and put its address into the Secret"))
        }
        40008 | 40058 => Some(Meaning::Refused("the message is not understood")),
        _ => None,
    }
}
