//! Lines of a text that may hold values of a Secret, as they are shown: without the values.

/// Whether a text has a Secret in it, in whatever style it is written.
pub fn has_secret(text: &str) -> bool {
    text.match_indices("kind").any(|(at, word)| {
        let rest = text[at + word.len()..].trim_start_matches(['"', '\'']).trim_start();
        let value = rest.strip_prefix(':').map(|rest| rest.trim_start().trim_start_matches(['"', '\'']));
        value.is_some_and(|value| {
            value
                .strip_prefix("Secret")
                .is_some_and(|rest| !rest.starts_with(|it: char| it.is_alphanumeric()))
        })
    })
}

/// A line of such a text, as wide as it is: what comes after its first key is hidden, and what has no key.
pub fn without_values(line: &str) -> String {
    if ["kind: Secret", "apiVersion: v1", "---"].contains(&line.trim()) {
        return line.to_owned();
    }
    let kept = line.find(':').map_or(0, |colon| colon + 1);
    let hidden = line[kept..].chars().map(|letter| if letter.is_whitespace() { letter } else { '*' });
    line[..kept].chars().chain(hidden).collect()
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
        ] {
            assert!(has_secret(text), "{text}");
        }
        for text in ["kind: ConfigMap\n", "kind: SecretStore\n", "name: Secret\n", "kinds: Secret"] {
            assert!(!has_secret(text), "{text}");
        }
    }

    #[test]
    fn values_are_hidden_and_names_are_not() {
        let check = |line: &str, expected: &str| assert_eq!(without_values(line), expected);
        check("  password: hunter2", "  password: *******");
        check("  - token: é x", "  - token: * *");
        check("    hunter2", "    *******");
        check("{\"kind\": \"Secret\", \"data\": {}}", "{\"kind\": ********* ******* ***");
        check("# password: hunter2", "# password: *******");
        check("kind: Secret", "kind: Secret");
        check("stringData:", "stringData:");
        check("---", "---");
        check("", "");
    }
}
