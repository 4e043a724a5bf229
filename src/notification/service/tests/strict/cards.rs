//! Cards of Feishu and Teams.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Links, plain};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feishu {
    timestamp: Option<String>,
    sign: Option<String>,
    msg_type: String,
    card: FeishuCard,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeishuCard {
    #[serde(rename = "config")]
    _config: IgnoredAny,
    header: FeishuHeader,
    elements: Vec<FeishuElement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeishuHeader {
    title: FeishuText,
    template: String,
}

/// Tags other than `plain_text` may mention people.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, tag = "tag", rename_all = "snake_case")]
enum FeishuText {
    PlainText { content: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, tag = "tag", rename_all = "snake_case")]
enum FeishuElement {
    Div { text: FeishuText },
    Action { actions: Vec<FeishuButton> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, tag = "tag", rename_all = "snake_case")]
enum FeishuButton {
    Button {
        text: FeishuText,
        #[serde(rename = "type")]
        kind: String,
        url: String,
    },
}

#[track_caller]
pub fn feishu(body: &Feishu, links: &Links<'_>) {
    let text = |text: &FeishuText| {
        let FeishuText::PlainText { content } = text;
        plain(content, 5_000);
    };
    assert_eq!(body.msg_type, "interactive");
    assert_eq!(body.timestamp.is_some(), body.sign.is_some());
    assert!(["blue", "green", "orange", "red"].contains(&body.card.header.template.as_str()));
    text(&body.card.header.title);
    assert!(!body.card.elements.is_empty());
    for element in &body.card.elements {
        match element {
            FeishuElement::Div { text: content } => text(content),
            FeishuElement::Action { actions } => {
                assert!(!actions.is_empty());
                for FeishuButton::Button { text: content, kind, url } in actions {
                    assert_eq!(kind, "default");
                    text(content);
                    links.check(url);
                }
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Teams {
    #[serde(rename = "type")]
    kind: String,
    attachments: [TeamsAttachment; 1],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TeamsAttachment {
    content_type: String,
    content: TeamsCard,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TeamsCard {
    #[serde(rename = "$schema")]
    _schema: String,
    #[serde(rename = "type")]
    kind: String,
    version: String,
    fallback_text: String,
    msteams: TeamsWidth,
    body: Vec<TeamsBlock>,
    #[serde(default)]
    actions: Vec<TeamsAction>,
}

/// Mentions would need a list here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TeamsWidth {
    width: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, tag = "type")]
enum TeamsBlock {
    Container {
        style: String,
        #[serde(rename = "bleed")]
        _bleed: bool,
        items: Vec<TeamsBlock>,
    },
    RichTextBlock {
        spacing: String,
        inlines: [TeamsRun; 1],
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, tag = "type")]
enum TeamsRun {
    TextRun { text: String, weight: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, tag = "type")]
enum TeamsAction {
    #[serde(rename = "Action.OpenUrl")]
    OpenUrl { title: String, url: String },
}

#[track_caller]
pub fn teams(body: &Teams, links: &Links<'_>) {
    let [attachment] = &body.attachments;
    let card = &attachment.content;
    assert_eq!(body.kind, "message");
    assert_eq!(attachment.content_type, "application/vnd.microsoft.card.adaptive");
    assert_eq!((card.kind.as_str(), card.version.as_str()), ("AdaptiveCard", "1.4"));
    assert_eq!(card.msteams.width, "Full");
    plain(&card.fallback_text, 500);
    blocks(&card.body);
    assert!(card.actions.len() <= 6);
    for TeamsAction::OpenUrl { title, url } in &card.actions {
        plain(title, 60);
        links.check(url);
    }
}

#[track_caller]
fn blocks(list: &[TeamsBlock]) {
    assert!(!list.is_empty());
    for block in list {
        match block {
            TeamsBlock::Container { style, items, .. } => {
                assert!(["accent", "good", "warning", "attention"].contains(&style.as_str()));
                blocks(items);
            }
            TeamsBlock::RichTextBlock { spacing, inlines: [TeamsRun::TextRun { text, weight }] } => {
                assert!(["None", "Medium"].contains(&spacing.as_str()));
                assert!(["Default", "Bolder"].contains(&weight.as_str()));
                plain(text, 5_000);
            }
        }
    }
}
