//! Reads Slack blocks strictly.

use serde::Deserialize;

use super::{Links, plain};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slack {
    pub channel: Option<String>,
    pub ts: Option<String>,
    text: String,
    mrkdwn: bool,
    parse: String,
    #[serde(rename = "unfurl_links")]
    _unfurl_links: Option<bool>,
    #[serde(rename = "unfurl_media")]
    _unfurl_media: Option<bool>,
    attachments: Vec<SlackAttachment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SlackAttachment {
    #[serde(rename = "color")]
    _color: String,
    fallback: String,
    blocks: Vec<SlackBlock>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, tag = "type", rename_all = "snake_case")]
enum SlackBlock {
    Section { text: SlackText },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, tag = "type", rename_all = "snake_case")]
enum SlackText {
    PlainText { text: String, emoji: bool },
    Mrkdwn { text: String, verbatim: bool },
}

#[track_caller]
pub fn slack(body: &Slack, links: &Links<'_>) {
    assert!(!body.mrkdwn && body.parse == "none");
    escaped(&body.text);
    for attachment in &body.attachments {
        escaped(&attachment.fallback);
        assert!(!attachment.blocks.is_empty());
        for SlackBlock::Section { text } in &attachment.blocks {
            match text {
                SlackText::PlainText { text, emoji } => {
                    plain(text, 3_000);
                    assert!(!emoji);
                    assert!(!["<!", "<@", "<#"].iter().any(|mention| text.contains(mention)), "{text}");
                }
                SlackText::Mrkdwn { text, verbatim } => {
                    assert!(*verbatim && text.len() <= 3_000, "{text}");
                    for link in text.split(" · <").map(|link| link.trim_start_matches('<')) {
                        let (url, shown) = link.split_once('|').expect("a bar");
                        links.check(&url.replace("&amp;", "&"));
                        let shown = shown.strip_suffix('>').expect("an end");
                        escaped(shown);
                        assert!(!shown.contains('|'));
                    }
                }
            }
        }
    }
}

/// Characters that begin a mention or a link are entities.
#[track_caller]
fn escaped(text: &str) {
    plain(text, 5_000);
    let rest = text.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "");
    assert!(!rest.contains(['&', '<', '>', '\n']), "{text}");
}
