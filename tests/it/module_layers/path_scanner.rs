//! Finds the paths that a Rust file names. It reads tokens and knows comments, texts and
//! the braces of `use`; it is not a parser.

use std::collections::BTreeSet;

/// One path; `crate::{a, b::c}` gives two.
pub struct NamedPath {
    pub path: Vec<String>,
    /// Counted from 1.
    pub line: u32,
    /// In `mod tests` at the end of a file, or in a test file.
    pub in_test: bool,
    /// One more `super` leaves the inline module.
    pub in_inline_module: bool,
    /// Named by `use` or `pub use`.
    pub is_use: bool,
    /// Named by `pub use`.
    pub is_export: bool,
}

impl NamedPath {
    /// `text` is a path; whole parts are compared.
    pub fn starts_with(&self, text: &str) -> bool {
        let wanted: Vec<&str> = text.split("::").collect();
        self.path.len() >= wanted.len() && self.path.iter().zip(wanted).all(|(one, other)| one == other)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    /// `::`
    Separator,
    Other(char),
}

/// All paths with more than one part, and the single names of `use`.
pub fn named_paths(text: &str, file: &str) -> Vec<NamedPath> {
    let tokens = tokens(text);
    let test_file = file.ends_with("/tests.rs") || file.contains("/tests/");
    let inline_from = inline_test_module(text);
    let mut reader = PathReader::new(&tokens);
    reader.read();
    for name in &mut reader.found {
        name.in_inline_module = inline_from.is_some_and(|from| name.line > from);
        name.in_test = test_file || name.in_inline_module;
    }
    reader.found
}

/// The names that the code of a file uses, without those of `use`, of definitions and of members.
pub fn used_names(text: &str) -> BTreeSet<String> {
    let before_test = inline_test_module(text).map_or(usize::MAX, |line| line as usize);
    let code: Vec<&str> = text.lines().take(before_test).collect();
    let tokens = tokens(&code.join("\n"));
    let mut reader = PathReader::new(&tokens);
    reader.read();
    reader.names
}

/// The line of `#[cfg(test)]` before an inline module, which reaches to the end by house rule.
fn inline_test_module(text: &str) -> Option<u32> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let starts =
        |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    let index = lines.windows(2).position(starts)?;
    u32::try_from(index + 1).ok()
}

struct PathReader<'a> {
    tokens: &'a [(Token, u32)],
    position: usize,
    in_use: bool,
    in_export: bool,
    found: Vec<NamedPath>,
    names: BTreeSet<String>,
}

impl<'a> PathReader<'a> {
    fn new(tokens: &'a [(Token, u32)]) -> Self {
        let (found, names) = (Vec::new(), BTreeSet::new());
        Self { tokens, position: 0, in_use: false, in_export: false, found, names }
    }

    fn read(&mut self) {
        while self.position < self.tokens.len() {
            match self.peek() {
                Some(Token::Word(word)) if word == "use" => {
                    (self.in_use, self.in_export) = (true, self.is_after_pub());
                    self.position += 1;
                    self.skip_leading_separator();
                    self.read_use_tree(&[]);
                    (self.in_use, self.in_export) = (false, false);
                }
                // `pub(in crate::x)` limits who sees an item; it takes nothing from there.
                Some(Token::Word(word)) if word == "in" && self.is_in_visibility() => {
                    while self.peek().is_some_and(|token| *token != Token::Other(')')) {
                        self.position += 1;
                    }
                }
                Some(Token::Word(_)) => self.read_path(),
                _ => self.position += 1,
            }
        }
    }

    /// After `pub(`.
    fn is_in_visibility(&self) -> bool {
        let before = self.tokens[..self.position].iter().rev().map(|(token, _)| token).take(2);
        before.eq([&Token::Other('('), &Token::Word("pub".to_owned())])
    }

