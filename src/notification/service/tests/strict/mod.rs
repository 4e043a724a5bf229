//! Reads each format strictly as its service documents it: structure, lengths, and no foreign mention or link.

mod cards;
mod slack;

use reqwest::Url;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::Value;

use self::cards::{feishu, teams};
use self::slack::{Slack, slack};
use super::super::{ResolvedService, ServiceRequest, generic, wecom};
use crate::notification::Message;

#[track_caller]
pub fn check(target: &ResolvedService, message: &Message, request: &ServiceRequest) {
    assert_eq!(request.method, "POST");
    let url = Url::parse(request.url.expose_secret()).expect("an address");
    assert_eq!(url.scheme(), "https");
    let (body, size) = (request.body.as_slice(), request.body.len());
    let links = &Links(message);
    match target {
        ResolvedService::Feishu { .. } => {
            assert!(size <= 20_000, "{size} bytes");
            feishu(&read(body), links);
        }
        ResolvedService::DingTalk { .. } => {
            assert!(size <= 20_000, "{size} bytes");
            dingtalk(&read(body), links);
        }
        ResolvedService::WeCom { .. } => wecom(&read(body), links),
        ResolvedService::SlackWebhook { .. } => {
            let body: Slack = read(body);
            assert!(body.channel.is_none() && body.ts.is_none());
            slack(&body, links);
        }
        ResolvedService::SlackBot { .. } => {
            let body: Slack = read(body);
            assert!(body.channel.is_some());
            assert_eq!(body.ts.is_some(), url.path() == "/api/chat.update");
            slack(&body, links);
        }
        ResolvedService::Teams { .. } => {
            assert!(size <= 21_000, "{size} bytes");
            teams(&read(body), links);
        }
        ResolvedService::Generic { .. } => {
            assert!(size <= generic::LARGEST_DATA + 20_000, "{size} bytes");
            event(&read(body), message, links);
        }
        ResolvedService::Email { .. } => panic!("a mail is no request"),
    }
}

#[track_caller]
fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> T {
    serde_json::from_slice(body).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(body)))
}

/// The links that a message may have.
struct Links<'a>(&'a Message);

impl Links<'_> {
    #[track_caller]
    fn check(&self, url: &str) {
        let breaks = |it: char| it.is_whitespace() || it.is_control() || "()<>|\"'*`\\".contains(it);
        assert!(!url.contains(breaks), "{url:?}");
        let decoded = |url: &str| Url::parse(url).ok().map(|url| percent_decoded(url.as_str()));
        let found = decoded(url).expect("an address");
        let is_ours = self.0.links.iter().any(|link| decoded(&link.url).as_ref() == Some(&found));
        assert!(is_ours, "{url} is no link of the message");
        assert!(url.starts_with("https://") || url.starts_with("http://"), "{url}");
    }
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let (mut decoded, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let number =
            (bytes[at] == b'%').then(|| u8::from_str_radix(text.get(at + 1..at + 3)?, 16).ok()).flatten();
        decoded.push(number.unwrap_or(bytes[at]));
        at += if number.is_some() { 3 } else { 1 };
    }
    decoded
}

/// A readable text without markup or the beginning of an address.
#[track_caller]
fn plain(text: &str, most: usize) {
    visible(text, most);
    assert!(!text.contains("://"), "{text:?}");
}

