//! What a regular expression costs, found from its text.

/// Letters and digits of all the world are hundreds of states.
const OF_A_CLASS: f64 = 10_000.0;

/// In steps of an evaluation: to compile it, and the places in it where a match may be at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    pub compiling: f64,
    pub places: f64,
}

impl Pattern {
    /// The library refuses larger ones.
    pub fn largest() -> Self {
        Self { compiling: 2_000_000.0, places: 300_000.0 }
    }

    pub fn of(text: &str) -> Self {
        let largest = Self::largest();
        let mut counts = 1.0;
        for part in text.split('{').skip(1) {
            let inside = part.split('}').next().unwrap_or_default();
            let numbers = inside.split(',').filter_map(|number| number.trim().parse::<u32>().ok());
            counts *= f64::from(numbers.max().unwrap_or(1).max(1));
        }
        let is_class =
            |letter: &str| letter.starts_with(|it: char| it.is_ascii_uppercase() || "dpsw".contains(it));
        let classes = number(text.split('\\').skip(1).filter(|rest| is_class(rest)).count());
        let places = (number(text.len()) * counts).min(largest.places);
        let compiling = 1000.0 + 50.0 * places + OF_A_CLASS * classes * counts;
        Self { compiling: compiling.min(largest.compiling), places }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a bound need not be exact")]
fn number(count: usize) -> f64 {
    count as f64
}
