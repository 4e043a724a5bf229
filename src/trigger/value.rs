//! Validates the texts that are written as a version or as an image; others are refused.

use crate::manifest::read::is_label_value;
use crate::model::ImageReference;

/// Bytes of an image.
const LONGEST_IMAGE: usize = 512;
/// Bytes of a tag, by the distribution specification.
const LONGEST_TAG: usize = 128;

pub const VERSION_HELP: &str =
    "a version has letters, digits, `-`, `_` and `.`, a letter or digit at both ends, at most 63";

/// Why a text is not a version, as pins and labels need it.
pub fn version_mistake(text: &str) -> Option<String> {
    (text.is_empty() || !is_label_value(text)).then(|| VERSION_HELP.to_owned())
}

/// Why a text is not an image reference. Source: the grammar of the distribution specification.
pub fn image_mistake(text: &str) -> Option<String> {
    let wrong = |what: &str| Some(format!("{what}; write it as registry.example.com/shop/pay:1.8.0"));
    if text.len() > LONGEST_IMAGE {
        return wrong(&format!("an image has at most {LONGEST_IMAGE} bytes"));
    }
    let image = ImageReference::parse(text);
    if image.to_string() != text || !image.path.split('/').all(is_component) {
        return wrong(
            "the name of an image has lower case letters and digits, with `.`, `_`, `__`, `-` and `/` between them",
        );
    }
    if !image.registry.is_none_or(is_registry) {
        return wrong("the registry of an image is a host, with a port or without");
    }
    if !image.tag.is_none_or(is_tag) {
        return wrong(
            "a tag has letters, digits, `_`, `.` and `-`, begins with a letter, digit or `_`, and has at most 128 of them",
        );
    }
    if !image.digest.is_none_or(is_digest) {
        return wrong("a digest is sha256: and 64 hexadecimal digits");
    }
    None
}

/// `pay`, `pay-web`, `pay__web`.
fn is_component(text: &str) -> bool {
    let is_letter = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
    let mut rest = text;
    loop {
        let word = rest.len() - rest.trim_start_matches(is_letter).len();
        if word == 0 {
            return false;
        }
        rest = &rest[word..];
        let between = rest.find(is_letter).unwrap_or(rest.len());
        let separator = &rest[..between];
        if separator.is_empty() {
            return rest.is_empty();
        }
        if !matches!(separator, "." | "_" | "__") && !separator.chars().all(|it| it == '-') {
            return false;
        }
        rest = &rest[between..];
    }
}

fn is_registry(text: &str) -> bool {
    let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let is_letter = |it: char| it.is_ascii_alphanumeric() || it == '-';
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(is_letter) && !part.starts_with('-') && !part.ends_with('-')
    };
    host.split('.').all(is_part)
        && port.is_none_or(|port| port.parse::<u16>().is_ok() && !port.starts_with('+'))
}

fn is_tag(text: &str) -> bool {
    let is_letter = |it: char| it.is_ascii_alphanumeric() || "_.-".contains(it);
    !text.is_empty()
        && text.len() <= LONGEST_TAG
        && text.chars().all(is_letter)
        && !text.starts_with(['.', '-'])
}

fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:");
    digits.is_some_and(|it| it.len() == 64 && it.chars().all(|digit| matches!(digit, '0'..='9' | 'a'..='f')))
}
