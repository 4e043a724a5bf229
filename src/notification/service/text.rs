//! The lines of a message for services: bounded, one line each, without addresses that clients turn into links.

use reqwest::Url;

use crate::model::{short_line, visible_line};
use crate::notification::{Message, MessageLink};

/// In bytes.
const LONGEST_WHAT: usize = 400;
const LONGEST_PLACE: usize = 500;
const LONGEST_WHY: usize = 4_000;
/// A shorter rest has no information.
const LEAST_REASON: usize = 16;
const LONGEST_LINK_TEXT: usize = 60;
const LONGEST_URL: usize = 1_000;
const MOST_REASONS: usize = 20;
const MOST_LINKS: usize = 5;

pub(super) struct MessageLines {
    /// Never empty.
    pub title: String,
    pub place: String,
    /// Without empty lines.
    pub cause: Vec<String>,
    pub links: Vec<MessageLink>,
}

impl MessageLines {
    pub fn of(message: &Message) -> Self {
        Self::new(message, without_addresses)
    }

    /// For programs, which do not turn texts into links.
    pub fn exact(message: &Message) -> Self {
        Self::new(message, str::to_owned)
    }

    fn new(message: &Message, form: fn(&str) -> String) -> Self {
        let mut what = line(&message.title, LONGEST_WHAT, form);
        if what.is_empty() {
            message.happened.as_str().clone_into(&mut what);
        }
        Self {
            title: what,
            place: line(&message.place, LONGEST_PLACE, form),
            cause: cause_lines(&message.cause, form),
            links: message.links.iter().filter_map(valid_link).take(MOST_LINKS).collect(),
        }
    }
}

/// At most this many bytes, with a mark if it was cut.
pub(super) fn truncate(mut text: String, most: usize) -> String {
    const MARK: char = '…';
    if text.len() <= most {
        return text;
    }
    let Some(room) = most.checked_sub(MARK.len_utf8()) else { return String::new() };
    text.truncate(text.floor_char_boundary(room));
    text.push(MARK);
    text
}

/// Without anything that chats read as Markdown, HTML or a mention. Clients differ in their escapes, so each such character is
/// replaced by its full-width form.
pub(super) fn without_markup(text: &str) -> String {
    const TO_WIDE: u32 = 0xfee0;
    let wide = |letter: char| match letter {
        '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '&' | '@' | '#' | '|' | '~' => {
            char::from_u32(letter as u32 + TO_WIDE).unwrap_or(' ')
        }
        other => other,
    };
    let mut plain = String::new();
    let mut letters = text.chars().peekable();
    let mut is_in_word = false;
    while let Some(letter) = letters.next() {
        // Within a word it is no markup.
        let is_name =
            letter == '_' && is_in_word && letters.peek().is_some_and(|next| next.is_alphanumeric());
        plain.push(if letter == '_' && !is_name { '＿' } else { wide(letter) });
        is_in_word = letter.is_alphanumeric();
    }
    plain
}

/// As many links in the form of a service as fit into the bytes.
pub(super) fn join_links(
    links: &[MessageLink],
    most: usize,
    form: impl Fn(&MessageLink) -> String,
) -> String {
    let mut line = String::new();
    for link in links {
        let link = form(link);
        let between = if line.is_empty() { "" } else { " · " };
        if line.len() + between.len() + link.len() <= most {
            line.push_str(between);
            line.push_str(&link);
        }
    }
    line
}

fn line(text: &str, most: usize, form: fn(&str) -> String) -> String {
    truncate(form(&short_line(text, most)), most)
}

fn cause_lines(text: &str, form: fn(&str) -> String) -> Vec<String> {
    let lines = text.lines().map(|line| visible_line(line.trim_end(), LONGEST_WHY));
    let mut left = LONGEST_WHY;
    let mut reasons: Vec<String> = Vec::new();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        if reasons.len() == MOST_REASONS || left < LEAST_REASON {
            reasons.push("…".to_owned());
            break;
        }
        let line = truncate(form(&line), left);
        left -= line.len();
        reasons.push(line);
    }
    reasons
}

/// Clients of chat and mail turn anything that begins as an address into a link.
fn without_addresses(text: &str) -> String {
    text.replace("://", "：//")
}

/// `None`: no web address, an address with a password, or a too long one.
fn valid_link(link: &MessageLink) -> Option<MessageLink> {
    let url = Url::parse(&link.url).ok()?;
    let is_plain = url.has_host() && url.username().is_empty() && url.password().is_none();
    if !is_plain || !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let host = url.host_str().unwrap_or_default();
    let url = without_brackets(url.as_str());
    if url.len() > LONGEST_URL {
        return None;
    }
    let mut text = line(&link.text, LONGEST_LINK_TEXT, without_addresses);
    if text.is_empty() {
        text = truncate(host.to_owned(), LONGEST_LINK_TEXT);
    }
    Some(MessageLink { text, url })
}

/// Percent-encodes characters that end an address in some format. The host may be an IPv6 address in brackets.
fn without_brackets(url: &str) -> String {
    let host = url.find("://").map_or(0, |at| at + 3);
    let path = url[host..].find('/').map_or(url.len(), |at| host + at);
    let mut encoded = url[..path].to_owned();
    for letter in url[path..].chars() {
        match letter {
            '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '|' | '*' | '\\' | '`' | '\'' | '"' | '@' => {
                encoded.push_str(&format!("%{:02X}", letter as u32));
            }
            other => encoded.push(other),
        }
    }
    encoded
}
