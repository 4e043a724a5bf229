//! Names of fields as identifiers of CEL.

use std::borrow::Cow;

/// Words of the language: a field of such a name is written `__namespace__`.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The field that an identifier stands for: `foo__dash__bar` is `foo-bar`.
pub(super) fn unescaped(identifier: &str) -> Cow<'_, str> {
    if !identifier.contains("__") {
        return Cow::Borrowed(identifier);
    }
    let is_reserved = |word: &&str| RESERVED.contains(word);
    let inner = identifier.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(word) = inner.filter(is_reserved) {
        return Cow::Borrowed(word);
    }
    let (mut name, mut rest) = (String::new(), identifier);
    while let Some((before, after)) = rest.split_once("__") {
        name.push_str(before);
        let escape = [("underscores", "__"), ("dot", "."), ("dash", "-"), ("slash", "/")]
            .into_iter()
            .find_map(|(word, text)| Some((text, after.strip_prefix(word)?.strip_prefix("__")?)));
        // Anything else cannot be written so, and names no field.
        let (text, after) = escape.unwrap_or(("__", after));
        name.push_str(text);
        rest = after;
    }
    name.push_str(rest);
    Cow::Owned(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names_are_read() {
        for (identifier, name) in [
            ("plain", "plain"),
            ("snake_case", "snake_case"),
            ("__namespace__", "namespace"),
            ("foo__dash__bar", "foo-bar"),
            ("a__dot__b__slash__c", "a.b/c"),
            ("x__underscores__y", "x__y"),
            ("x____y", "x____y"),
        ] {
            assert_eq!(unescaped(identifier), name);
        }
    }
}
