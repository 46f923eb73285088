//! Whether a backend keeps bodies as it gets them, as the re-reads after writes have shown (`verbatim_after`).
//!
//! # Design
//!
//! *Why may a guess decide the tag in the answer to a PUT?* A content tag names bytes, and each write that names one is
//! judged by the bytes that the backend shows then. If the backend has changed the body, the tag fits no bytes that it
//! shows. A write with the tag is then refused, and its client reads again. The tag fits only if those very bytes are
//! there, and then it is no guess.
//!
//! *Why is a PUT in a hundred still checked?* A backend may begin to change bodies, and a client that only writes
//! would learn it from refusals.

/// The number of PUTs between two that are checked. With one check in a hundred, the re-reads cost a percent.
const UNCHECKED_MAX: u8 = 99;

/// The number of times that the row can double. A backend that changes one body in a million is then asked most times.
const DOUBLINGS_MAX: u8 = 10;

/// The row of re-reads that have shown the content that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerbatimRow {
    in_a_row: usize,
    /// The number of times that the row was long enough, and then broke.
    broken: u8,
    /// The number of PUTs without a re-read since the last one.
    unchecked: u8,
}

impl VerbatimRow {
    /// True if a PUT can do without its re-read, and counts it if so. `after` is the number of re-reads that must have
    /// shown the content that was sent; zero means that no number suffices.
    pub fn spares(&mut self, after: usize) -> bool {
        let is_spared = self.is_long_enough(after) && self.unchecked < UNCHECKED_MAX;
        self.unchecked += u8::from(is_spared);
        is_spared
    }

    /// Adds a re-read that has shown the content that was sent.
    pub const fn continues(&mut self) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.unchecked = 0;
    }

    /// Ends the row, because something else was there than was sent. Returns whether PUTs did without re-reads until
    /// then. If they did, the next row must be twice as long.
    pub fn breaks(&mut self, after: usize) -> bool {
        let was_long_enough = self.is_long_enough(after);
        let broken = self.broken.saturating_add(u8::from(was_long_enough)).min(DOUBLINGS_MAX);
        *self = Self { in_a_row: 0, broken, unchecked: 0 };
        was_long_enough
    }

    const fn is_long_enough(&self, after: usize) -> bool {
        after > 0 && self.in_a_row >= after.saturating_mul(1 << self.broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of this length.
    fn row(length: usize) -> VerbatimRow {
        let mut row = VerbatimRow::default();
        (0..length).for_each(|_| row.continues());
        row
    }

    #[test]
    fn a_put_does_without_its_re_read_once_the_row_is_long_enough() {
        for (length, after, is_spared) in
            [(0, 1, false), (1, 1, true), (31, 32, false), (32, 32, true), (33, 32, true), (1000, 0, false)]
        {
            assert_eq!(row(length).spares(after), is_spared, "{length} {after}");
        }
    }

    #[test]
    fn one_put_in_a_hundred_is_checked() {
        let mut row = row(2);
        for _ in 0..3 {
            assert_eq!((0..99).filter(|_| row.spares(2)).count(), 99);
            assert!(!row.spares(2));
            assert!(!row.spares(2), "the check is due until one has shown something");
            row.continues();
        }
    }

    #[test]
    fn one_difference_ends_the_row() {
        let mut row = row(5);
        assert!(row.breaks(2));
        assert!(!row.spares(2));
    }

    #[test]
    fn a_row_that_broke_in_use_must_be_twice_as_long() {
        let mut row = row(2);
        for needed in [4, 8, 16] {
            assert!(row.breaks(2));
            assert!(!row.breaks(2), "nothing was spared meanwhile");
            (1..needed).for_each(|_| row.continues());
            assert!(!row.spares(2), "{needed}");
            row.continues();
            assert!(row.spares(2), "{needed}");
        }
    }

    #[test]
    fn a_row_that_broke_early_need_not_be_longer() {
        let mut row = row(1);
        assert!(!row.breaks(2));
        (0..2).for_each(|_| row.continues());
        assert!(row.spares(2));
    }

    #[test]
    fn the_length_of_a_row_has_a_limit() {
        let mut row = VerbatimRow::default();
        for _ in 0..20 {
            (0..1 << DOUBLINGS_MAX).for_each(|_| row.continues());
            assert!(row.breaks(1));
        }
    }
}
