//! Masks the lines of a YAML text that may contain a Secret: keys stay, values are hidden.

use std::ops::Range;

/// Lines that say nothing of values.
const SHOWN_LINES: [&str; 3] = ["kind: Secret", "apiVersion: v1", "---"];

/// Whether a text may contain a Secret, in any YAML style. Anchors, tags, texts over several lines and escaped letters are not resolved,
/// so some other texts match too; they show only their keys.
pub fn has_secret(text: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-' | '.' | '/');
    let is_word = |(at, word): (usize, &str)| {
        let rest = &text[at + word.len()..];
        let rest = rest.strip_prefix("List").unwrap_or(rest);
        !text[..at].ends_with(is_part) && !rest.starts_with(is_part)
    };
    // A text in quotes may be broken in mid-word.
    let is_broken_word = |(at, _): (usize, &str)| {
        let line = text[..at].trim_end_matches('\\');
        ["S", "Se", "Sec", "Secr", "Secre"].iter().any(|start| line.ends_with(start))
    };
    text.match_indices("Secret").any(is_word)
        || ["\\x", "\\u", "\\U"].iter().any(|number| text.contains(number))
        || text.match_indices(['\n', '\r']).filter(|(at, _)| text[..*at].ends_with('\\')).any(is_broken_word)
}

/// The lines of such a text, as wide as they are, with their keys alone.
pub fn lines_without_values(text: &str) -> Vec<String> {
    let mut reader = SecretTextMasker::default();
    text.lines().map(|line| reader.mask_line(line)).collect()
}

/// The YAML state between lines, which decides whether a line begins with a key or continues a value. In doubt it is no key.
#[derive(Debug, Default)]
struct SecretTextMasker {
    /// The quote that is open.
    quote: Option<char>,
    /// How many brackets and braces are open.
    brackets: usize,
    /// A key or a value may begin here.
    is_start: bool,
    /// How deep the last key is, or the last dash without more behind it: deeper is what belongs to it.
    key_depth: Option<usize>,
    /// How deep the last key or item with a value is: what is deeper goes on with the value.
    value_depth: Option<usize>,
}

impl SecretTextMasker {
    fn mask_line(&mut self, line: &str) -> String {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        if let Some(rest) = document_start(line) {
            *self = Self { is_start: true, ..Self::default() };
            self.scan(rest);
            return line_without_values(line);
        }
        let is_in_brackets = self.quote.is_none() && self.brackets > 0;
        let is_in_block = self.quote.is_none() && self.brackets == 0;
        if is_in_block && (text.is_empty() || self.value_depth.is_some_and(|value| depth > value)) {
            return line_without_values(line);
        }
        let key = find_key(line).filter(|_| is_in_block || is_in_brackets && self.is_start);
        // Tags of a template are no text of it.
        if is_in_block && !text.starts_with('#') && !text.starts_with("{%") && !text.starts_with("{#") {
            self.begin(line, key.as_ref());
            self.is_start = true;
            self.scan(line);
        } else if !is_in_block {
            self.scan(line);
        }
        let kept = key.map_or(0, |key| key.end);
        if SHOWN_LINES.contains(&line.trim()) {
            line.to_owned()
        } else {
            line[..kept].to_owned() + &mask(&line[kept..])
        }
    }

    /// Records the key or value that a line begins with, for the lines below it.
    fn begin(&mut self, line: &str, key: Option<&Range<usize>>) {
        let text = line.trim();
        let depth = line.len() - line.trim_start().len();
        let begins_more = |text: &str| matches!(text.trim(), "" | "{" | "[") || text.trim().starts_with('#');
        self.value_depth = match key {
            Some(key) => {
                self.key_depth = Some(key.start);
                (!begins_more(&line[key.end..])).then_some(key.start)
            }
            None if text == "-" => {
                self.key_depth = Some(depth);
                None
            }
            None if begins_more(text) => None,
            None if text.starts_with('-') => Some(depth),
            // The value stands below its key, however deep.
            None => Some(self.key_depth.filter(|owner| *owner < depth).unwrap_or(depth)),
        };
    }

