//! Chance that can be repeated.

use std::time::{SystemTime, UNIX_EPOCH};

/// Numbers that look random and follow from a seed (xorshift).
pub struct Random(u64);

impl Random {
    /// From the seed of an earlier run, or a new one, which is printed.
    pub fn new(what: &str) -> Self {
        let now = || u64::from(SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").subsec_nanos());
        let seed = std::env::var("IFMATCH_SEED").map_or_else(|_| now(), |seed| seed.parse().expect("a number"));
        println!("{what}: IFMATCH_SEED={seed}");
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// One of its own for another task.
    pub fn fork(&mut self) -> Self {
        // Not the state itself: then each would say what the one before it has said.
        Self((self.below(usize::MAX) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("it is below the limit")
    }

    /// True if something happens that does so `percent` times in a hundred.
    pub fn is_one_of(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}
