//! A JSON parser whose errors are the server's.

use super::document::RequestDocument;

/// Deeper documents are refused. Stored objects are read again with a limit of 128 levels, and the paths of
/// managed fields lie a few levels deeper than the fields.
pub(crate) const MAX_DEPTH: usize = 120;

pub(crate) fn parse(text: &[u8]) -> Result<RequestDocument, String> {
    let mut reader = JsonReader { text, at: 0, depth: 0 };
    let document = reader.value()?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(document),
        Some(byte) => Err(unexpected(byte, "after top-level value")),
    }
}

struct JsonReader<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
}

impl JsonReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The next byte that is no space, not yet consumed.
    fn next_token(&mut self) -> Result<u8, String> {
        self.skip_space();
        self.peek().ok_or_else(ended)
    }

    fn value(&mut self) -> Result<RequestDocument, String> {
        match self.next_token()? {
            b'{' => self.nested(Self::map),
            b'[' => self.nested(Self::list),
            b'"' => self.text().map(RequestDocument::Text),
            b't' => self.literal("true", RequestDocument::Boolean(true)),
            b'f' => self.literal("false", RequestDocument::Boolean(false)),
            b'n' => self.literal("null", RequestDocument::Null),
            b'-' | b'0'..=b'9' => self.number(),
            other => Err(unexpected(other, "looking for beginning of value")),
        }
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<RequestDocument, String>,
    ) -> Result<RequestDocument, String> {
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        let document = read(self)?;
        self.depth -= 1;
        Ok(document)
    }

    fn list(&mut self) -> Result<RequestDocument, String> {
        let mut items = Vec::new();
        if self.next_token()? == b']' {
            self.at += 1;
            return Ok(RequestDocument::List(items));
        }
        loop {
            items.push(self.value()?);
            match self.next_token()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(RequestDocument::List(items));
                }
                other => return Err(unexpected(other, "after array element")),
            }
        }
    }

    fn map(&mut self) -> Result<RequestDocument, String> {
        let mut entries = Vec::new();
        if self.next_token()? == b'}' {
            self.at += 1;
            return Ok(RequestDocument::Map(entries));
        }
        loop {
            match self.next_token()? {
                b'"' => {}
                other => return Err(unexpected(other, "looking for beginning of object key string")),
            }
            let name = self.text()?;
            match self.next_token()? {
                b':' => self.at += 1,
                other => return Err(unexpected(other, "after object key")),
            }
            entries.push((name, self.value()?));
            match self.next_token()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(RequestDocument::Map(entries));
                }
                other => return Err(unexpected(other, "after object key:value pair")),
            }
        }
    }

    fn literal(&mut self, word: &str, document: RequestDocument) -> Result<RequestDocument, String> {
        for expected in word.bytes() {
            match self.peek() {
                None => return Err(ended()),
                Some(byte) if byte == expected => self.at += 1,
                Some(byte) => {
                    let expected = char::from(expected);
                    return Err(unexpected(byte, &format!("in literal {word} (expecting '{expected}')")));
                }
            }
        }
        Ok(document)
    }

    fn number(&mut self) -> Result<RequestDocument, String> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let digits = self.text.get(start..self.at).unwrap_or_default();
        Ok(RequestDocument::Number(String::from_utf8_lossy(digits).into_owned()))
    }

    fn digits(&mut self, place: &str) -> Result<(), String> {
        match self.peek() {
            None => return Err(ended()),
            Some(byte) if !byte.is_ascii_digit() => return Err(unexpected(byte, place)),
            Some(_) => {}
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn text(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| byte != b'"' && byte != b'\\' && byte >= b' ') {
                self.at += 1;
            }
            bytes.extend_from_slice(self.text.get(start..self.at).unwrap_or_default());
            match self.peek().ok_or_else(ended)? {
                b'"' => {
                    self.at += 1;
                    return Ok(String::from_utf8(bytes)
                        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()));
                }
                b'\\' => {
                    self.at += 1;
                    let letter = self.escape()?;
                    bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
                other => return Err(unexpected(other, "in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let byte = self.peek().ok_or_else(ended)?;
        self.at += 1;
        Ok(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.hexadecimal()?;
                let Some(letter) = char::from_u32(high) else { return self.surrogates(high) };
                letter
            }
            other => return Err(unexpected(other, "in string escape code")),
        })
    }

    /// A letter in two halves; a half alone is no letter.
    fn surrogates(&mut self, high: u32) -> Result<char, String> {
        let before = self.at;
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(b"\\u")) {
            self.at += 2;
            let low = self.hexadecimal()?;
            if (0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(&low) {
                let letter = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(letter).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = before;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hexadecimal(&mut self) -> Result<u32, String> {
        let mut number = 0;
        for _ in 0..4 {
            let byte = self.peek().ok_or_else(ended)?;
            let digit = char::from(byte).to_digit(16);
            number =
                number * 16 + digit.ok_or_else(|| unexpected(byte, "in \\u hexadecimal character escape"))?;
            self.at += 1;
        }
        Ok(number)
    }
}

fn ended() -> String {
    "unexpected end of JSON input".to_owned()
}

fn unexpected(byte: u8, place: &str) -> String {
    let letter = match byte {
        b'\'' => "\\'".to_owned(),
        b'\\' => "\\\\".to_owned(),
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        0x07 => "\\a".to_owned(),
        0x08 => "\\b".to_owned(),
        0x0b => "\\v".to_owned(),
        0x0c => "\\f".to_owned(),
        0..b' ' | 0x7f => format!("\\x{byte:02x}"),
        // letters that cannot be seen
        0x80..=0xa0 | 0xad => format!("\\u{byte:04x}"),
        _ => char::from(byte).to_string(),
    };
    format!("invalid character '{letter}' {place}")
}