    /// Reads on in a line: which quotes and brackets are open behind it.
    fn scan(&mut self, line: &str) {
        let (mut letters, mut before) = (line.chars().peekable(), ' ');
        while let Some(letter) = letters.next() {
            let is_last = letters.peek().is_none_or(|next| next.is_whitespace());
            match (self.quote, letter) {
                (Some('"'), '\\') => _ = letters.next(),
                // Two of them stand for one.
                (Some('\''), '\'') if letters.peek() == Some(&'\'') => _ = letters.next(),
                (Some(quote), _) => {
                    if letter == quote {
                        (self.quote, self.is_start) = (None, false);
                    }
                }
                (None, '#') if before.is_whitespace() => return,
                (None, '"' | '\'') if self.is_start => self.quote = Some(letter),
                (None, '{' | '[') if self.is_start || self.brackets > 0 => {
                    (self.brackets, self.is_start) = (self.brackets + 1, true);
                }
                (None, '}' | ']') if self.brackets > 0 => {
                    (self.brackets, self.is_start) = (self.brackets - 1, false);
                }
                (None, ',') if self.brackets > 0 => self.is_start = true,
                (None, ':') if is_last || self.brackets > 0 => self.is_start = true,
                (None, '-' | '?') if self.is_start && is_last => {}
                // An anchor or a tag stands before its value.
                (None, '&' | '!') if self.is_start => {
                    while letters.next_if(|next| !next.is_whitespace()).is_some() {}
                }
                (None, _) => self.is_start &= letter.is_whitespace(),
            }
            before = letter;
        }
    }
}

/// The text after a document marker, at which every open value ends.
fn document_start(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."))?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some(rest)
}

/// Where the key is that a line begins with, with its colon: one word, or a text in quotes. A colon within a word ends no key.
fn find_key(line: &str) -> Option<Range<usize>> {
    let is_mark = |text: &str| {
        let rest = text.strip_prefix(['-', '#', '{', '?']);
        rest.is_some_and(|rest| text.starts_with(['{', '#']) || rest.starts_with(char::is_whitespace))
    };
    let mut text = line.trim_start();
    while is_mark(text) {
        text = text[1..].trim_start();
    }
    let length = match text.chars().next()? {
        quote @ ('"' | '\'') => {
            text[1..].find([quote, '\\']).filter(|end| text[1 + end..].starts_with(quote))? + 2
        }
        _ => text.find(|it: char| !it.is_alphanumeric() && !"_-./~$@+".contains(it))?,
    };
    let rest = text[length..].strip_prefix(':').filter(|_| length > 0)?;
    let start = line.len() - text.len();
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some(start..start + length + 1)
}

/// One line of such a text, without the others: what looks like a key in it may be a part of a longer value.
pub fn line_without_values(line: &str) -> String {
    if SHOWN_LINES.contains(&line.trim()) { line.to_owned() } else { mask(line) }
}

