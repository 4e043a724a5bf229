//! Parses label selectors, with the server's error messages.

use std::collections::BTreeSet;

use super::label::Requirement;

type Wrong = String;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
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
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, Wrong> {
    let mut reader = Reader { tokens: tokens(text), at: 0 };
    let mut requirements = Vec::new();
    loop {
        match reader.look() {
            (Token::Word | Token::Not, _) => {
                let requirement =
                    reader.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
                requirements.push(requirement);
                match reader.take() {
                    (Token::End, _) => return Ok(requirements),
                    (Token::Comma, _) => match reader.look() {
                        (Token::Word | Token::Not, _) => {}
                        (_, found) => return Err(format!("found '{found}', expected: identifier after ','")),
                    },
                    (_, found) => return Err(format!("found '{found}', expected: ',' or 'end of string'")),
                }
            }
            (Token::End, _) => return Ok(requirements),
            (_, found) => {
                return Err(format!("found '{found}', expected: !, identifier, or 'end of string'"));
            }
        }
    }
}

fn symbol(text: &str) -> Option<Token> {
    Some(match text {
        "(" => Token::Open,
        ")" => Token::Close,
        "," => Token::Comma,
        "!" => Token::Not,
        "=" | "==" => Token::Equal,
        "!=" => Token::NotEqual,
        ">" => Token::Greater,
        "<" => Token::Less,
        _ => return None,
    })
}

fn tokens(text: &str) -> Vec<(Token, String)> {
    let is_symbol = |letter: char| "=!(),><".contains(letter);
    let is_blank = |letter: char| " \t\r\n".contains(letter);
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches(is_blank);
    while let Some(first) = rest.chars().next().filter(|first| *first != '\0') {
        let (token, length) = if is_symbol(first) {
            // of a run of symbols the longest that means something
            match rest.get(..2).and_then(symbol) {
                Some(token) => (token, 2),
                None => (symbol(&rest[..1]).unwrap_or(Token::Nonsense), 1),
            }
        } else {
            let end = rest.find(|letter| is_symbol(letter) || is_blank(letter)).unwrap_or(rest.len());
            match &rest[..end] {
                "in" => (Token::In, end),
                "notin" => (Token::NotIn, end),
                _ => (Token::Word, end),
            }
        };
        found.push((token, rest[..length].to_owned()));
        rest = rest[length..].trim_start_matches(is_blank);
    }
    found.push((Token::End, String::new()));
    found
}

struct Reader {
    tokens: Vec<(Token, String)>,
    at: usize,
}

impl Reader {
    /// The next token as it is.
    fn operator(&self) -> (Token, String) {
        self.tokens.get(self.at).cloned().unwrap_or((Token::End, String::new()))
    }

    /// The next token where `in` and `notin` are words like others.
    fn look(&self) -> (Token, String) {
        match self.operator() {
            (Token::In | Token::NotIn, text) => (Token::Word, text),
            other => other,
        }
    }

    fn take(&mut self) -> (Token, String) {
        let token = self.look();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, Wrong> {
        let (mut token, mut key) = self.take();
        let negated = token == Token::Not;
        if negated {
            (token, key) = self.take();
        }
        if token != Token::Word {
            return Err(format!("found '{key}', expected: identifier"));
        }
        check_key(&key)?;
        if negated {
            return Ok(Requirement::Missing(key));
        }
        if matches!(self.look().0, Token::End | Token::Comma) {
            return Ok(Requirement::Exists(key));
        }
        let (operator, found) = self.operator();
        self.at += 1;
        let values = match operator {
            Token::In | Token::NotIn => self.values()?,
            Token::Equal | Token::NotEqual | Token::Greater | Token::Less => vec![self.value()?],
            _ => return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        if matches!(operator, Token::Greater | Token::Less) {
            return compared(key, operator == Token::Greater, &values);
        }
        for (at, value) in values.iter().enumerate() {
            check_value(&key, at, value)?;
        }
        match operator {
            Token::In | Token::Equal => Ok(Requirement::In(key, values)),
            _ => Ok(Requirement::NotIn(key, values)),
        }
    }

    fn value(&mut self) -> Result<String, Wrong> {
        if matches!(self.look().0, Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.take() {
            (Token::Word, text) => Ok(text),
            (_, found) => Err(format!("found '{found}', expected: identifier")),
        }
    }

    /// `(a, b)`: sorted, each once, perhaps empty ones among them.
    fn values(&mut self) -> Result<Vec<String>, Wrong> {
        match self.take() {
            (Token::Open, _) => {}
            (_, found) => return Err(format!("found '{found}' expected: '('")),
        }
        let mut values = BTreeSet::new();
        match self.look() {
            (Token::Word | Token::Comma, _) => {}
            (Token::Close, _) => {
                self.at += 1;
                return Ok(vec![String::new()]);
            }
            (_, found) => return Err(format!("found '{found}', expected: ',', ')' or identifier")),
        }
        loop {
            match self.take() {
                (Token::Word, text) => {
                    values.insert(text);
                    match self.look() {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => break,
                        (_, found) => return Err(format!("found '{found}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    let next = self.look().0;
                    if values.is_empty() || matches!(next, Token::Close | Token::Comma) {
                        values.insert(String::new());
                    }
                    if next == Token::Close {
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

fn compared(key: String, is_greater: bool, values: &[String]) -> Result<Requirement, Wrong> {
    let value = values.first().map_or("", String::as_str);
    let bound: i64 = value.parse().map_err(|_| {
        format!("values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer")
    })?;
    Ok(if is_greater { Requirement::Above(key, bound) } else { Requirement::Below(key, bound) })
}

const LONGEST: usize = 63;

fn is_framed(text: &str, outer: impl Fn(char) -> bool) -> bool {
    let inner = |letter: char| outer(letter) || "-_.".contains(letter);
    text.starts_with(&outer) && text.ends_with(&outer) && text.chars().all(inner)
}

fn check_key(key: &str) -> Result<(), Wrong> {
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

fn check_value(key: &str, at: usize, value: &str) -> Result<(), Wrong> {
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
