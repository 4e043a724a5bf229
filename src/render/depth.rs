//! How deep a template may nest. The engine bounds brackets and blocks, but goes down one call for every operator of an
//! expression and for every `elif`: some thousands of them are more than a thread's stack has room for, and end the
//! process.

/// More operators in one tag, or more `elif`s in one template, than anybody writes.
const MOST: usize = 400;

/// The line of the first tag that is too much for the engine.
pub fn too_deep(text: &str) -> Option<usize> {
    let (mut rest, mut line, mut alternatives) = (text, 1, 0);
    while let Some(start) = rest.find('{') {
        line += newlines(&rest[..start]);
        rest = &rest[start..];
        let length = match rest.as_bytes().get(1) {
            Some(b'#') => rest.find("#}").map_or(rest.len(), |end| end + 2),
            Some(b'{' | b'%') => {
                let tag = Tag::of(rest);
                alternatives += usize::from(tag.is_alternative);
                if tag.operators > MOST || alternatives > MOST {
                    return Some(line);
                }
                tag.length
            }
            _ => 1,
        };
        line += newlines(&rest[..length]);
        rest = &rest[length..];
    }
    None
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// One `{{ … }}` or `{% … %}`.
struct Tag {
    length: usize,
    operators: usize,
    is_alternative: bool,
}

impl Tag {
    /// At the beginning of a text that begins with one.
    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let end = if bytes.get(1) == Some(&b'{') { b'}' } else { b'%' };
        let mut tag = Self { length: 2, operators: 0, is_alternative: false };
        while let Some(&byte) = bytes.get(tag.length) {
            if byte == end && bytes.get(tag.length + 1) == Some(&b'}') {
                tag.length += 2;
                return tag;
            }
            tag.length += match byte {
                b'"' | b'\'' => quoted(&bytes[tag.length..]),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                    let word = word(&text[tag.length..]);
                    tag.operators += usize::from(matches!(word, "and" | "or" | "not" | "is" | "in" | "if"));
                    tag.is_alternative |= word == "elif";
                    word.len()
                }
                b'-' | b'+' | b'*' | b'/' | b'%' | b'~' | b'.' | b'|' | b'=' | b'<' | b'>' | b'!' | b'('
                | b'[' => {
                    tag.operators += 1;
                    1
                }
                _ => 1,
            };
        }
        tag
    }
}

fn word(text: &str) -> &str {
    let end = text.bytes().position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_');
    &text[..end.unwrap_or(text.len())]
}

/// The length of a text in quotes, or of the rest when it does not end.
fn quoted(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            _ if Some(&byte) == bytes.first() => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_cannot_go_down_is_too_deep() {
        fn check(text: &str, expected: Option<usize>) {
            assert_eq!(too_deep(text), expected, "{}", &text[..text.len().min(60)]);
        }
        let many = |text: &str| text.repeat(MOST + 1);
        for operator in ["-", "not ", "a + ", "a and ", "a ** ", "a."] {
            check(&format!("a: 1\nb: {{{{ {}a }}}}\n", many(operator)), Some(2));
        }
        for operator in [".a", "[0]", "()", "|upper", " is defined", " if a else a"] {
            check(&format!("{{{{ a{} }}}}", many(operator)), Some(1));
        }
        check(&format!("{{% if a %}}{}{{% endif %}}", many("\n{% elif b %}")), Some(MOST + 2));
        // In comments, texts and quotes, and in several tags, it is as much as anybody likes.
        check(&format!("{{# {} #}}{}{{{{ '{}' }}}}", many("-"), many("{ - "), many("-")), None);
        check(&many("{{ a.b - 1 }}"), None);
        check("{{ 'never ends", None);
        check("{{ \"\\", None);
    }
}