fn mask(text: &str) -> String {
    text.chars().map(|letter| if letter.is_whitespace() { letter } else { '*' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_secrets_are_known() {
        for text in [
            "kind: Secret\n",
            "a: 1\n---\n kind:   \"Secret\"\n",
            "{\"apiVersion\": \"v1\", \"kind\": \"Secret\"}",
            "items: [{kind: Secret}]",
            "kind: SecretList\nitems:\n- kind: Secret\n",
            "kind: !!str Secret\n",
            "a: &k Secret\nkind: *k\n",
            "kind: >-\n  Secret\n",
            "kind: # c\n  Secret\n",
            r#"kind: "\x53ecret""#,
            r#""k\x69nd": Secret"#,
            r#""\u006bind": "\U00000053\u0065\u0063\u0072\u0065\u0074""#,
            "kind: \"Sec\\\nret\"",
            "name: Secret\n",
        ] {
            assert!(has_secret(text), "{text}");
        }
        for text in [
            "kind: ConfigMap\n",
            "kind: SecretStore\n",
            "imagePullSecrets: []",
            "secretRef: {}",
            "a: |\n  x \\\n  y",
        ] {
            assert!(!has_secret(text), "{text}");
        }
    }

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(lines_without_values(text), expected, "{text}");
    }

    #[test]
    fn values_are_hidden_and_names_are_not() {
        check("  password: hunter2", &["  password: *******"]);
        check("  - token: é x", &["  - token: * *"]);
        check("    hunter2", &["    *******"]);
        check("{\"kind\": \"Secret\", \"data\": {}}", &["{\"kind\": ********* ******* ***"]);
        check("# password: hunter2", &["# password: *******"]);
        check("kind: Secret\nstringData:\n  a: b\n---\n", &["kind: Secret", "stringData:", "  a: *", "---"]);
        check("", &[]);
        check("data: # of it\n  a: b\n\n  c: d", &["data: * ** **", "  a: *", "", "  c: *"]);
        let json = "{\n  \"data\": {\n    \"a\": \"b\",\n    \"c\": \"d\"\n  }\n}";
        check(json, &["*", "  \"data\": *", "    \"a\": ****", "    \"c\": ***", "  *", "*"]);
    }

    #[test]
    fn colon_within_a_word_ends_no_key() {
        check("  hun:ter2", &["  ********"]);
        check("  hun:ter2: x", &["  ********* *"]);
        check("{\"data\":{\"a\":\"b: c\"}}", &["**************** ****"]);
    }

    #[test]
    fn rest_of_a_longer_value_is_hidden() {
        for opened in ["key: |", "key: >-  # of it", "\"key\": |2", "key: !!str |", "key: a", "key: it's \"a"]
        {
            let lines =
                lines_without_values(&format!("  {opened}\n    hun: ter2\n\n  # c\n   hun:\n  next: a"));
            assert_eq!(lines[1..], ["    **** ****", "", "  * *", "   ****", "  next: *"], "{opened}");
        }
        check(
            "- |\n hun: ter2\n- a: |\n    hun:\n  b: c",
            &["* *", " **** ****", "- a: *", "    ****", "  b: *"],
        );
        check("\"a\n hun: ter2\"", &["**", " **** *****"]);
    }

    /// All of these are one value to a reader of YAML, or none can tell where a value ends.
    #[test]
    fn nothing_within_a_value_is_a_key() {
        for value in [
            // Texts in quotes go on at any depth.
            "a: \"x\nhunter: 2\"",
            "a: 'x ''\nhunter: 2'",
            "a: \"x \\\" \\\\\nhunter: 2\"",
            "a: !!str \"x\nhunter: 2\"",
            "a: &b 'x\n\nhunter: 2'",
            "- \"x\nhunter: 2\"",
            "- - 'x\nhunter: 2'",
            "a: [\"x' y\", 'z\nhunter: 2']",
            "--- \"x\nhunter: 2\"",
            "a: # it's\n  'x\nhunter: 2'",
            // The value of a key stands below it, and is less deep in its next line.
            "a:\n      |\n  hunter: 2",
            "-\n      |\n  hunter: 2",
            "a:\n      x\n  hunter: 2",
            "a:\n  \"x y: hunter\"",
            "a:\n  'hunter: 2'",
            // Quotes in a text are of the text.
            "a: |\n  \"\nb: \"x\nhunter: 2\"",
            "a: x \"\nb: \"x\nhunter: 2\"",
            "a: x\n  \"y\nb: \"x\nhunter: 2\"",
            "# \"\nb: \"x\nhunter: 2\"",
            "{% if a == \"x %}\nb: \"x\nhunter: 2\"",
            // A word in brackets may go on in the next line.
            "a: {b: x\nhunter: 2}",
            "a: [x\nhunter: 2]",
            "[hunter, a: b]",
            "- {hunter, a: b}",
            "x hunter: 2",
        ] {
            let lines = lines_without_values(value).join("\n");
            assert!(!lines.contains("hunter"), "{value}\n{lines}");
        }
    }

    #[test]
    fn keys_behind_a_value_are_shown() {
        for text in [
            "a: \"x\n  y\"\nnext: z",
            "a: 'it''s'\nnext: z",
            "a: it's\nnext: z",
            "a: |\n  don't \"\nnext: z",
            "a: {b: \"x\",\nnext: z}",
            "a: [\n  x\n]\nnext: z",
            "a: \"x\n---\nnext: z",
            "a: \"{{ x }}\"\nnext: z",
            "a: {{ x[\"y\"] | default('z') }}\nnext: z",
            "a:\n  {% if x %}\n  next: z",
            "a:\n- b\n- next: z",
        ] {
            let lines = lines_without_values(text);
            assert!(
                lines.last().is_some_and(|line| line.contains("next: *")),
                "{text}\n{}",
                lines.join("\n")
            );
        }
    }

    #[test]
    fn line_alone_is_hidden() {
        assert_eq!(line_without_values("hun: ter2"), "**** ****");
        assert_eq!(line_without_values("kind: Secret"), "kind: Secret");
    }
}
