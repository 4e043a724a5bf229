//! The media type of a request body.

use http::header::CONTENT_TYPE;
use http::request::Parts;

/// The media type of the body, without its parameters; `None` when the header makes no sense.
pub(super) fn media_type(parts: &Parts) -> Option<String> {
    let header = parts.headers.get(CONTENT_TYPE).map_or(Some(""), |value| value.to_str().ok())?;
    let mut pieces = header.split(';');
    let media = pieces.next().unwrap_or("").trim().to_ascii_lowercase();
    let is_sound = |piece: &str| match piece.trim().split_once('=') {
        Some((name, value)) => {
            let is_open = value.starts_with('"') && !(value.len() > 1 && value.ends_with('"'));
            !name.is_empty() && !value.is_empty() && !is_open
        }
        None => piece.trim().is_empty(),
    };
    let is_named = !media.is_empty() || header.trim().is_empty();
    (is_named && pieces.all(is_sound)).then_some(media)
}
