//! Finds the bytes of a value in a text, and writes another value in its place.

use std::ops::Range;

use super::{YamlNodeKind, scalar};
use crate::model::TextPosition;

/// The bytes between two positions. With other line ends than `\n` they may be wrong, so callers compare them with the expected text.
pub fn span(text: &str, start: TextPosition, end: TextPosition) -> Option<Range<usize>> {
    let (from, to) = (offset(text, start)?, offset(text, end)?);
    text.get(from..to).map(|_| from..to)
}

/// The byte that a position is at. Lines end with `\n` here.
fn offset(text: &str, position: TextPosition) -> Option<usize> {
    let mark = text.len() - text.strip_prefix('\u{feff}').unwrap_or(text).len();
    let body = &text[mark..];
    let line = usize::try_from(position.line).ok()?.checked_sub(1)?;
    let column = usize::try_from(position.column).ok()?.checked_sub(1)?;
    let before: usize = body.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = body.get(before..)?;
    let within = rest.char_indices().map(|(at, _)| at).chain([rest.len()]).nth(column)?;
    Some(mark + before + within)
}

/// The new text with the quotes of the old one, or with quotes when it needs them; `None` when the old text has escapes or several lines.
pub fn requote(written: &str, old: &str, new: &str) -> Option<String> {
    if written == old && !written.starts_with(['"', '\'']) {
        return Some(if is_plain(new) { new.to_owned() } else { double_quoted(new) });
    }
    if written == single_quoted(old) {
        let fits = !new.contains(is_escaped);
        return Some(if fits { single_quoted(new) } else { double_quoted(new) });
    }
    let is_quoted = written.len() > 1 && written.starts_with('"') && written.ends_with('"');
    is_quoted.then(|| double_quoted(new))
}

/// Whether every YAML parser reads the unquoted text as a string, in every context.
fn is_plain(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_./@+".contains(letter);
    // A colon between letters, as in an image with a tag, is none of a key.
    let fits = text.split(':').all(|part| !part.is_empty() && part.chars().all(is_letter));
    let is_time =
        text.contains(':') && text.chars().all(|letter| letter.is_ascii_digit() || ":.".contains(letter));
    let is_date = text.starts_with(|letter: char| letter.is_ascii_digit())
        && text.chars().all(|letter| letter.is_ascii_digit() || "-:.TZ+".contains(letter))
        && text.contains('-');
    text.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && fits
        && !is_time
        && !is_date
        && scalar::resolve(text) == Ok(YamlNodeKind::String(text.to_owned()))
}

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A JSON string is a YAML string, except for characters that YAML treats as line ends or refuses.
fn double_quoted(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    if !quoted.contains(is_escaped) {
        return quoted;
    }
    let escape = |letter: char| match is_escaped(letter) {
        true => format!("\\u{:04x}", u32::from(letter)),
        false => letter.to_string(),
    };
    quoted.chars().map(escape).collect()
}

fn is_escaped(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::requote;

    #[test]
    fn quotes_stay_or_come() {
        let check = |written: &str, old: &str, new: &str, expected: Option<&str>| {
            assert_eq!(requote(written, old, new).as_deref(), expected, "{written} {new}");
        };
        check("v1", "v1", "v2", Some("v2"));
        check("v1", "v1", "1.8.0", Some("1.8.0"));
        check("v1", "v1", "1.10", Some("\"1.10\""));
        check("v1", "v1", "12345e7", Some("\"12345e7\""));
        check("v1", "v1", "0644", Some("\"0644\""));
        check("v1", "v1", "yes", Some("\"yes\""));
        check("v1", "v1", "", Some("\"\""));
        check("v1", "v1", "2026-11-27", Some("\"2026-11-27\""));
        check("v1", "v1", "12:30", Some("\"12:30\""));
        check("v1", "v1", "registry.example.com:5000/pay:1.8.0", Some("registry.example.com:5000/pay:1.8.0"));
        check("v1", "v1", "pay@sha256:0a1b", Some("pay@sha256:0a1b"));
        check("v1", "v1", "a: b", Some("\"a: b\""));
        check("v1", "v1", "a:", Some("\"a:\""));
        check("v1", "v1", "a #b", Some("\"a #b\""));
        check("v1", "v1", "*a", Some("\"*a\""));
        check("'v1'", "v1", "it's", Some("'it''s'"));
        check("'v1'", "v1", "a\nb", Some(r#""a\nb""#));
        check("\"v1\"", "v1", "1.10", Some("\"1.10\""));
        check("\"v1\"", "v1", "a\u{2028}\u{85}b", Some(r#""a\u2028\u0085b""#));
        check("&a v1", "v1", "v2", None);
        check("!!str v1", "v1", "v2", None);
        check("|\n  v1\n", "v1\n", "v2", None);
        check("\"", "v1", "v2", None);
    }
}
