//! What is wrong with a text that is no JSON, in the words of the server's own reader.

/// Nesting beyond this is refused.
const DEEPEST: usize = 10_000;

type Wrong = String;

/// `Ok` when the text is one JSON value.
pub(crate) fn check(text: &[u8]) -> Result<(), Wrong> {
    let mut reader = Reader { text, at: 0, open: Vec::new() };
    reader.value("looking for beginning of value")?;
    loop {
        let Some(frame) = reader.open.last().copied() else {
            return match reader.peek() {
                None => Ok(()),
                Some(byte) => Err(invalid(byte, "after top-level value")),
            };
        };
        let next = reader.peek().ok_or_else(ended)?;
        match (frame, next) {
            (b'{', b'}') | (b'[', b']') => {
                reader.at += 1;
                reader.open.pop();
            }
            (b'{', b',') => {
                reader.at += 1;
                reader.key()?;
            }
            (b'[', b',') => {
                reader.at += 1;
                reader.value("looking for beginning of value")?;
            }
            (b'{', byte) => return Err(invalid(byte, "after object key:value pair")),
            (_, byte) => return Err(invalid(byte, "after array element")),
        }
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    /// The brackets that are open; what stands in them is read one item at a time, so that no depth overflows.
    open: Vec<u8>,
}

fn ended() -> Wrong {
    "unexpected end of JSON input".to_owned()
}

fn invalid(byte: u8, context: &str) -> Wrong {
    let shown = match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        0..0x20 | 0x7f => format!(r"'\x{byte:02x}'"),
        0x80..0xa1 | 0xad => format!(r"'\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    };
    format!("invalid character {shown} {context}")
}

impl Reader<'_> {
    fn next(&mut self) -> Result<u8, Wrong> {
        let byte = *self.text.get(self.at).ok_or_else(ended)?;
        self.at += 1;
        Ok(byte)
    }

    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(|byte| b" \t\r\n".contains(byte)) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// A value, or the beginning of one that has others in it.
    fn value(&mut self, context: &str) -> Result<(), Wrong> {
        let first = self.peek().ok_or_else(ended)?;
        self.at += 1;
        match first {
            b'{' | b'[' => {
                self.open.push(first);
                if self.open.len() > DEEPEST {
                    return Err("exceeded max depth".to_owned());
                }
                match (first, self.peek().ok_or_else(ended)?) {
                    (b'{', b'}') | (b'[', b']') => Ok(()),
                    (b'{', _) => self.key(),
                    _ => self.value("looking for beginning of value"),
                }
            }
            b'"' => self.string(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            b'-' | b'0'..=b'9' => self.number(first),
            other => Err(invalid(other, context)),
        }
    }

    /// A key, its colon, and the beginning of its value.
    fn key(&mut self) -> Result<(), Wrong> {
        match self.peek().ok_or_else(ended)? {
            b'"' => self.at += 1,
            other => return Err(invalid(other, "looking for beginning of object key string")),
        }
        self.string()?;
        match self.peek().ok_or_else(ended)? {
            b':' => self.at += 1,
            other => return Err(invalid(other, "after object key")),
        }
        self.value("looking for beginning of value")
    }

    fn string(&mut self) -> Result<(), Wrong> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'u' => {
                        for _ in 0..4 {
                            let digit = self.next()?;
                            if !digit.is_ascii_hexdigit() {
                                return Err(invalid(digit, r"in \u hexadecimal character escape"));
                            }
                        }
                    }
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    other => return Err(invalid(other, "in string escape code")),
                },
                control @ 0..0x20 => return Err(invalid(control, "in string literal")),
                _ => {}
            }
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), Wrong> {
        for wanted in word.bytes().skip(1) {
            let byte = self.next()?;
            if byte != wanted {
                return Err(invalid(byte, &format!("in literal {word} (expecting '{}')", char::from(wanted))));
            }
        }
        Ok(())
    }

    fn number(&mut self, first: u8) -> Result<(), Wrong> {
        let mut leading = first;
        if first == b'-' {
            leading = self.next()?;
            if !leading.is_ascii_digit() {
                return Err(invalid(leading, "in numeric literal"));
            }
        }
        if leading != b'0' {
            self.digits();
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digit("after decimal point in numeric literal")?;
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digit("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn digit(&mut self, context: &str) -> Result<(), Wrong> {
        let byte = self.next()?;
        if !byte.is_ascii_digit() {
            return Err(invalid(byte, context));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str, expected: &str) {
        assert_eq!(check(text.as_bytes()).err().unwrap_or_default(), expected, "{text}");
    }

    #[test]
    fn the_words_of_the_server() {
        check_text(r#"{"a":[1,-2.5e3,true,null,"\u00e4",{}],"b":{}} "#, "");
        check_text("", "unexpected end of JSON input");
        check_text("{\"a\"", "unexpected end of JSON input");
        check_text("{}x", "invalid character 'x' after top-level value");
        check_text("{\"a\" 1}", "invalid character '1' after object key");
        check_text("{\"a\":1 2}", "invalid character '2' after object key:value pair");
        check_text("[1 2]", "invalid character '2' after array element");
        check_text("[1,]", "invalid character ']' looking for beginning of value");
        check_text("{\"a\":1,}", "invalid character '}' looking for beginning of object key string");
        check_text("trie", "invalid character 'i' in literal true (expecting 'u')");
        check_text("\"\\x\"", "invalid character 'x' in string escape code");
        check_text("\"\\u12g4\"", r"invalid character 'g' in \u hexadecimal character escape");
        check_text("\"a\nb\"", r"invalid character '\n' in string literal");
        check_text("-x", "invalid character 'x' in numeric literal");
        check_text("01", "invalid character '1' after top-level value");
        check_text("1.x", "invalid character 'x' after decimal point in numeric literal");
        check_text("1ex", "invalid character 'x' in exponent of numeric literal");
        check_text("'", r"invalid character '\'' looking for beginning of value");
    }

    #[test]
    fn depth_has_an_end_and_no_stack() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        check_text(&deep(10_000), "");
        check_text(&deep(10_001), "exceeded max depth");
    }
}
