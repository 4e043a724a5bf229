//! Patterns with `*` for any text and `?` for one character.

use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct ScenarioGlob(String);

impl ScenarioGlob {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Does the whole text fit?
    pub(crate) fn matches(&self, text: &str) -> bool {
        matches_bytes(self.0.as_bytes(), text.as_bytes())
    }
}

/// Goes back to the last `*` only, so the time is at most the product of the lengths.
fn matches_bytes(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(read) {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(one) if *one == b'?' || one == byte => {
                at += 1;
                read += 1;
            }
            _ => match star {
                Some((place, from)) => {
                    star = Some((place, from + 1));
                    at = place + 1;
                    read = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).is_none_or(|rest| rest.iter().all(|byte| *byte == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, fitting: &[&str], others: &[&str]) {
        let glob = ScenarioGlob::new(pattern);
        assert!(fitting.iter().all(|text| glob.matches(text)), "{pattern} fits {fitting:?}");
        assert!(others.iter().all(|text| !glob.matches(text)), "{pattern} does not fit {others:?}");
    }

    #[test]
    fn patterns() {
        check("eu-*", &["eu-", "eu-1"], &["us-1", "e"]);
        check("*", &["", "x"], &[]);
        check("", &[""], &["x"]);
        check("*/pay:*", &["r/pay:1", "a/b/pay:"], &["pay:1", "r/pays:1"]);
        check("a?c*e", &["abce", "abcdee"], &["ace", "abcd"]);
        check("*a*a*a*b", &["aaab"], &["aaaaaaaaaaaaaaaaaaaaaaaac"]);
    }
}
