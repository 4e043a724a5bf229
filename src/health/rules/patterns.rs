//! Bounds the worst case of matching a Lua pattern, before it runs.
//!
//! The interpreter backtracks: it tries every length of a repetition, and for each everything that follows. If the
//! next item cannot begin within the repetition (`%d+-`), only one length continues. Most patterns are of this kind.

use std::iter::Peekable;

/// Sets of longer patterns are not compared.
const LONGEST_COMPARED: usize = 256;
/// Bytes of a set that are compared in the time of a step.
const BYTES_OF_STEP: usize = 8;

/// Steps on a text of so many bytes. Without `is_anchorable` a `^` is literal.
pub fn worst_case_steps(length: usize, pattern: &[u8], is_anchorable: bool) -> u64 {
    let length = whole(length);
    // Ways to split the text among so many repetitions. Every start is tried, like a repetition in front.
    let (mut ways, mut repeats) = (length.saturating_add(1), 1);
    let mut pattern = pattern;
    if let Some(rest) = pattern.strip_prefix(b"^").filter(|_| is_anchorable) {
        (pattern, ways, repeats) = (rest, 1, 0);
    }
    let is_compared = pattern.len() <= LONGEST_COMPARED;
    let mut steps = ways;
    let mut items = PatternItems(pattern).peekable();
    while let Some(item) = items.next() {
        let weight = item.weight();
        let more = ways.saturating_mul(length.saturating_add(repeats + 1)) / (repeats + 1);
        let is_last = items.peek().is_none();
        let taken = match item.times {
            Repetition::Once | Repetition::Test => ways.saturating_mul(weight),
            Repetition::Scan => ways.saturating_mul(length),
            Repetition::End => ways,
            // A failure at the end is tried for every way to get there. A match takes its part of the text and ends
            // the search.
            Repetition::Some if is_last => ways.saturating_add(length).saturating_mul(weight),
            // These cannot fail.
            Repetition::Any | Repetition::Perhaps if is_last => length.saturating_mul(weight),
            Repetition::Any | Repetition::Some | Repetition::Perhaps => {
                let is_repeated = item.times != Repetition::Perhaps;
                let lengths = if is_repeated { more } else { ways.saturating_mul(2) };
                let settled = if is_compared { settled(&item, &mut items, &mut steps) } else { None };
                if settled.is_none() {
                    (ways, repeats) = (lengths, repeats + u64::from(is_repeated));
                }
                lengths.saturating_mul(weight + settled.unwrap_or(0))
            }
        };
        steps = steps.saturating_add(taken);
    }
    steps
}

/// If the next item cannot start with a byte of this one, only one length continues, though it is tried after each.
/// Returns the extra steps of each try; `None` if more than one length may continue.
fn settled<'p>(
    item: &PatternItem<'p>,
    items: &mut Peekable<impl Iterator<Item = PatternItem<'p>>>,
    steps: &mut u64,
) -> Option<u64> {
    let next = items.peek()?;
    let is_settled = match next.times {
        Repetition::End => true,
        Repetition::Once | Repetition::Some => {
            *steps = steps.saturating_add(256 * (item.weight() + next.weight()));
            (0..=u8::MAX).all(|byte| !(holds(item.single, byte) && holds(next.single, byte)))
        }
        Repetition::Any | Repetition::Perhaps | Repetition::Scan | Repetition::Test => false,
    };
    is_settled.then(|| next.weight().saturating_sub(1))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Repetition {
    Once,
    /// `?`
    Perhaps,
    /// `*`, `-`
    Any,
    /// `+`
    Some,
    /// `%b()`, `%1`: it may read any length.
    Scan,
    /// `%f[set]`: it consumes nothing.
    Test,
    /// `$`
    End,
}

struct PatternItem<'p> {
    /// A byte, `.`, a class or a set.
    single: &'p [u8],
    times: Repetition,
}

impl PatternItem<'_> {
    fn weight(&self) -> u64 {
        whole(1 + self.single.len() / BYTES_OF_STEP)
    }
}

struct PatternItems<'p>(&'p [u8]);

impl<'p> Iterator for PatternItems<'p> {
    type Item = PatternItem<'p>;

    fn next(&mut self) -> Option<PatternItem<'p>> {
        while let [b'(' | b')', rest @ ..] = self.0 {
            self.0 = rest;
        }
        let length = match self.0 {
            [] => return None,
            [b'$'] => return Some(self.take(1, 0, Repetition::End)),
            [b'%', b'b', ..] => return Some(self.take(4, 0, Repetition::Scan)),
            [b'%', b'f', set @ ..] => return Some(self.take(2 + single(set), 0, Repetition::Test)),
            [b'%', b'0'..=b'9', ..] => return Some(self.take(2, 0, Repetition::Scan)),
            pattern => single(pattern),
        };
        let times = match self.0.get(length) {
            Some(b'?') => Repetition::Perhaps,
            Some(b'*' | b'-') => Repetition::Any,
            Some(b'+') => Repetition::Some,
            _ => return Some(self.take(length, 0, Repetition::Once)),
        };
        Some(self.take(length, 1, times))
    }
}

impl<'p> PatternItems<'p> {
    fn take(&mut self, length: usize, suffix: usize, times: Repetition) -> PatternItem<'p> {
        let (single, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest.get(suffix..).unwrap_or_default();
        PatternItem { single, times }
    }
}