#[track_caller]
fn visible(text: &str, most: usize) {
    assert!(!text.is_empty() && text.len() <= most, "{} bytes", text.len());
    let hides = |it: char| {
        it.is_control() && it != '\n'
            || matches!(it, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    assert!(!text.contains(hides), "{text:?}");
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DingTalk {
    msgtype: String,
    markdown: DingTalkText,
    at: DingTalkAt,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DingTalkText {
    title: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct DingTalkAt {
    at_mobiles: Vec<String>,
    is_at_all: bool,
}

#[track_caller]
fn dingtalk(body: &DingTalk, links: &Links<'_>) {
    assert_eq!(body.msgtype, "markdown");
    assert!(body.at.at_mobiles.is_empty() && !body.at.is_at_all);
    unmarked(&body.markdown.title);
    let mut parts = body.markdown.text.split("\n\n");
    let heading = parts.next().and_then(|part| part.strip_prefix("#### ")).expect("a heading");
    unmarked(heading);
    for part in parts {
        assert!(!part.contains('\n'), "{part}");
        marked(part.strip_prefix("> ").unwrap_or(part), links);
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WeCom {
    msgtype: String,
    markdown: WeComText,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WeComText {
    content: String,
}

#[track_caller]
fn wecom(body: &WeCom, links: &Links<'_>) {
    let text = &body.markdown.content;
    assert_eq!(body.msgtype, "markdown");
    assert!(text.len() <= wecom::MAX_TEXT_BYTES, "{} bytes", text.len());
    let mut lines = text.split('\n');
    let first = lines.next().expect("a line");
    let within = |begin: &str, end: &str| first.strip_prefix(begin)?.strip_suffix(end);
    let what = within("<font color=\"info\">", "</font>")
        .or_else(|| within("<font color=\"warning\">", "</font>"))
        .or_else(|| within("**", "**"));
    unmarked(what.expect("a mark"));
    lines.for_each(|line| marked(line.strip_prefix('>').unwrap_or(line), links));
}

/// Without the beginning of markup or a mention.
#[track_caller]
fn unmarked(text: &str) {
    plain(text, 6_000);
    assert!(!text.contains(|it| "\\`*[]<>&@#|~\n".contains(it)), "{text}");
}

/// The same, with links in between: `[text](address)`.
#[track_caller]
fn marked(text: &str, links: &Links<'_>) {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        if !before.is_empty() {
            unmarked(before);
        }
        let (shown, after) = after.split_once("](").expect("an address behind the text");
        let (url, after) = after.split_once(')').expect("an end");
        unmarked(shown);
        links.check(url);
        rest = after;
    }
    if !rest.is_empty() {
        unmarked(rest);
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    specversion: String,
    id: String,
    #[serde(rename = "type")]
    kind: String,
    source: String,
    subject: String,
    time: jiff::Timestamp,
    datacontenttype: String,
    data: serde_json::Map<String, Value>,
}

#[track_caller]
fn event(event: &Event, message: &Message, links: &Links<'_>) {
    assert_eq!((event.specversion.as_str(), event.datacontenttype.as_str()), ("1.0", "application/json"));
    assert!(!event.id.is_empty() && !event.source.is_empty() && !event.subject.is_empty());
    assert!(
        event
            .source
            .split('/')
            .all(|part| part.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._".contains(&it)))
    );
    assert_eq!(event.time, message.at);
    let parts: Vec<&str> = event.kind.split('.').collect();
    assert!(matches!(parts[..], ["dev", "tutti", _, _, "v1"]), "{}", event.kind);
    visible(event.data["what"].as_str().expect("a text"), 500);
    for name in ["where", "why"] {
        let text = event.data[name].as_str().expect("a text");
        if !text.is_empty() {
            visible(text, 5_000);
        }
    }
    for link in event.data["links"].as_array().expect("a list") {
        plain(link["text"].as_str().expect("a text"), 60);
        links.check(link["url"].as_str().expect("an address"));
    }
}

/// As it is sent: ASCII, short lines, and only expected headers.
#[cfg(feature = "mail")]
#[track_caller]
pub fn mail(bytes: &[u8]) {
    const HEADERS: [&str; 10] = [
        "From",
        "To",
        "Subject",
        "Date",
        "Message-ID",
        "In-Reply-To",
        "References",
        "MIME-Version",
        "Content-Type",
        "Content-Transfer-Encoding",
    ];
    assert!(bytes.is_ascii() && bytes.len() <= 64 * 1024);
    let text = std::str::from_utf8(bytes).expect("ASCII");
    let (head, body) = text.split_once("\r\n\r\n").expect("a body");
    assert!(text.split("\r\n").all(|line| line.len() <= 998 && !line.contains(['\r', '\n'])));
    assert!(!body.is_empty());
    let mut names: Vec<&str> = head
        .split("\r\n")
        .filter(|line| !line.starts_with([' ', '\t']))
        .map(|line| line.split_once(": ").expect("a header").0)
        .collect();
    names.sort_unstable();
    let mut expected = HEADERS.to_vec();
    expected.sort_unstable();
    assert_eq!(names, expected, "{head}");
}
