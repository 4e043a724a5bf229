//! Masks known secret values in foreign texts, such as container logs.

use std::collections::BTreeSet;
use std::ops::Range;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use secrecy::{ExposeSecret as _, SecretString};

use super::encrypted_values::LONG_VALUE;
use super::{RenderedObject, is_secret_kind};

/// Shorter values are everywhere, and not hidden. Those below [`LONG_VALUE`] are hidden as whole words.
const SHORTEST_VALUE: usize = 4;

/// Takes what the API server takes.
const LENIENT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What was encrypted in objects, and what is in those that are Secrets, line by line: texts are one line. It does not print.
#[derive(Debug, Default)]
pub struct SecretValues {
    lines: Vec<SecretString>,
}

impl SecretValues {
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a RenderedObject>) -> Self {
        let mut values = Self::default();
        for object in objects.into_iter().filter(|object| object.holds_secrets()) {
            object
                .encrypted_values
                .iter()
                .flat_map(|sealed| sealed.values())
                .for_each(|value| values.add(value));
            if is_secret_kind(&object.kind.kind) {
                values.add_data(object);
            }
        }
        values
    }

    fn add_data(&mut self, secret: &RenderedObject) {
        let body = secret.body.fields();
        for field in ["data", "stringData"] {
            let entries = body.get(field).and_then(|entries| entries.as_object()).into_iter().flatten();
            for text in entries.filter_map(|(_, value)| value.as_str()) {
                self.add(text);
                // Containers get it decoded.
                let folded: String = text.split(['\r', '\n']).collect();
                if let Some(decoded) = LENIENT_BASE64.decode(folded).ok().filter(|_| field == "data") {
                    // As a log is read: what is no text in it does not hide the rest.
                    self.add(&String::from_utf8_lossy(&decoded));
                }
            }
        }
    }

    fn add(&mut self, value: &str) {
        let lines = value.split(['\n', '\r']).map(str::trim).filter(|line| line.len() >= SHORTEST_VALUE);
        self.lines.extend(lines.map(SecretString::from));
    }

    /// `text` with `***` in the place of each. `shown`: what was done to the text to show it is done to the values too.
    /// `is_cut`: the text goes on where it ends.
    pub fn hide(&self, text: &str, is_cut: bool, shown: impl Fn(&str) -> String) -> String {
        let mut hidden = BTreeSet::new();
        for line in &self.lines {
            let value = SecretString::from(shown(line.expose_secret()));
            for place in occurrences(text, value.expose_secret(), is_cut) {
                hidden.insert((place.start, place.end));
            }
        }
        let (mut told, mut from) = (String::new(), 0);
        for (start, end) in hidden {
            // Overlapping values are masked together.
            if start >= from {
                told.push_str(text.get(from..start).unwrap_or_default());
                told.push_str("***");
            }
            from = from.max(end);
        }
        told.push_str(text.get(from..).unwrap_or_default());
        told
    }
}

/// Where a value stands in a text.
fn occurrences(text: &str, value: &str, is_cut: bool) -> Vec<Range<usize>> {
    let is_long = value.len() >= LONG_VALUE;
    if value.len() < SHORTEST_VALUE {
        return Vec::new();
    }
    let all = text.match_indices(value).map(|(start, found)| start..start + found.len());
    let mut places: Vec<Range<usize>> = all.filter(|place| is_long || is_word(text, place)).collect();
    if is_long && text.len() >= LONG_VALUE {
        // A line that was too long was broken somewhere, perhaps within a value.
        if value.contains(text) {
            places.push(0..text.len());
        }
        let mut ends =
            value.char_indices().map(|(at, _)| value.len() - at).take_while(|left| *left >= LONG_VALUE);
        if let Some(left) =
            ends.find(|left| value.get(value.len() - left..).is_some_and(|it| text.starts_with(it)))
        {
            places.push(0..left);
        }
        let mut begins = value.char_indices().map(|(at, _)| at).rev().take_while(|at| *at >= LONG_VALUE);
        let begin = begins.find(|at| value.get(..*at).is_some_and(|it| text.ends_with(it)));
        if let Some(length) = begin.filter(|_| is_cut) {
            places.push(text.len() - length..text.len());
        }
    }
    places
}

