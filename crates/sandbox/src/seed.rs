//! Seeded randomness: one seed gives one run, byte for byte.

use std::time::Duration;

/// SplitMix64 (Steele, Lea, Flood 2014): small, fast, good enough for names and delays.
#[derive(Debug, Clone)]
pub(crate) struct Seed {
    state: u64,
    /// Of uids alone.
    salt: u64,
}

/// The letters of generated names, as in apimachinery's `rand.String`: no vowels, no look-alikes.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl Seed {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed, salt: 0 }
    }

    /// Of one of several clusters that may have a seed in common: no two objects of theirs have one uid.
    pub(crate) fn of_cluster(seed: u64, name: &str) -> Self {
        let salt = name.bytes().fold(0, |sum: u64, byte| sum.rotate_left(7) ^ u64::from(byte));
        Self { state: seed, salt }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub(crate) fn duration(&mut self, shortest: Duration, longest: Duration) -> Duration {
        let span = longest.saturating_sub(shortest).as_millis() as u64;
        shortest + Duration::from_millis(self.below(span.saturating_add(1)))
    }

    /// A version 4 UUID.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next() ^ self.salt);
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }

    /// The suffix of `generateName`: five letters.
    pub(crate) fn suffix(&mut self) -> String {
        (0..5).map(|_| char::from(LETTERS[self.below(LETTERS.len() as u64) as usize])).collect()
    }
}

/// A stable short hash of text in the letters of generated names (`pod-template-hash`).
pub(crate) fn short_hash(text: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let mut letters = Seed::new(hash);
    (0..10).map(|_| char::from(LETTERS[letters.below(LETTERS.len() as u64) as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence() {
        let (mut left, mut right) = (Seed::new(7), Seed::new(7));
        assert_eq!(left.uid(), right.uid());
        assert_eq!(left.suffix(), right.suffix());
        assert_ne!(Seed::new(7).uid(), Seed::new(8).uid());
        assert_ne!(Seed::of_cluster(7, "bj1").uid(), Seed::of_cluster(7, "gz1").uid());
    }

    #[test]
    fn uids_are_version_four() {
        let uid = Seed::new(1).uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(uid.as_bytes()[14], b'4');
    }
}
