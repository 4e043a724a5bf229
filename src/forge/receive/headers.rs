//! Reads the headers of a delivery, and says which of them may be shown.

use http::HeaderMap;
use http::header::CONTENT_TYPE;

use crate::forge::WebhookRejection;
use crate::model::short_line;

/// The most characters of a shown header value or other text of the sender, and the most headers.
pub const LONGEST_SHOWN: usize = 128;
const MOST_SHOWN: usize = 48;

/// Headers that are neither secret nor part of a signature. Of other headers only the name is shown.
const PUBLIC_HEADERS: [&str; 18] = [
    "content-length",
    "content-type",
    "date",
    "digest",
    "user-agent",
    "webhook-id",
    "webhook-timestamp",
    "x-drone-event",
    "x-forgejo-delivery",
    "x-forgejo-event",
    "x-forgejo-event-type",
    "x-gitea-delivery",
    "x-gitea-event",
    "x-gitea-event-type",
    "x-github-delivery",
    "x-github-event",
    "x-gogs-delivery",
    "x-gogs-event",
];

/// All header names, and the values that are no secret.
pub fn shown_headers(headers: &HeaderMap) -> Vec<(String, Option<String>)> {
    let names = headers.keys().take(MOST_SHOWN);
    let value = |name: &str| {
        let value = PUBLIC_HEADERS.contains(&name).then(|| headers.get(name)).flatten()?;
        Some(short_line(&String::from_utf8_lossy(value.as_bytes()), LONGEST_SHOWN))
    };
    names.map(|name| (short_line(name.as_str(), LONGEST_SHOWN), value(name.as_str()))).collect()
}

/// In lower case, without parameters, shortened; empty if missing.
pub fn media_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    short_line(text.split(';').next().unwrap_or_default(), LONGEST_SHOWN).to_ascii_lowercase()
}

pub fn check_is_json(headers: &HeaderMap) -> Result<(), WebhookRejection> {
    match media_type(headers) {
        media if matches!(media.as_str(), "" | "application/json") => Ok(()),
        media => Err(WebhookRejection::UnsupportedMediaType(media)),
    }
}

/// The first header that is present, not empty, and text.
pub fn header<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| headers.get(*name)?.to_str().ok().filter(|text| !text.is_empty()))
}

/// The first header that is present and not empty. A wrong one is not replaced by a later one.
pub fn raw_header<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<&'a [u8]> {
    names.iter().find_map(|name| Some(headers.get(*name)?.as_bytes()).filter(|value| !value.is_empty()))
}
