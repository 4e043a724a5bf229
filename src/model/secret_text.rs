//! Lines of a text that may hold values of a Secret, as they are shown: without the values.

/// Lines that say nothing of values.
const KEPT: [&str; 3] = ["kind: Secret", "apiVersion: v1", "---"];

/// Whether a text may have a Secret in it, in whatever style it is written: anchors, tags and texts over several lines are not
/// followed, and letters that are written by their numbers may be any. What only looks so shows its keys alone.
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
    // How deep the last line with a value is: what is deeper goes on with the value, as in a block text.
    let mut value = None;
    let shown = |line: &str| {
        let depth = line.len() - line.trim_start().len();
        if line.len() == depth || value.is_some_and(|value| depth > value) {
            return without_values(line);
        }
        if !line[depth..].starts_with('#') {
            value = depth_of_value(line);
        }
        let kept = end_of_key(line).unwrap_or(0);
        if KEPT.contains(&line.trim()) {
            line.to_owned()
        } else {
            line[..kept].to_owned() + &hidden(&line[kept..])
        }
    };
    text.lines().map(shown).collect()
}

/// One line of such a text, without the others: what looks like a key in it may be a part of a longer value.
pub fn without_values(line: &str) -> String {
    if KEPT.contains(&line.trim()) { line.to_owned() } else { hidden(line) }
}

fn hidden(text: &str) -> String {
    text.chars().map(|letter| if letter.is_whitespace() { letter } else { '*' }).collect()
}

/// A colon within a word ends no key.
fn end_of_key(line: &str) -> Option<usize> {
    let end = line.find(':')? + 1;
    let rest = &line[end..];
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some(end)
}

/// How deep the key or the item of a line is, where more stands behind it than what begins a map or a list.
fn depth_of_value(line: &str) -> Option<usize> {
    let begins_more =
        |text: &str| matches!(text.trim(), "" | "{" | "[" | "-" | "---") || text.trim().starts_with('#');
    match end_of_key(line) {
        Some(end) if begins_more(&line[end..]) => None,
        // A key behind the dash of an item has its neighbours below it.
        Some(_) => line.find(|letter: char| !letter.is_whitespace() && letter != '-'),
        None if begins_more(line) => None,
        None => Some(line.len() - line.trim_start().len()),
    }
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
        for opened in ["key: |", "key: >-  # of it", "\"key\": |2", "key: !!str |", "key: \"a", "key: a"] {
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

    #[test]
    fn line_alone_is_hidden() {
        assert_eq!(without_values("hun: ter2"), "**** ****");
        assert_eq!(without_values("kind: Secret"), "kind: Secret");
    }
}
