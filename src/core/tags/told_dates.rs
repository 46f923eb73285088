//! The part of a record that tells which modification dates can be those of the current state alone (DESIGN, section 3,
//! rule 2).
//!
//! # Design
//!
//! A date in a condition must name one state of the resource, as a tag must. But two states may share a date: the
//! clock of the files is behind, the date has whole minutes, or it comes from the client and goes back. The clock of the
//! answers is better. No response tells a date that is not older than its own `Date`
//! ([`told_date`](super::validators::told_date)). So all dates that were told before a write ended are older than the
//! `Date` of the answer to that write.
//!
//! The record therefore keeps one date: the `Date` of the answer to the last applied write, or the second after the date
//! of the state before it, if that is later. A date in a condition counts from then on, if it is not older than the one
//! that the backend shows:
//!
//! | state of the record | dates that count |
//! |---|---|
//! | no write passed the proxy, and no record of the bucket was forgotten | all |
//! | the last write was answered, with a `Date` | that date if it is the current one, and all later ones |
//! | anything else: a doubt, an answer without `Date`, a forgotten record | none |
//!
//! Under `etag = "delegate"` clients get all dates as they are. There only later ones count after a write.
//!
//! *What about a date that no response can have shown yet?* It is later than all others, and passes in each of these
//! cases.
//!
//! *Can a client be locked out?* Only a client that names dates alone, and only until the next write. It happens after
//! a write whose new date is older than its answer. The client learns that it should send the tag instead, which
//! ifmatch makes for every state.
//!
//! *What is not promised?* A client can send the `Date` of its read instead of the `Last-Modified`. Within the second of a
//! write, that date may be the new state's.

use http::{HeaderMap, header};

use crate::core::tags::http_date::{HttpDate, single_date};

/// The first date that a client can get for the current state and for no earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FirstDate(u64);

/// The dates by which a write has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteEnd {
    /// The `Date` of its answer.
    pub answered: HttpDate,
    /// The modification date of the state before it, if it is known.
    pub before: Option<HttpDate>,
}

impl WriteEnd {
    /// Returns the end of a write with this answer. `None` if the answer does not tell its date.
    pub fn of(answer: &HeaderMap, before: Option<HttpDate>) -> Option<Self> {
        single_date(answer, &header::DATE).map(|answered| Self { answered, before })
    }

    /// Returns the end of a write on a route that shows dates as they are, also those of the second of their answer.
    #[must_use]
    pub fn with_weak_dates_told(self, told: bool) -> Self {
        let before = if told { self.before.max(Some(self.answered)) } else { self.before };
        Self { before, ..self }
    }

    /// Returns the end of a write with one more answer. `None` if that does not tell its date.
    #[must_use]
    pub fn with_answer(self, answer: &HeaderMap) -> Option<Self> {
        let other = Self::of(answer, self.before)?;
        Some(Self { answered: self.answered.max(other.answered), ..self })
    }
}

impl FirstDate {
    /// Every date counts: no write has changed the resource since the store began.
    pub const ANY: Self = Self(0);

    /// No date counts.
    pub const NONE: Self = Self(u64::MAX);

    /// The first date that counts is this one.
    pub const fn at(date: HttpDate) -> Self {
        Self(date.unix_seconds())
    }

    /// Returns the number that a record keeps.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Returns the date that a record keeps as this number.
    pub const fn of_number(number: u64) -> Self {
        Self(number)
    }

    /// Returns the first date after a change of the state. `end` comes from a write that was applied and answered; any
    /// other change has `None`.
    #[must_use]
    pub fn after(self, end: Option<WriteEnd>) -> Self {
        let Some(WriteEnd { answered, before }) = end else { return Self::NONE };
        let before = before.map_or(0, |date| date.unix_seconds().saturating_add(1));
        let earlier = if self == Self::NONE { 0 } else { self.0 };
        Self(answered.unix_seconds().max(before).max(earlier))
    }

    /// True if a date can be that of the current state alone.
    pub const fn may_be(self, date: HttpDate) -> bool {
        self.0 <= date.unix_seconds()
    }

    /// True if a date is later than each date that clients may have got for an earlier state.
    pub const fn is_before(self, date: HttpDate) -> bool {
        self.0 < date.unix_seconds()
    }
}

#[cfg(test)]
#[path = "told_dates_tests.rs"]
mod tests;
