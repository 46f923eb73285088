//! The amount of work that was done.

use std::collections::BTreeMap;

/// The number of operations, by their answers.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub reads: usize,
    pub writes: usize,
    pub differing: usize,
    /// Operations that found nothing to change.
    pub missing: usize,
    /// Refusals, by their codes.
    pub refused: BTreeMap<String, usize>,
    pub unanswered: usize,
    pub grants: usize,
    /// Writes with a date as their condition, and writes that were sent again with their key.
    pub dated: usize,
    pub repeated: usize,
}

impl Tally {
    pub fn total(&self) -> usize {
        let refused: usize = self.refused.values().sum();
        self.reads + self.writes + self.differing + self.missing + refused + self.unanswered + self.grants
    }

    pub fn plus(mut self, other: Self) -> Self {
        for (code, count) in other.refused {
            *self.refused.entry(code).or_default() += count;
        }
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            differing: self.differing + other.differing,
            missing: self.missing + other.missing,
            refused: self.refused,
            unanswered: self.unanswered + other.unanswered,
            grants: self.grants + other.grants,
            dated: self.dated + other.dated,
            repeated: self.repeated + other.repeated,
        }
    }
}
