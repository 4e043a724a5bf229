//! Values in scenario rules: durations, ranges of durations, fractions.

use std::time::Duration;

use crate::seed::Seed;

/// A time, or two between which one is drawn: `2s`, `1s..3s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DurationRange {
    shortest: Duration,
    longest: Duration,
}

impl DurationRange {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (shortest, longest) = text.split_once("..").unwrap_or((text, text));
        let (shortest, longest) = (duration(shortest.trim())?, duration(longest.trim())?);
        (shortest <= longest).then_some(Self { shortest, longest })
    }

    pub(crate) fn shortest(self) -> Duration {
        self.shortest
    }

    pub(crate) fn draw(self, seed: &mut Seed) -> Duration {
        seed.duration(self.shortest, self.longest)
    }
}

/// A part of all: `1/3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PodShare {
    part: u64,
    of: u64,
}

impl PodShare {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (part, of) = text.split_once('/')?;
        let share = Self { part: part.trim().parse().ok()?, of: of.trim().parse().ok()? };
        (share.of > 0 && share.part <= share.of).then_some(share)
    }

    pub(crate) fn draw(self, seed: &mut Seed) -> bool {
        seed.below(self.of) < self.part
    }
}

/// `500ms`, `2s`, `1m`, at most a week.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let found = match text.get(digits.len()..)? {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.checked_mul(60)?),
        _ => return None,
    };
    (found <= Duration::from_secs(7 * 24 * 3600)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(u64, u64)>) {
        let found =
            DurationRange::parse(text).map(|span| (span.shortest.as_millis(), span.longest.as_millis()));
        assert_eq!(found, expected.map(|(from, to)| (from.into(), to.into())), "{text}");
    }

    #[test]
    fn times() {
        check("500ms", Some((500, 500)));
        check("1s..3s", Some((1000, 3000)));
        check("1s .. 2m", Some((1000, 120_000)));
        check("3s..1s", None);
        check("soon", None);
        check("99999999999999999999s", None);
        check("307445734561825861m", None);
    }

    #[test]
    fn shares() {
        assert_eq!(PodShare::parse("1/3"), Some(PodShare { part: 1, of: 3 }));
        assert_eq!(PodShare::parse("0/1"), Some(PodShare { part: 0, of: 1 }));
        assert!(["3", "4/3", "1/0", "-1/2", "a/b"].iter().all(|text| PodShare::parse(text).is_none()));
    }

    #[test]
    fn a_third_is_about_a_third() {
        let share = PodShare { part: 1, of: 3 };
        let struck = (0..3_000).filter(|number| share.draw(&mut Seed::new(*number))).count();
        assert!((900..1_100).contains(&struck), "{struck}");
    }
}