    fn add(&mut self, path: Vec<String>, line: u32) {
        let (is_use, is_export) = (self.in_use, self.in_export);
        self.found.push(NamedPath { path, line, in_test: false, in_inline_module: false, is_use, is_export });
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.position).map(|(token, _)| token)
    }

    fn next_is(&self, token: &Token) -> bool {
        self.peek() == Some(token)
    }

    /// After `pub` or `pub(…)`.
    fn is_after_pub(&self) -> bool {
        let before = self.tokens[..self.position].iter().rev().map(|(token, _)| token);
        let mut before = before.peekable();
        if before.next_if(|token| **token == Token::Other(')')).is_some() {
            let in_parentheses = |token: &&Token| matches!(token, Token::Word(_) | Token::Separator);
            while before.next_if(in_parentheses).is_some() {}
            before.next();
        }
        before.next() == Some(&Token::Word("pub".to_owned()))
    }

    /// `use ::tokio::…`
    fn skip_leading_separator(&mut self) {
        if self.next_is(&Token::Separator) {
            self.position += 1;
        }
    }

    /// A path in code: only one with several parts can name a module or a library.
    fn read_path(&mut self) {
        let line = self.tokens[self.position].1;
        let before = self.position.checked_sub(1).map(|at| &self.tokens[at].0);
        let is_definition =
            |word: &str| matches!(word, "mod" | "fn" | "struct" | "enum" | "trait" | "type" | "const");
        let is_defined = before.is_some_and(|before| match before {
            Token::Word(word) => is_definition(word),
            before => *before == Token::Other('.'),
        });
        let mut path = Vec::new();
        while let Some(Token::Word(word)) = self.peek() {
            path.push(word.clone());
            self.position += 1;
            if !self.next_is(&Token::Separator) {
                break;
            }
            self.position += 1;
        }
        if !is_defined {
            self.names.extend(path.first().cloned());
        }
        if path.len() > 1 {
            self.add(path, line);
        }
    }

    /// The rest of `use`, or the content of its braces.
    fn read_use_tree(&mut self, prefix: &[String]) {
        let mut path = prefix.to_vec();
        let mut line = self.tokens.get(self.position).map_or(0, |(_, line)| *line);
        while let Some((token, at_line)) = self.tokens.get(self.position).cloned() {
            match token {
                Token::Word(word) if word == "as" => {
                    self.position += 2;
                    break;
                }
                Token::Word(word) => {
                    line = at_line;
                    path.push(word);
                    self.position += 1;
                }
                Token::Separator => self.position += 1,
                Token::Other('{') => {
                    self.position += 1;
                    self.read_use_trees(&path);
                    return;
                }
                Token::Other('*') => {
                    self.position += 1;
                    break;
                }
                Token::Other(_) => break,
            }
        }
        if path.len() > prefix.len() || !prefix.is_empty() {
            self.add(path, line);
        }
    }

    fn read_use_trees(&mut self, prefix: &[String]) {
        while let Some(token) = self.peek().cloned() {
            match token {
                Token::Other('}') => {
                    self.position += 1;
                    return;
                }
                Token::Other(',') => self.position += 1,
                Token::Word(_) | Token::Separator | Token::Other('*' | '{') => self.read_use_tree(prefix),
                Token::Other(_) => return,
            }
        }
    }
}

/// Words, `::` and single characters with their lines; without comments, texts and lifetimes.
fn tokens(text: &str) -> Vec<(Token, u32)> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let length = match rest {
            ['/', '/', ..] => rest.iter().take_while(|c| **c != '\n').count(),
            ['/', '*', ..] => block_comment_length(rest),
            ['"', ..] => text_literal_length(rest),
            ['\'', ..] => quote_length(rest),
            [':', ':', ..] => {
                tokens.push((Token::Separator, line));
                2
            }
            [first, ..] if first.is_alphabetic() || *first == '_' => {
                raw_text_length(rest).unwrap_or_else(|| {
                    let word: String =
                        rest.iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
                    let length = word.chars().count();
                    tokens.push((Token::Word(word), line));
                    length
                })
            }
            [first, ..] if first.is_numeric() => {
                rest.iter().take_while(|c| c.is_alphanumeric() || **c == '_').count()
            }
            [first, ..] => {
                if !first.is_whitespace() {
                    tokens.push((Token::Other(*first), line));
                }
                1
            }
            [] => break,
        };
        line += u32::try_from(rest[..length].iter().filter(|c| **c == '\n').count()).unwrap_or(0);
        at += length;
    }
    tokens
}

fn block_comment_length(rest: &[char]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            ['/', '*', ..] => {
                depth += 1;
                at += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length from the opening `"` to the end.
fn text_literal_length(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A character or a lifetime.
fn quote_length(rest: &[char]) -> usize {
    match rest {
        ['\'', '\\', ..] => rest.iter().skip(3).position(|c| *c == '\'').map_or(rest.len(), |end| end + 4),
        ['\'', _, '\'', ..] => 3,
        _ => 1,
    }
}

/// `r"…"`, `r#"…"#`, and their `b` and `c` forms; `None` for any other word.
fn raw_text_length(rest: &[char]) -> Option<usize> {
    let prefix = rest.iter().take_while(|c| matches!(c, 'r' | 'b' | 'c')).count();
    if prefix == 0 || prefix > 2 || rest[prefix - 1] != 'r' {
        return None;
    }
    let hashes = rest[prefix..].iter().take_while(|c| **c == '#').count();
    if rest.get(prefix + hashes) != Some(&'"') {
        return None;
    }
    let closing: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let start = prefix + hashes + 1;
    let end = rest[start..].windows(closing.len()).position(|window| window == closing.as_slice());
    Some(end.map_or(rest.len(), |end| start + end + closing.len()))
}
