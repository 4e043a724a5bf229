//! Seeded random numbers: one seed gives one sequence.

use std::ops::Range;
use std::time::Duration;

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct SeededRandom(u64);

impl SeededRandom {
    pub fn new(seed: u64) -> Self {
        // Spreads seeds that follow each other.
        let mut draw = Self(seed.wrapping_mul(0xD134_2543_DE82_EF95) ^ 0x7F4A_7C15);
        draw.next();
        draw
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn in_range(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start).max(1)
    }

    pub fn percent_chance(&mut self, of_hundred: u64) -> bool {
        self.in_range(0..100) < of_hundred
    }

    pub fn choose<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.in_range(0..choices.len() as u64) as usize].clone()
    }

    /// Chooses by weight.
    pub fn choose_weighted<T: Clone>(&mut self, choices: &[(u64, T)]) -> T {
        let mut left = self.in_range(0..choices.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in choices {
            if left < *weight {
                return choice.clone();
            }
            left -= weight;
        }
        choices[0].1.clone()
    }

    pub fn milliseconds(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.in_range(range))
    }
}

/// Selects by a number from the schedule, which was drawn before the choices were known.
pub fn pick<T>(choices: &[T], number: u64) -> Option<&T> {
    choices.get(number.checked_rem(choices.len() as u64)? as usize)
}