/// How many bytes of the pattern stand for one of the text.
fn single(pattern: &[u8]) -> usize {
    match pattern {
        [b'%', ..] => 2,
        [b'[', rest @ ..] => {
            // The first byte of a set is literal.
            let mut at = if rest.first() == Some(&b'^') { 2 } else { 1 };
            loop {
                at += if pattern.get(at) == Some(&b'%') { 2 } else { 1 };
                match pattern.get(at) {
                    Some(b']') => return at + 1,
                    Some(_) => {}
                    None => return pattern.len(),
                }
            }
        }
        _ => 1,
    }
}

fn holds(single: &[u8], byte: u8) -> bool {
    match single {
        [b'.'] => true,
        [b'%', class] => is_of(*class, byte),
        [b'[', b'^', inside @ .., b']'] => !is_in(inside, byte),
        [b'[', inside @ .., b']'] => is_in(inside, byte),
        [literal] => *literal == byte,
        // An invalid pattern, which the interpreter reports.
        _ => true,
    }
}

fn is_in(mut inside: &[u8], byte: u8) -> bool {
    let mut found = false;
    while let Some((first, rest)) = inside.split_first() {
        let (is_found, rest) = match (*first, rest) {
            (b'%', [class, rest @ ..]) => (is_of(*class, byte), rest),
            (low, [b'-', high, rest @ ..]) => ((low..=*high).contains(&byte), rest),
            (literal, rest) => (literal == byte, rest),
        };
        found |= is_found;
        inside = rest;
    }
    found
}

fn is_of(class: u8, byte: u8) -> bool {
    let is_found = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'g' => byte.is_ascii_graphic(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        // From older versions, and still supported.
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_found != class.is_ascii_uppercase()
}

fn whole(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_items_are_parsed() {
        use Repetition::{Any, End, Once, Perhaps, Scan, Some, Test};
        for (pattern, expected) in [
            ("(%d+)-(%d+)$", &[("%d", Some), ("-", Once), ("%d", Some), ("$", End)][..]),
            (".-.*x?", &[(".", Any), (".", Any), ("x", Perhaps)]),
            ("[%w-]+[^]-]*[%]]-", &[("[%w-]", Some), ("[^]-]", Any), ("[%]]", Any)]),
            ("%-%+*", &[("%-", Once), ("%+", Any)]),
            ("%b()%f[%a]%1$x", &[("%b()", Scan), ("%f[%a]", Test), ("%1", Scan), ("$", Once), ("x", Once)]),
            ("", &[]),
            ("-a", &[("-", Once), ("a", Once)]),
            ("a[b", &[("a", Once), ("[b", Once)]),
        ] {
            let found: Vec<_> = PatternItems(pattern.as_bytes())
                .map(|item| (String::from_utf8_lossy(item.single).into_owned(), item.times))
                .collect();
            let found: Vec<_> = found.iter().map(|(single, times)| (&**single, *times)).collect();
            assert_eq!(found, expected, "{pattern}");
        }
    }

    #[test]
    fn sets_match_their_bytes() {
        for (single, inside, outside) in [
            ("%d", "09", "a-"),
            ("%S", "a", " \u{b}"),
            ("[a-c%d-]", "abc7-", "d%"),
            ("[^,]", "a", ","),
            ("[]x]", "]x", "y"),
            (".", "a\0", ""),
            ("%z", "\0", "z"),
            ("[%Z]", "z", "\0"),
        ] {
            assert!(inside.bytes().all(|byte| holds(single.as_bytes(), byte)), "{single}");
            assert!(!outside.bytes().any(|byte| holds(single.as_bytes(), byte)), "{single}");
        }
    }

    #[test]
    fn usual_patterns_take_little() {
        for (length, pattern, most) in [
            (20, "(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)", 10_000),
            (300, "failed: (.*) at (.*)", 500_000),
            (5000, "ready", 50_000),
            (5000, "[^;]+", 50_000),
            (1000, "^%s*(.-),", 1_500_000),
        ] {
            let steps = worst_case_steps(length, pattern.as_bytes(), true);
            assert!(steps <= most, "{pattern} on {length}: {steps}");
        }
    }

    #[test]
    fn backtracking_patterns_are_expensive() {
        let optional = "a?".repeat(40) + &"a".repeat(40);
        let fails_at_the_end = format!(".-.-[{}]+", "b".repeat(1_000_000));
        let looked_for_often = format!("a+[{}]", "b".repeat(240));
        for (length, pattern) in [
            (5000, ".-.-.-.-b"),
            (100_000, "(a*)(a*)b"),
            (40, &*optional),
            (100_000, "%b()"),
            (10_000, "^(a+)(a+)b"),
            (300, &*fails_at_the_end),
            (9900, &*looked_for_often),
            (1000, "%z+\0%z+\0%z+\0b"),
        ] {
            let steps = worst_case_steps(length, pattern.as_bytes(), true);
            assert!(steps > 45_000_000, "{pattern:.60} on {length}: {steps}");
        }
        assert!(worst_case_steps(10_000, b"^%d+", false) > worst_case_steps(10_000, b"^%d+", true));
    }
}