fn is_word(text: &str, place: &Range<usize>) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let before = text.get(..place.start).and_then(|before| before.chars().next_back());
    let after = text.get(place.end..).and_then(|after| after.chars().next());
    !before.is_some_and(is_part) && !after.is_some_and(is_part)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::EncryptedValues;

    fn object(kind: &str, data: &Value, sealed: &[&str]) -> RenderedObject {
        let body = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "b"}, "data": data});
        let values = sealed.iter().map(|value| ("/data/x".to_owned(), SecretString::from(*value))).collect();
        RenderedObject::for_test(&body, (!sealed.is_empty()).then(|| EncryptedValues::new(b"salt", values)))
    }

    #[track_caller]
    fn check(secret: &[&str], text: &str, expected: &str) {
        let object = object("ConfigMap", &json!({}), secret);
        let told = SecretValues::of([&object]).hide(text, false, str::to_owned);
        assert_eq!(told, expected, "{secret:?}");
    }

    #[test]
    fn values_are_hidden_wherever_they_stand() {
        check(&["hunter22x"], "dial db://me:hunter22x@db: no, hunter22x", "dial db://me:***@db: no, ***");
        check(&["hunter22x"], "no such table", "no such table");
        // Two that overlap, and one within another.
        check(&["one-two-", "two-three", "two-thre"], "is one-two-three", "is ***");
        check(&["one-two-", "three-four"], "one-two-three-four!", "******!");
        // Lines of a longer text.
        check(&["# all\nkey=swordfish\r\n\nx=1\n"], "bad line: key=swordfish", "bad line: ***");
    }

    #[test]
    fn short_values_are_masked_as_words() {
        check(
            &["5432"],
            "dial 10.0.0.1:5432: refused, 54321, x5432, _5432",
            "dial 10.0.0.1:***: refused, 54321, x5432, _5432",
        );
        check(&["off"], "it is off", "it is off");
        check(&[""], "it is off", "it is off");
    }

    #[test]
    fn decoded_secret_data_is_masked() {
        let data = json!({"password": "c3dvcmRmaXNo", "port": "NTQzMg==", "cert": "//79"});
        let told = |kind: &str, text: &str| {
            SecretValues::of([&object(kind, &data, &[])]).hide(text, false, str::to_owned)
        };
        assert_eq!(told("Secret", "swordfish is c3dvcmRmaXNo, at 5432"), "*** is ***, at ***");
        assert_eq!(told("ConfigMap", "swordfish at 5432"), "swordfish at 5432");
        // Folded as `base64` writes it, with bits behind its end, and beside what is no text: the server takes all of them.
        for password in ["c3dv\ncmRm\naXNo\n", "c3dvcmRmaXNoMR==", "6QpzdzByZGZpc2g="] {
            let object = object("Secret", &json!({ "password": password }), &[]);
            let text = "swordfish, swordfish1, sw0rdfish";
            let told = SecretValues::of([&object]).hide(text, false, str::to_owned);
            assert!(told.contains("***"), "{password:?}: {told}");
        }
    }

    #[test]
    fn cut_value_at_the_end_is_hidden() {
        let object = object("ConfigMap", &json!({}), &["0123456789abcdef"]);
        let values = SecretValues::of([&object]);
        let check = |text: &str, is_cut: bool, expected: &str| {
            assert_eq!(values.hide(text, is_cut, str::to_owned), expected);
        };
        check("token 0123456789", true, "token ***");
        check("token 0123456789", false, "token 0123456789");
        check("token 0123", true, "token 0123");
        // The beginning of the line was not told.
        check("89abcdef is bad", false, "*** is bad");
        check("3456789abc", false, "***");
        check("é0123456789", true, "é***");
    }

    #[test]
    fn values_are_looked_for_as_they_are_shown() {
        let object = object("ConfigMap", &json!({}), &["two  words, and\tmore"]);
        let shown = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let told = SecretValues::of([&object]).hide("it is two words, and more", false, shown);
        assert_eq!(told, "it is ***");
        assert!(!format!("{:?}", SecretValues::of([&object])).contains("words"));
    }
}
