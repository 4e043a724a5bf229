//! Parses label selectors, with the server's error messages.

use std::collections::BTreeSet;

use super::requirement::SelectorRequirement;

type SyntaxMessage = String;

#[derive(Debug, Clone, PartialEq, Eq)]
enum SelectorToken {
    Open,
    Close,
    Comma,
    Not,
    Equal,
    NotEqual,
    Greater,
    Less,
    In,
    NotIn,
    Word,
    /// A run of symbols that means nothing.
    Nonsense,
    End,
}

/// Requirements, or why the text is none.
pub(super) fn parse(text: &str) -> Result<Vec<SelectorRequirement>, SyntaxMessage> {
    let mut reader = SelectorReader { tokens: tokens(text), at: 0 };
    let mut requirements = Vec::new();
    loop {
        match reader.peek_word() {
            (SelectorToken::Word | SelectorToken::Not, _) => {
                let requirement =
                    reader.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
                requirements.push(requirement);
                match reader.next_token() {
                    (SelectorToken::End, _) => return Ok(requirements),
                    (SelectorToken::Comma, _) => match reader.peek_word() {
                        (SelectorToken::Word | SelectorToken::Not, _) => {}
                        (_, found) => return Err(format!("found '{found}', expected: identifier after ','")),
                    },
                    (_, found) => return Err(format!("found '{found}', expected: ',' or 'end of string'")),
                }
            }
            (SelectorToken::End, _) => return Ok(requirements),
            (_, found) => {
                return Err(format!("found '{found}', expected: !, identifier, or 'end of string'"));
            }
        }
    }
}

fn symbol(text: &str) -> Option<SelectorToken> {
    Some(match text {
        "(" => SelectorToken::Open,
        ")" => SelectorToken::Close,
        "," => SelectorToken::Comma,
        "!" => SelectorToken::Not,
        "=" | "==" => SelectorToken::Equal,
        "!=" => SelectorToken::NotEqual,
        ">" => SelectorToken::Greater,
        "<" => SelectorToken::Less,
        _ => return None,
    })
}

fn tokens(text: &str) -> Vec<(SelectorToken, String)> {
    let is_symbol = |letter: char| "=!(),><".contains(letter);
    let is_blank = |letter: char| " \t\r\n".contains(letter);
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches(is_blank);
    while let Some(first) = rest.chars().next().filter(|first| *first != '\0') {
        let (token, length) = if is_symbol(first) {
            // of a run of symbols the longest that means something
            match rest.get(..2).and_then(symbol) {
                Some(token) => (token, 2),
                None => (symbol(&rest[..1]).unwrap_or(SelectorToken::Nonsense), 1),
            }
        } else {
            let end = rest.find(|letter| is_symbol(letter) || is_blank(letter)).unwrap_or(rest.len());
            match &rest[..end] {
                "in" => (SelectorToken::In, end),
                "notin" => (SelectorToken::NotIn, end),
                _ => (SelectorToken::Word, end),
            }
        };
        found.push((token, rest[..length].to_owned()));
        rest = rest[length..].trim_start_matches(is_blank);
    }
    found.push((SelectorToken::End, String::new()));
    found
}

struct SelectorReader {
    tokens: Vec<(SelectorToken, String)>,
    at: usize,
}

impl SelectorReader {
    /// The next token as it is.
    fn peek_operator(&self) -> (SelectorToken, String) {
        self.tokens.get(self.at).cloned().unwrap_or((SelectorToken::End, String::new()))
    }

    /// The next token where `in` and `notin` are words like others.
    fn peek_word(&self) -> (SelectorToken, String) {
        match self.peek_operator() {
            (SelectorToken::In | SelectorToken::NotIn, text) => (SelectorToken::Word, text),
            other => other,
        }
    }

