//! A Microsoft Teams workflow: an Adaptive Card in a message envelope.

use serde_json::{Value, json};

use super::SendOutcome;
use super::response::ServiceResponseRef;
use super::text::MessageLines;
use crate::notification::{Message, MessageSeverity};

/// For all addresses together, in bytes. A message may have 28 KB, but some above 21 KB are refused.
const LONGEST_LINKS: usize = 3_000;

/// All texts are rich text runs, which have no Markdown. A mention would need a list of people.
pub(super) fn body(message: &Message) -> Value {
    let lines = MessageLines::of(message);
    let severity = MessageSeverity::of(message.happened);
    let text = |text: &str, weight: &str, spacing: &str| {
        let run = json!({"type": "TextRun", "text": text, "weight": weight});
        json!({"type": "RichTextBlock", "spacing": spacing, "inlines": [run]})
    };
    let mut blocks = vec![json!({
        "type": "Container",
        "style": style(severity),
        "bleed": true,
        "items": [text(&lines.title, "Bolder", "None")],
    })];
    if !lines.place.is_empty() {
        blocks.push(text(&lines.place, "Default", "Medium"));
    }
    blocks.extend(lines.cause.iter().map(|line| text(line, "Default", "None")));
    let mut card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "fallbackText": lines.title,
        "msteams": {"width": "Full"},
        "body": blocks,
    });
    let mut room = LONGEST_LINKS;
    let mut actions = Vec::new();
    for link in &lines.links {
        let Some(left) = room.checked_sub(link.url.len()) else { continue };
        room = left;
        actions.push(json!({"type": "Action.OpenUrl", "title": link.text, "url": link.url}));
    }
    if !actions.is_empty() {
        card["actions"] = actions.into();
    }
    json!({
        "type": "message",
        "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}],
    })
}

fn style(severity: MessageSeverity) -> &'static str {
    match severity {
        MessageSeverity::Info => "accent",
        MessageSeverity::Good => "good",
        MessageSeverity::Warning => "warning",
        MessageSeverity::Bad => "attention",
    }
}

/// The older connectors answer 200 with a sentence if Teams refused the message.
pub(super) fn outcome(answer: &ServiceResponseRef<'_>) -> SendOutcome {
    const REFUSAL: &str = "endpoint returned HTTP error";
    match answer.outcome_by_status() {
        SendOutcome::Sent(_) if String::from_utf8_lossy(answer.body).contains(REFUSAL) => {
            answer.retry_outcome("Teams did not accept the message from its connector".to_owned())
        }
        other => other,
    }
}
