//! The memory of a write with an idempotency key after its end (DESIGN, section 3, rule 21).
//!
//! # Design
//!
//! *Which answers release a key?* Those by which the upstream says that it did nothing. A retry is then a write like any
//! other, and may succeed.
//!
//! *Why is a failure replayed?* An upstream may fail after it has made the change, and its answer does not show that.
//! If a retry were carried out, the write could be applied twice. So the proxy carries out only retries of writes that
//! certainly changed nothing.
//!
//! *Why does `Retry-After` make a difference to 503?* With it the upstream asks for the same request once more. Without
//! it, the answer may come from a gateway whose server goes on with the write.

use http::{HeaderMap, StatusCode, header};

use super::{first_attempt::KeptAnswer, steps::Outcome};

/// The memory that an ended write leaves, with its answer or the status of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd<Answer = KeptAnswer> {
    /// No memory: nothing was done. A retry is a write like any other.
    Nothing,
    /// The write is in doubt.
    Doubt,
    /// The write can no longer be applied, but may have been, wholly or in part.
    Unknown,
    /// The answer of the write, which may have been applied.
    Answered(Answer),
}

/// The memory that an ended write leaves, before its answer is read.
pub type End = AttemptEnd<StatusCode>;

/// The extent to which the upstream has seen a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It has received nothing, or has not answered.
    Nothing,
    /// It may have applied one part of the write, and the others are missing.
    Part,
    /// It has answered the write.
    Answer {
        /// The status of the answer.
        status: StatusCode,
        /// True if the answer asks for the same request once more, at a later time.
        asks_again: bool,
    },
}

impl Reached {
    /// The extent that an answer with this status and these fields shows.
    pub fn answer(status: StatusCode, fields: &HeaderMap) -> Self {
        Self::Answer { status, asks_again: fields.contains_key(header::RETRY_AFTER) }
    }
}

impl End {
    /// Returns the end of a write that has come this far. `in_doubt` is true if its client has learned of a doubt.
    pub fn of(reached: Reached, in_doubt: bool) -> Self {
        match reached {
            _ if in_doubt => Self::Doubt,
            Reached::Nothing => Self::Nothing,
            Reached::Part => Self::Unknown,
            Reached::Answer { status, asks_again } => match Outcome::of_status(status) {
                Outcome::NotApplied | Outcome::NotAppliedAsKnown => Self::Nothing,
                Outcome::Unclear if asks_again && status == StatusCode::SERVICE_UNAVAILABLE => Self::Nothing,
                Outcome::Applied | Outcome::Unclear => Self::Answered(status),
                Outcome::Doubt => Self::Doubt,
            },
        }
    }
}

impl AttemptEnd {
    /// The answer that retries get, if there is one.
    pub fn answer(self) -> Option<KeptAnswer> {
        match self {
            Self::Answered(answer) => Some(answer),
            Self::Nothing | Self::Doubt | Self::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Every final status, registered or not.
    fn statuses() -> impl Iterator<Item = StatusCode> {
        (200..1_000).map(|status| StatusCode::from_u16(status).unwrap())
    }

    fn end(status: StatusCode, fields: &HeaderMap) -> End {
        End::of(Reached::answer(status, fields), false)
    }

    /// Rule 21: the whole table. A key is released only by what says that nothing was done.
    #[test]
    fn each_status_releases_the_key_or_is_replayed_or_is_a_doubt() {
        let later = HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static("1"))]);
        for status in statuses() {
            let alone = match status.as_u16() {
                502 | 504 => End::Doubt,
                408 | 499 => End::Answered(status),
                307 | 308 | 400..=498 => End::Nothing,
                _ => End::Answered(status),
            };
            assert_eq!(end(status, &HeaderMap::new()), alone, "{status}");
            let with_a_time = if status.as_u16() == 503 { End::Nothing } else { alone };
            assert_eq!(end(status, &later), with_a_time, "{status} with Retry-After");
        }
    }

    /// Rule 3: a doubt is neither a success nor a failure, no matter what came before it.
    #[test]
    fn a_write_that_its_client_was_told_to_doubt_is_in_doubt() {
        let answers = statuses().map(|status| Reached::Answer { status, asks_again: true });
        for reached in answers.chain([Reached::Nothing, Reached::Part]) {
            assert_eq!(End::of(reached, true), End::Doubt, "{reached:?}");
        }
    }

    #[test]
    fn a_write_without_an_answer_leaves_nothing_unless_a_part_of_it_may_be_applied() {
        assert_eq!(End::of(Reached::Nothing, false), End::Nothing);
        assert_eq!(End::of(Reached::Part, false), End::Unknown);
    }
}