    fn next_token(&mut self) -> (SelectorToken, String) {
        let token = self.peek_word();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<SelectorRequirement, SyntaxMessage> {
        let (mut token, mut key) = self.next_token();
        let negated = token == SelectorToken::Not;
        if negated {
            (token, key) = self.next_token();
        }
        if token != SelectorToken::Word {
            return Err(format!("found '{key}', expected: identifier"));
        }
        check_key(&key)?;
        if negated {
            return Ok(SelectorRequirement::Missing(key));
        }
        if matches!(self.peek_word().0, SelectorToken::End | SelectorToken::Comma) {
            return Ok(SelectorRequirement::Exists(key));
        }
        let (operator, found) = self.peek_operator();
        self.at += 1;
        let values = match operator {
            SelectorToken::In | SelectorToken::NotIn => self.values()?,
            SelectorToken::Equal | SelectorToken::NotEqual | SelectorToken::Greater | SelectorToken::Less => {
                vec![self.value()?]
            }
            _ => return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        if matches!(operator, SelectorToken::Greater | SelectorToken::Less) {
            return numeric_requirement(key, operator == SelectorToken::Greater, &values);
        }
        for (at, value) in values.iter().enumerate() {
            check_value(&key, at, value)?;
        }
        match operator {
            SelectorToken::In | SelectorToken::Equal => Ok(SelectorRequirement::In(key, values)),
            _ => Ok(SelectorRequirement::NotIn(key, values)),
        }
    }

    fn value(&mut self) -> Result<String, SyntaxMessage> {
        if matches!(self.peek_word().0, SelectorToken::End | SelectorToken::Comma) {
            return Ok(String::new());
        }
        match self.next_token() {
            (SelectorToken::Word, text) => Ok(text),
            (_, found) => Err(format!("found '{found}', expected: identifier")),
        }
    }

    /// `(a, b)`: sorted, each once, perhaps empty ones among them.
    fn values(&mut self) -> Result<Vec<String>, SyntaxMessage> {
        match self.next_token() {
            (SelectorToken::Open, _) => {}
            (_, found) => return Err(format!("found '{found}' expected: '('")),
        }
        let mut values = BTreeSet::new();
        match self.peek_word() {
            (SelectorToken::Word | SelectorToken::Comma, _) => {}
            (SelectorToken::Close, _) => {
                self.at += 1;
                return Ok(vec![String::new()]);
            }
            (_, found) => return Err(format!("found '{found}', expected: ',', ')' or identifier")),
        }
        loop {
            match self.next_token() {
                (SelectorToken::Word, text) => {
                    values.insert(text);
                    match self.peek_word() {
                        (SelectorToken::Comma, _) => {}
                        (SelectorToken::Close, _) => break,
                        (_, found) => return Err(format!("found '{found}', expected: ',' or ')'")),
                    }
                }
                (SelectorToken::Comma, _) => {
                    let next = self.peek_word().0;
                    if values.is_empty() || matches!(next, SelectorToken::Close | SelectorToken::Comma) {
                        values.insert(String::new());
                    }
                    if next == SelectorToken::Close {
                        break;
                    }
                }
                (_, found) => return Err(format!("found '{found}', expected: ',', or identifier")),
            }
        }
        self.at += 1;
        Ok(values.into_iter().collect())
    }
}

fn numeric_requirement(
    key: String,
    is_greater: bool,
    values: &[String],
) -> Result<SelectorRequirement, SyntaxMessage> {
    let value = values.first().map_or("", String::as_str);
    let bound: i64 = value.parse().map_err(|_| {
        format!("values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer")
    })?;
    Ok(if is_greater {
        SelectorRequirement::Above(key, bound)
    } else {
        SelectorRequirement::Below(key, bound)
    })
}

const LONGEST: usize = 63;

fn is_framed(text: &str, outer: impl Fn(char) -> bool) -> bool {
    let inner = |letter: char| outer(letter) || "-_.".contains(letter);
    text.starts_with(&outer) && text.ends_with(&outer) && text.chars().all(inner)
}

fn check_key(key: &str) -> Result<(), SyntaxMessage> {
    const FORM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const PREFIX: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let mut wrong: Vec<String> = Vec::new();
    let name = match key.split_once('/') {
        Some((_, name)) if name.contains('/') => {
            wrong.push(format!(
                "a valid label key {FORM} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
            None
        }
        Some((prefix, name)) => {
            let is_low = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
            let is_label = |part: &str| is_framed(part, is_low) && !part.contains(['_', '.']);
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else if !prefix.split('.').all(is_label) {
                wrong.push(PREFIX.to_owned());
            }
            Some(name)
        }
        None => Some(key),
    };
    if let Some(name) = name {
        if name.is_empty() {
            wrong.push("name part must be non-empty".to_owned());
        } else if name.len() > LONGEST {
            wrong.push(format!("name part must be no more than {LONGEST} bytes"));
        }
        if !is_framed(name, |letter| letter.is_ascii_alphanumeric()) {
            wrong.push(format!("name part {FORM}"));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("<nil>: Invalid value: {key:?}: {}", wrong.join("; ")))
    }
}

fn check_value(key: &str, at: usize, value: &str) -> Result<(), SyntaxMessage> {
    const FORM: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let why = if value.len() > LONGEST {
        format!("must be no more than {LONGEST} bytes")
    } else if value.is_empty() || is_framed(value, |letter| letter.is_ascii_alphanumeric()) {
        return Ok(());
    } else {
        FORM.to_owned()
    };
    Err(format!("values[{at}][{key}]: Invalid value: {value:?}: {why}"))
}
