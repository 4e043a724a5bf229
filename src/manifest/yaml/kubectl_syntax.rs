//! Rewrites texts that kubectl accepts and libyaml's grammar does not: several JSON values in one file, surrogate pairs in JSON, and plain
//! scalars that end with a colon inside `[…]` or `{…}`.

use std::borrow::Cow;

use serde::de::IgnoredAny;

/// Replaces a colon that ends a plain scalar, during parsing.
const COLON_SUBSTITUTE: char = '\u{e0ff}';
/// A value that starts further right is reported at the start of its line.
const WIDEST: usize = 1_000;

/// One JSON value of a file, after the spaces that bring it to its column.
#[derive(Debug, PartialEq)]
pub struct JsonDocument {
    pub text: String,
    /// Of the file, from 0.
    pub line: u32,
}

/// The values of a text that is JSON; `None` for a text that is not, which is read as YAML.
pub fn json_values(text: &str) -> Option<Vec<JsonDocument>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let (mut found, mut line, mut line_start, mut counted) = (Vec::new(), 0, 0, 0);
    loop {
        let rest = text.get(values.byte_offset()..)?;
        let start = values.byte_offset() + (rest.len() - rest.trim_start().len());
        let Some(value) = values.next() else { return Some(found) };
        value.ok()?;
        for (at, _) in text.get(counted..start)?.match_indices('\n') {
            line += 1;
            line_start = counted + at + 1;
        }
        counted = start;
        let column = Some(start - line_start).filter(|column| *column < WIDEST).unwrap_or(0);
        let value = text.get(start..values.byte_offset())?;
        found.push(JsonDocument { text: format!("{:column$}{}\n", "", without_surrogates(value)), line });
    }
}

/// Replaces a surrogate pair such as `\ud83d\ude00` by the YAML escape of its character.
fn without_surrogates(text: &str) -> Cow<'_, str> {
    let half = |at: usize, range: std::ops::Range<u32>| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok().filter(|half| range.contains(half))
    };
    let (mut made, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let start = at + found;
        let pair = half(start, 0xd800..0xdc00).zip(half(start + 6, 0xdc00..0xe000));
        let Some((high, low)) = pair else {
            // Skip the escaped character, which may be a backslash.
            at = start + 2;
            continue;
        };
        let character = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        made.push_str(text.get(copied..start).unwrap_or_default());
        made.push_str(&format!("\\U{character:08x}"));
        copied = start + 12;
        at = copied;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    made.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(made)
}

/// The text with a character of its own for each colon that may end a plain scalar (`[a, fd00::]`). In quotes, comments and
/// blocks it stands for a colon as well: [`with_colons`] brings all of them back. `None`: there is no such colon.
pub fn without_colons(text: &str) -> Option<String> {
    let ends_scalar = |(at, _): (usize, &str)| {
        let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before)).copied();
        let behind = text.as_bytes().get(at + 1).copied();
        // Behind a quote or a bracket, a colon is the end of a key.
        let is_plain = before.is_some_and(|it| !it.is_ascii_whitespace() && !b"\"'[]{},".contains(&it));
        (is_plain && behind.is_some_and(|it| b",]}".contains(&it))).then_some(at)
    };
    let mut colons = text.match_indices(':').filter_map(ends_scalar).peekable();
    if colons.peek().is_none() || text.contains(COLON_SUBSTITUTE) {
        return None;
    }
    let (mut made, mut copied) = (String::with_capacity(text.len() + 64), 0);
    for at in colons {
        made.push_str(text.get(copied..at).unwrap_or_default());
        made.push(COLON_SUBSTITUTE);
        copied = at + 1;
    }
    made.push_str(text.get(copied..).unwrap_or_default());
    Some(made)
}

/// A scalar of a text that was made [without](without_colons) them.
pub fn with_colons(value: String) -> String {
    if value.contains(COLON_SUBSTITUTE) { value.replace(COLON_SUBSTITUTE, ":") } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_values_keep_their_places() {
        let check = |text: &str, expected: Option<&[(&str, u32)]>| {
            let found = json_values(text);
            let found = found
                .as_ref()
                .map(|found| found.iter().map(|value| (value.text.as_str(), value.line)).collect::<Vec<_>>());
            assert_eq!(found.as_deref(), expected, "{text:?}");
        };
        check("{\"a\": 1}", Some(&[("{\"a\": 1}\n", 0)]));
        check(" {}\n\n  {}{\n}\n", Some(&[(" {}\n", 0), ("  {}\n", 2), ("    {\n}\n", 2)]));
        check("{a: 1}", None);
        check("{}\n---\n{}", None);
        check("a: {}", None);
    }

    #[test]
    fn pairs_of_surrogates_are_one_character() {
        let check = |text: &str, expected: &str| assert_eq!(without_surrogates(text), expected);
        check(r#""\ud83d\ude00 a""#, r#""\U0001f600 a""#);
        check(r#""\uD83D\uDE00\ud83d\ude00""#, r#""\U0001f600\U0001f600""#);
        check(r#""\\ud83d\ude00""#, r#""\\ud83d\ude00""#);
        check(r#""\ud83d a\u00e4""#, r#""\ud83d a\u00e4""#);
        check("é\\", "é\\");
    }

    #[test]
    fn colons_end_plain_scalars_only() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                without_colons(text).map(|made| made.replace(COLON_SUBSTITUTE, "§")).as_deref(),
                expected,
                "{text}"
            );
        };
        check("[a, fd00::]", Some("[a, fd00:§]"));
        check("{x: fd00::, y: b:}", Some("{x: fd00:§, y: b§}"));
        check("{\"a\":[1], 'b':{}, c: 1}", None);
        check("{[a]:, b: :}", None);
        check("a: b:c", None);
        check("x\u{e0ff}: [fd00::]", None);
    }
}
