//! Random numbers of a run.

/// SplitMix64, as in the sandbox.
pub struct SeededRandom(u64);

impl SeededRandom {
    pub fn new(seed: u64, actor: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9).wrapping_add(actor << 40))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn choose<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}

impl SeededRandom {
    pub fn percent_chance(&mut self, of_hundred: u64) -> bool {
        self.below(100) < of_hundred
    }
}
